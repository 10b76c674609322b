"""A site keeps its own rules of residency, whatever a client compiled; and so do the sites that it trusts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import residency_operations
from residency_federations import load

from dfmesh import (
    Choose,
    Federation,
    ForEach,
    If,
    JobError,
    Pipeline,
    PipelineError,
    TryFromCache,
    Yield,
)
from dfmesh.compiler import CompiledPipeline, compile_pipeline
from dfmesh.engine import home_jobs
from dfmesh.engine.adapters import SiteAdapters
from dfmesh.engine.admission import objections
from dfmesh.engine.residency import ResidencyError
from dfmesh.engine.simulator import Simulation
from dfmesh.netir import NetIR, check_nets

LIMIT = 20.0
HOME = "home"
BY_THE_RULE = ("@partner", "clinic", "partner")
"""Who may have what the clinic makes: the partner also with its clients."""


def direct(ops: Any) -> None:
    ops.c.Work(x=ops.c.Read(), site="abroad")


def yielded(ops: Any) -> None:
    Yield(ops.c.Read())


def part(ops: Any) -> None:
    Yield(ops.c.Read()["names"])


def within_a_list(ops: Any) -> None:
    Yield([1, {"all": ops.c.Read()}])


def chosen(ops: Any) -> None:
    Yield(Choose(ops.c.Work(x=1, site="clinic") > 0, ops.c.Read(), 0))


def compared(ops: Any) -> None:
    Yield(Choose(ops.c.Read()["count"] == 2, 1, 0))


def elements(ops: Any) -> None:
    with ForEach(ops.c.Names(count=2)) as name:
        ops.c.Work(x=name, site="abroad")


def collected(ops: Any) -> None:
    with ForEach(ops.c.Names(count=2)) as name:
        pass
    Yield(name.collect(name))


def streamed(ops: Any) -> None:
    Yield(ops.c.Stream())


def cached_elsewhere(ops: Any) -> None:
    with TryFromCache(key="k", site="partner") as cached:
        cached.cache(ops.c.Read())
    Yield(cached)


def key_of_a_cache(ops: Any) -> None:
    with TryFromCache(key=ops.c.Read(), site="abroad") as cached:
        cached.cache(1)
    Yield(cached)


FORBIDDEN = [
    direct,
    yielded,
    part,
    within_a_list,
    chosen,
    compared,
    elements,
    collected,
    streamed,
    cached_elsewhere,
    key_of_a_cache,
]


def new_value(ops: Any) -> None:
    Yield(ops.c.Work(x=ops.c.Read(), site="clinic"))


def at_the_partner(ops: Any) -> None:
    Yield(ops.c.Work(x=ops.c.Read(), site="partner"))


def number_and_outcome(ops: Any) -> None:
    with ForEach(ops.c.Names(count=2)) as name:
        Yield(name.index)
    with If(ops.c.Read()["count"] == 2):
        Yield(1, place="outcome")


def merged(ops: Any) -> None:
    with ForEach(ops.c.Names(count=3)) as name:
        pass
    Yield(name.reduce(ops.c.Join, name, site="partner"))


def cached_at_the_partner(ops: Any) -> None:
    with TryFromCache(key="k", site="partner") as cached:
        cached.cache(ops.c.Read())
    Yield(ops.c.Work(x=cached, site="partner"))


ALLOWED = [new_value, at_the_partner, number_and_outcome, merged, cached_at_the_partner]


def pipeline(body: Callable[[Any], None], federation: Federation) -> Pipeline:
    with Pipeline() as made:
        body(federation.ops)
    return made


def compiled(body: Callable[[Any], None], federation: Federation) -> CompiledPipeline:
    return compile_pipeline(pipeline(body, federation), federation.config, HOME)


def refusals(nets: dict[str, NetIR], federation: Federation) -> dict[str, list[str]]:
    """What each site says to its part."""
    sites = {site: SiteAdapters(federation.config, site) for site in nets}
    found = {site: objections(net, site, HOME, sites[site]) for site, net in nets.items()}
    return {site: said for site, said in found.items() if said}


@pytest.mark.parametrize("body", FORBIDDEN, ids=lambda body: body.__name__)
def test_what_was_compiled_without_the_rule_is_refused_before_anything_runs(
    body: Callable[[Any], None], honest: Federation, dishonest: Federation
) -> None:
    with pytest.raises(PipelineError, match="cannot be placed"):
        compiled(body, honest)
    residency_operations.called.clear()
    with honest.session(target="inproc", homesite=HOME) as session:
        job = session.submit(compiled(body, dishonest))
        with pytest.raises(JobError, match="may only be at clinic, partner") as caught:
            job.result(LIMIT)
    assert {(error.site, error.kind) for error in caught.value.errors} == {("clinic", "JobRefused")}
    assert residency_operations.called == []


@pytest.mark.parametrize("body", ALLOWED, ids=lambda body: body.__name__)
def test_what_the_rule_allows_runs_also_a_second_time(body: Callable[[Any], None], honest: Federation) -> None:
    with honest.session(target="inproc", homesite=HOME) as session:
        first = session.submit(compiled(body, honest)).result(LIMIT)
        assert session.submit(compiled(body, honest)).result(LIMIT) == first


def test_between_processes(honest: Federation, dishonest: Federation) -> None:
    with honest.session(target="local", homesite=HOME, output="none") as session:
        for _ in range(2):
            for body in (at_the_partner, cached_at_the_partner):
                assert session.submit(compiled(body, honest)).result(LIMIT) == {"yield": [2]}
        with pytest.raises(JobError, match="may only be at clinic, partner"):
            session.submit(compiled(cached_elsewhere, dishonest)).result(LIMIT)


def test_a_refusal_names_operation_rule_destination_and_both_files(honest: Federation, dishonest: Federation) -> None:
    (said,) = refusals(compiled(direct, dishonest).nets, honest)["clinic"]
    assert said.startswith("may not send to site 'abroad' the result of c.Read (%0, ")
    assert f"{Path(__file__).name}:" in said
    assert "it may only be at clinic, partner by a rule of residency (" in said
    assert "clinics.dfm.yaml:" in said


def test_a_changed_rule_holds_once_its_own_site_has_started_again(tmp_path: Path) -> None:
    file = tmp_path / "changing" / "clinics.dfm.yaml"
    before = load(file, None)
    with before.session(target="local", homesite=HOME, output="none") as session:
        prepared = session.prepare(pipeline(direct, before))
        session.submit(prepared).result(LIMIT)
        after = load(file, ["partner"])
        session.submit(prepared).result(LIMIT)  # The clinic has not read it yet.
        with contextlib.suppress(JobError):
            session.submit(pipeline(lambda ops: ops.c.Leave(), before)).result(LIMIT)
        with pytest.raises(JobError, match=r"load the federation file again \(Federation\.load\)") as caught:
            session.submit(prepared).result(LIMIT)
    assert {(error.site, error.kind) for error in caught.value.errors} == {("clinic", "JobRefused")}
    with pytest.raises(PipelineError, match="cannot be placed"):
        compiled(direct, after)


def test_the_plan_tells_the_next_site_what_binds_a_value(honest: Federation) -> None:
    nets = compiled(at_the_partner, honest).nets
    (route,) = nets["clinic"].residency
    assert nets["clinic"].residency == nets["partner"].residency == {route: BY_THE_RULE}
    assert nets[HOME].residency == {}
    assert refusals(nets, honest) == {}
    without = {site: msgspec.structs.replace(net, residency={}) for site, net in nets.items()}
    (said,) = refusals(without, honest)["clinic"]
    assert "by a rule of residency (" in said
    assert "the plan was not compiled with that rule; load the" in said


def test_what_sender_and_receiver_are_told_must_be_the_same(honest: Federation) -> None:
    nets = compiled(at_the_partner, honest).nets
    (route,) = nets["partner"].residency
    for told in ({}, {route: ("abroad", *BY_THE_RULE)}):
        forged = nets | {"partner": msgspec.structs.replace(nets["partner"], residency=told)}
        assert "may be at other sites here" in str(check_nets(forged)[0])


def passing_on(honest: Federation, dishonest: Federation) -> dict[str, NetIR]:
    """Nets in which the clinic is told the truth, and the partner, which passes the value on, is not."""
    nets = compiled(cached_elsewhere, dishonest).nets
    route = next(
        route.id for item in nets["clinic"].transitions for route in item.routes if route.port.value == "value"
    )
    true = msgspec.structs.replace(nets["clinic"], residency={route: BY_THE_RULE})
    assert refusals({"clinic": true}, honest) == {}
    return nets | {"clinic": true}


def test_a_partner_that_is_told_the_rule_does_not_pass_the_value_on(honest: Federation, dishonest: Federation) -> None:
    nets = passing_on(honest, dishonest)
    told = msgspec.structs.replace(nets["partner"], residency=nets["clinic"].residency)
    (said,) = refusals({"partner": told}, honest)["partner"]
    assert "may not yield to the client, at site 'home'" in said
    assert "what clinic sends it: it may only be at clinic, partner, and of clients only those of partner may" in said


def test_a_partner_that_is_told_nothing_learns_the_rule_from_the_clinic(
    honest: Federation, dishonest: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the homesite starts the sites with nets that do not fit together."""
    nets = passing_on(honest, dishonest)
    sites = {site: SiteAdapters(honest.config, site) for site in honest.config.sites}
    monkeypatch.setattr(home_jobs, "read_nets", lambda _: (nets, []))
    simulation = Simulation(nets, sites, HOME, 0)
    with pytest.raises(ResidencyError, match="what clinic sends may only be at clinic, partner"):
        simulation.run([{}])


