"""Where values under a residency rule may be, said in the nets, so that each site can hold it against its own rules."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dfmesh.compiler.costs import Costs
from dfmesh.compiler.graph import Graph
from dfmesh.errors import DfmeshError
from dfmesh.netir import NetIR, follow, may_have, sites_among


def state_residency(nets: Mapping[str, NetIR], graph: Graph, costs: Costs) -> dict[str, NetIR]:
    """Add to each net what may be where of that which it sends to and gets from other sites.

    Args:
        nets: By site.
        graph: What they were made of.
        costs: Know the rules of the sites.

    Raises:
        DfmeshError: the placement breaks a rule, which is a fault of the compiler.
    """
    if not costs.has_residency:
        return dict(nets)
    made = {
        transition.id: may_have(site, rule.sites)
        for site, net in nets.items()
        for transition in net.transitions
        if (rule := costs.residency(graph.nodes[transition.id], site)) is not None
    }
    bound = follow(nets.values(), made, {})
    if bound.breaches:
        breach = bound.breaches[0]
        raise DfmeshError(
            f"{breach.sender.name} ({breach.sender.node}) would send to {breach.destination} what may only be at "
            f"{', '.join(sites_among(breach.sites))}; this is a bug of dfmesh, please report it with the pipeline"
        )
    stated: dict[str, dict[int, tuple[str, ...]]] = {site: {} for site in nets}
    for site, net in nets.items():
        for transition in net.transitions:
            for route in transition.routes:
                sites = bound.routes.get(route.id)
                if sites is not None:
                    stated[site][route.id] = stated[route.site][route.id] = tuple(sorted(sites))
    return {
        site: msgspec.structs.replace(net, residency=dict(sorted(stated[site].items()))) if stated[site] else net
        for site, net in nets.items()
    }
