"""Random pipelines under random rules of residency: sites accept what was planned under the rules, and nothing else.

They refuse every plan made without the rules that would take a value to where it may not be.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec

from dfmesh.compiler.costs import Costs
from dfmesh.compiler.placement.residency import value_takers
from dfmesh.config import FederationConfig, ResidencyRule
from dfmesh.engine.adapters import SiteAdapters
from dfmesh.engine.admission import objections
from dfmesh.errors import PipelineError, SourceLocation
from dfmesh.netir import SendYield

from .building import build
from .conftest import HOMESITE, compiled_for, scaled
from .generator import Options, random_pipeline

PIPELINES = 200
OPTIONS = (Options(branches=True), Options(branches=True, failures=True, whole=True))


def with_rules(config: FederationConfig, draw: random.Random) -> FederationConfig:
    """Let some adapters and some sites say where results may go."""

    def rule() -> ResidencyRule:
        chosen = draw.sample(sorted(config.sites), draw.randint(0, len(config.sites)))
        return ResidencyRule(tuple(chosen), SourceLocation("rules.dfm.yaml", draw.randint(1, 99)))

    sites = {}
    for name, site in config.sites.items():
        interface = {
            operation: msgspec.structs.replace(adapter, residency=rule()) if draw.random() < 0.1 else adapter
            for operation, adapter in site.interface.items()
        }
        whole = rule() if draw.random() < 0.1 else None
        sites[name] = msgspec.structs.replace(site, interface=interface, residency=whole)
    return replace(config, sites=sites)


def refused(plan: Any, config: FederationConfig) -> dict[str, list[str]]:
    said = {site: objections(net, site, HOMESITE, SiteAdapters(config, site)) for site, net in plan.nets.items()}
    return {site: reasons for site, reasons in said.items() if reasons}


def breaches(plan: Any, config: FederationConfig) -> list[str]:
    """Find what a plan takes to where it may not be, in the graph, as the compiler's rules say it."""
    costs, sites, found = Costs(plan.graph, config), plan.placement.sites, []
    for node, takers in zip(plan.graph.nodes, value_takers(plan.graph), strict=True):
        rule = costs.residency(node, sites[node.index])
        if rule is None:
            continue
        allowed = {sites[node.index], *rule.sites}
        reached = {sites[taker] for taker in takers}
        if any(isinstance(plan.graph.nodes[taker].action, SendYield) for taker in takers):
            reached.add("clients")
        if HOMESITE in rule.sites:
            allowed.add("clients")
        if not reached <= allowed:
            found.append(f"{node.name} ({node.node}) at {sites[node.index]} reaches {reached - allowed}")
    return found


def test_sites_accept_legal_plans_and_refuse_others(ops: Any, config: FederationConfig) -> None:
    seen: Counter[str] = Counter()
    for seed in range(scaled(PIPELINES)):
        draw = random.Random(seed)
        pipeline = build(random_pipeline(seed, OPTIONS[seed % 2]), ops)
        ruled = with_rules(config, draw)
        try:
            legal = compiled_for(pipeline, ruled)
        except PipelineError:
            seen["no legal plan"] += 1
        else:
            seen["legal"] += 1
            assert not breaches(legal, ruled), seed
            assert refused(legal, ruled) == {}, seed
        careless = compiled_for(pipeline, config)
        if breaches(careless, ruled):
            seen["refused"] += 1
            assert refused(careless, ruled), (seed, breaches(careless, ruled))
    assert seen["legal"], seen
    assert seen["refused"], seen