def test_what_was_cached_under_a_rule_does_not_leave_through_another_pipeline(honest: Federation) -> None:
    def harmless(ops: Any) -> None:
        with TryFromCache(key="k", site="partner") as cached:
            cached.cache(0)
        Yield(cached)

    with honest.session(target="inproc", homesite=HOME) as session:
        assert session.submit(compiled(cached_at_the_partner, honest)).result(LIMIT) == {"yield": [2]}
    with honest.session(target="inproc", homesite=HOME) as session:
        assert session.submit(compiled(harmless, honest)).result(LIMIT) == {"yield": [0]}, "it counts as not found"


def test_a_site_without_rules_pays_nothing(tmp_path: Path) -> None:
    free = load(tmp_path / "free" / "clinics.dfm.yaml", None)
    nets = compiled(direct, free).nets
    assert all(net.residency == {} for net in nets.values())


@pytest.mark.parametrize("count", [1, 3])
def test_a_reduction_of_a_single_value_does_not_give_it_away(honest: Federation, count: int) -> None:
    def body(ops: Any) -> None:
        with ForEach(ops.c.Names(count=count)) as name:
            pass
        Yield(name.reduce(ops.c.Join, name, site="clinic"))

    with honest.session(target="inproc", homesite=HOME) as session:
        job = session.submit(compiled(body, honest))
        if count > 1:
            assert job.result(LIMIT) == {"yield": ["3+4"]}
        else:
            with pytest.raises(JobError, match="there was a single value, which a rule of residency keeps"):
                job.result(LIMIT)


def test_a_single_value_stays_where_it_may_be(honest: Federation) -> None:
    def body(ops: Any) -> None:
        with ForEach(ops.c.Names(count=1)) as name:
            pass
        Yield(ops.c.Work(x=name.reduce(ops.c.Join, name, site="clinic"), site="clinic"))

    with honest.session(target="inproc", homesite=HOME) as session:
        assert session.submit(compiled(body, honest)).result(LIMIT) == {"yield": [3]}
