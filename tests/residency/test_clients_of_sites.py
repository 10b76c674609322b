"""Clients get a value only if its rule names the site that they are attached to, whichever they chose."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from residency_federations import load

from dfmesh import Choose, Federation, ForEach, JobError, Pipeline, PipelineError, TryFromCache, Yield
from dfmesh.compiler import CompiledPipeline, compile_pipeline

LIMIT = 20.0
CLINIC = "clinic"


def whole(ops: Any) -> None:
    Yield(ops.c.Read())


def part(ops: Any) -> None:
    Yield([1, ops.c.Read()["names"]])


def elements(ops: Any) -> None:
    with ForEach(ops.c.Names(count=2)) as name:
        Yield(name)


def streamed(ops: Any) -> None:
    Yield(ops.c.Stream())


def chosen(ops: Any) -> None:
    Yield(Choose(ops.c.Work(x=1, site=CLINIC) > 0, ops.c.Read(), 0))


def alone(ops: Any) -> None:
    with ForEach(ops.c.Names(count=1)) as name:
        pass
    Yield(name.reduce(ops.c.Join, name, site=CLINIC))


GIVE_IT = [whole, part, elements, streamed, chosen]


@pytest.fixture(autouse=True)
def _modules() -> Iterator[None]:
    yield
    sys.modules.pop("hospital_operations", None)


def compiled(body: Callable[[Any], None], federation: Federation, homesite: str = CLINIC) -> CompiledPipeline:
    with Pipeline() as pipeline:
        body(federation.ops)
    return compile_pipeline(pipeline, federation.config, homesite)


@pytest.mark.parametrize("body", GIVE_IT, ids=lambda body: body.__name__)
@pytest.mark.parametrize("rule", [[], ["partner"]])
def test_the_site_that_makes_a_value_gives_it_to_none_of_its_own_clients(
    body: Callable[[Any], None], rule: list[str], tmp_path: Path
) -> None:
    federation = load(tmp_path / "a" / "clinics.dfm.yaml", rule)
    with pytest.raises(PipelineError, match="and not to clients of clinic") as caught:
        compiled(body, federation)
    assert "clients of clinic may have them if this rule names clinic" in str(caught.value)
    forged = compiled(body, load(tmp_path / "b" / "clinics.dfm.yaml", None))
    told = "clients of clinic may have it if the rule names clinic"
    with (
        federation.session(target="inproc", homesite=CLINIC) as session,
        pytest.raises(JobError, match=told) as refused,
    ):
        session.submit(forged).result(LIMIT)
    assert {error.kind for error in refused.value.errors} == {"JobRefused"}
    expected = "no client may have it" if not rule else "of clients only those of partner may have it"
    assert expected in str(refused.value)


@pytest.mark.parametrize("target", ["inproc", "local"])
def test_a_rule_may_name_its_own_site_for_its_clients(target: str, tmp_path: Path) -> None:
    federation = load(tmp_path / "clinics.dfm.yaml", [CLINIC])
    with federation.session(target=target, homesite=CLINIC, output="none") as session:
        assert session.submit(compiled(elements, federation)).result(LIMIT) == {"yield": ["ada", "grace"]}
    with pytest.raises(PipelineError, match="may go to clinic, and not to clients of home"):
        compiled(elements, federation, "home")


def test_a_new_value_may_be_given_to_any_client(tmp_path: Path) -> None:
    federation = load(tmp_path / "clinics.dfm.yaml", [])
    with federation.session(target="inproc", homesite=CLINIC) as session:
        made = compiled(lambda ops: Yield(ops.c.Work(x=ops.c.Read())), federation)
        assert session.submit(made).result(LIMIT) == {"yield": [2]}


def test_a_single_value_that_a_reduction_gives_is_not_given_to_a_client(tmp_path: Path) -> None:
    federation = load(tmp_path / "clinics.dfm.yaml", [])
    told = "there was a single value"
    with federation.session(target="inproc", homesite=CLINIC) as session, pytest.raises(JobError, match=told):
        session.submit(compiled(alone, federation)).result(LIMIT)


def test_a_site_that_may_have_a_value_gives_it_to_its_clients_only_if_it_is_named(tmp_path: Path) -> None:
    def passed_on(ops: Any) -> None:
        with TryFromCache(key="k", site="partner") as cached:
            cached.cache(ops.c.Read())
        Yield(cached)

    cache = {"cache-config": {"base-path": str(tmp_path / "cache")}}
    federation = load(tmp_path / "clinics.dfm.yaml", ["partner"], **cache)
    with federation.session(target="inproc", homesite="partner") as session:
        assert session.submit(compiled(passed_on, federation, "partner")).result(LIMIT)["yield"][0]["count"] == 2
    with pytest.raises(PipelineError, match="and not to clients of home"):
        compiled(passed_on, federation, "home")


def test_what_was_stored_for_clients_of_one_site_is_not_found_for_those_of_another(tmp_path: Path) -> None:
    """Also if the other job stores something of its own under the same key, which its clients may have."""

    def stored(ops: Any) -> None:
        with TryFromCache(key="k", site=CLINIC) as cached:
            cached.cache(ops.c.Read())
        Yield(cached)

    cache = {"cache-config": {"base-path": str(tmp_path / "cache")}}
    federation = load(tmp_path / "a" / "clinics.dfm.yaml", ["home"], **cache)
    with federation.session(target="inproc", homesite="home") as session:
        assert session.submit(compiled(stored, federation, "home")).result(LIMIT)["yield"][0]["count"] == 2

    def harmless(ops: Any) -> None:
        with TryFromCache(key="k", site=CLINIC) as cached:
            cached.cache(ops.c.Names(count=1))
        Yield(cached)

    own = load(tmp_path / "b" / "clinics.dfm.yaml", [CLINIC], **cache)
    with own.session(target="inproc", homesite=CLINIC) as session:
        assert session.submit(compiled(harmless, own)).result(LIMIT) == {"yield": [["ada"]]}
