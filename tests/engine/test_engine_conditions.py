"""If, Else, Choose, after: what a value, an error and a skip do to each other."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from engine_support import returned, run

from dfmesh import And, Choose, Else, ForEach, If, Not, Or, Pipeline, PlaceParam, Yield
from dfmesh.engine import events
from dfmesh.engine.message_parts import Failure
from dfmesh.engine.messages import JobFinished
from dfmesh.engine.net_runner import NetRunner
from dfmesh.engine.tokens import SKIPPED, Failed
from dfmesh.netir import (
    ROOT_SCOPE,
    Action,
    Arrival,
    Branch,
    Compare,
    Evaluate,
    Input,
    ListOf,
    NetIR,
    Place,
    Port,
    Role,
    Route,
    Scope,
    SendYield,
    Transition,
    constant,
)
from dfmesh.netir import (
    Choose as ChooseAction,
)

FAILURE = Failure("b", "x.Y", "%9", (0,), "", "ValueError", "no")
FAILED = Failed(FAILURE)


def runner_of(action: Action, roles: list[Role], ports: list[Port]) -> NetRunner:
    """One transition at site a, with inputs from and outputs to site b."""
    scope = Scope(ROOT_SCOPE, None, 1, "a", ("a", "b"))
    places = tuple(Place(index, ROOT_SCOPE, role) for index, role in enumerate(roles))
    routes = tuple(Route(100 + index, port, "b") for index, port in enumerate(ports))
    transition = Transition(0, "%0", "It", "day.py:1", ROOT_SCOPE, places, action, routes)
    arrivals = {index: Arrival("b", (index,)) for index in range(len(roles))}
    return NetRunner(NetIR("a", "a", (scope,), (transition,), arrivals, {}, ()))


def outcome(runner: NetRunner, tokens: list[Any]) -> dict[Port, Any]:
    """Feed the tokens, last input first, and give what comes out of each port."""
    instructions: list[Any] = []
    for index in reversed(range(len(tokens))):
        assert not instructions
        instructions = runner.handle(events.TokenArrived(index, (0,), tokens[index]))
    ports = {route.id: route.port for route in runner.wired.transitions[0].ir.routes}
    assert isinstance(instructions[-1], events.ReportFrame)
    return {ports[item.route]: item.token for item in instructions if isinstance(item, events.SendToken)}


TOKENS = {"value": 5, "false": 0, "error": FAILED, "skip": SKIPPED}


@pytest.mark.parametrize(("first", "second"), list(itertools.product(["value", "error", "skip"], repeat=2)))
def test_a_skip_wins_over_an_error_over_a_value(first: str, second: str) -> None:
    runner = runner_of(Evaluate(ListOf((Input(0), Input(1)))), [Role.VALUE] * 2, [Port.VALUE, Port.DONE])
    found = outcome(runner, [TOKENS[first], TOKENS[second]])
    if "skip" in (first, second):
        assert found == {Port.VALUE: SKIPPED, Port.DONE: SKIPPED}
    elif "error" in (first, second):
        assert found == {Port.VALUE: FAILED, Port.DONE: FAILED}
    else:
        assert found == {Port.VALUE: [5, 5], Port.DONE: None}


@pytest.mark.parametrize(("role", "token", "expected"), [
    (Role.TRIGGER, None, 5), (Role.TRIGGER, SKIPPED, 5), (Role.TRIGGER, FAILED, FAILED),
    (Role.GUARD, None, 5), (Role.GUARD, SKIPPED, SKIPPED), (Role.GUARD, FAILED, FAILED),
])  # fmt: skip
def test_triggers_and_guards(role: Role, token: Any, expected: Any) -> None:
    runner = runner_of(Evaluate(Input(0)), [Role.VALUE, role], [Port.VALUE])
    assert outcome(runner, [5, token]) == {Port.VALUE: expected}


@pytest.mark.parametrize(("token", "then", "otherwise"), [
    (5, None, SKIPPED), (0, SKIPPED, None), (FAILED, FAILED, FAILED), (SKIPPED, SKIPPED, SKIPPED),
])  # fmt: skip
def test_branch(token: Any, then: Any, otherwise: Any) -> None:
    runner = runner_of(Branch(Input(0)), [Role.VALUE], [Port.THEN, Port.ELSE])
    assert outcome(runner, [token]) == {Port.THEN: then, Port.ELSE: otherwise}


@pytest.mark.parametrize(
    "names", list(itertools.product(TOKENS, ["value", "error", "skip"], ["value", "error", "skip"]))
)
def test_choose_reads_only_what_it_chooses(names: tuple[str, str, str]) -> None:
    condition, then, otherwise = (TOKENS[name] for name in names)
    then = "then" if then == 5 else then
    otherwise = "else" if otherwise == 5 else otherwise
    runner = runner_of(ChooseAction(Input(0), Input(1), Input(2)), [Role.VALUE] * 3, [Port.VALUE])
    found = outcome(runner, [condition, then, otherwise])[Port.VALUE]
    chosen = condition if condition in (FAILED, SKIPPED) else then if condition else otherwise
    if chosen is SKIPPED:
        assert isinstance(found, Failed)
        assert "branch that did not run" in found.failure.message
    else:
        assert found == chosen


@pytest.mark.parametrize(("token", "expected"), [(FAILED, FAILED), (SKIPPED, SKIPPED)])
def test_choose_inside_a_block_goes_with_it(token: Any, expected: Any) -> None:
    runner = runner_of(ChooseAction(constant(True), Input(0), Input(0)), [Role.VALUE, Role.GUARD], [Port.VALUE])
    assert outcome(runner, [5, token]) == {Port.VALUE: expected}


def test_yield_of_an_error_or_skip_sends_nothing() -> None:
    for token in (FAILED, SKIPPED):
        runner = runner_of(SendYield("p", Input(0)), [Role.VALUE], [])
        assert runner.handle(events.TokenArrived(0, (0,), token)) == [events.ReportFrame((0,))]


def test_an_expression_that_raises_is_a_failure_of_its_statement() -> None:
    runner = runner_of(Evaluate(Compare("<", Input(0), Input(1))), [Role.VALUE] * 2, [Port.VALUE])
    found = outcome(runner, [1, "text"])[Port.VALUE]
    assert (found.failure.kind, found.failure.location) == ("TypeError", "day.py:1")


@pytest.mark.parametrize(("x", "y"), list(itertools.product([0, 1], repeat=2)))
def test_blocks_in_blocks(ops: Any, x: int, y: int) -> None:
    with Pipeline() as p:
        a, b = PlaceParam("x"), PlaceParam("y")
        with If(And(a == 1, Not(b == 1))):
            Yield("only x", place="r")
        with Else():
            with If(Or(a == 1, b == 1)):
                two = ops.Echo(x="y", site="b")
                with ForEach([1]) as item:
                    Yield(ops.Both(x=item, y=two, site="c"), place="loop")
            with Else():
                none = ops.Echo(x="none", site="a")
            Yield(Choose(Or(a == 1, b == 1), two, none), place="r")
    for seed in range(6):
        probe, end = run(p, seed, [{"x": x, "y": y}])
        assert isinstance(end, JobFinished)
        assert end.status == "finished"
        found = probe.results()
        assert found["r"] == ["only x" if (x, y) == (1, 0) else "y" if y else "none"]
        assert found.get("loop") == ([[1, "y"]] if y else None)


def test_after_waits_for_all_of_a_block_and_passes_over_skips(ops: Any) -> None:
    with Pipeline() as p:
        with If(PlaceParam("go") == 1) as block, ForEach([1, 2, 3], window=1) as item:
            inside = ops.Echo(x=item, site="b")
        Yield(ops.Echo(x="later", site="c", after=block), place="later")
    assert inside is not None
    for go, seed in itertools.product([0, 1], range(6)):
        probe, _ = run(p, seed, [{"go": go}])
        assert probe.results() == {"later": ["later"]}
        ends = [site for site, event, _ in probe.log for _ in returned(event)]
        assert ends == (["b", "b", "b", "c"] if go else ["c"])
