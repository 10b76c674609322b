"""Messages that wait until modules are loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dfmesh.engine.held_messages import HeldMessages
from dfmesh.engine.messages import CloseParameters, OpenFrame

FIRST, SECOND = OpenFrame("j", (0,), {}), CloseParameters("j")


def holding() -> tuple[HeldMessages, list[Callable[[], None]], list[Any]]:
    loads: list[Callable[[], None]] = []
    delivered: list[Any] = []
    held = HeldMessages(lambda _operations, loaded: loads.append(loaded))
    assert held.hold("app", FIRST, [("calc.Add", None)], lambda peer, message: delivered.append((peer, message)))
    assert held.hold_behind("app", SECOND)
    return held, loads, delivered


def test_they_come_in_order_once_all_is_loaded() -> None:
    held, loads, delivered = holding()
    assert delivered == []
    loads[0]()
    assert delivered == [("app", FIRST), ("app", SECOND)]
    assert not held.hold_behind("app", SECOND)


def test_those_of_a_job_that_is_given_up_never_come() -> None:
    for give_up in (lambda held: held.drop("j"), HeldMessages.close):
        held, loads, delivered = holding()
        give_up(held)
        loads[0]()
        assert delivered == []
