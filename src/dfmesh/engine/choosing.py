"""Choose: one of two values, by a condition; the other may have failed or been skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dfmesh.engine.tokens import ABNORMAL, SKIPPED, Failed, NotSelected, Token
from dfmesh.errors import DfmeshError
from dfmesh.netir import Evaluator, Frame, Role, SelectorError

if TYPE_CHECKING:
    from dfmesh.engine.net_runner import NetRunner
    from dfmesh.engine.wiring import WiredTransition


class AbnormalInput(Exception):  # noqa: N818 - it carries a token, it is no error
    """Something was read that failed or was skipped.

    Attributes:
        token: What was read.
    """

    def __init__(self, token: Token) -> None:
        self.token = token


class Reader(list[Any]):
    """Inputs of which only those that are read matter.

    Reading one raises `AbnormalInput` if it failed or was skipped, `SelectorError` if a selector did not fit it.
    """

    def __getitem__(self, index: Any) -> Any:
        token = super().__getitem__(index)
        if isinstance(token, NotSelected):
            raise SelectorError(token.failure.message)
        if isinstance(token, ABNORMAL):
            raise AbnormalInput(token)
        return token


def read(evaluate: Evaluator, values: list[Any]) -> Any:
    """Evaluate an expression of which some inputs may be abnormal.

    Raises:
        AbnormalInput: it reads one that is.
        SelectorError: a selector does not fit.
    """
    return evaluate(Reader(values))


def guarding(transition: WiredTransition, values: list[Any]) -> Token:
    """Give the failure or skip that a guard or trigger imposes; None if there is none."""
    for role, token in zip(transition.roles, values, strict=True):
        if role is Role.VALUE or not isinstance(token, ABNORMAL):
            continue
        if role is Role.GUARD or token is not SKIPPED:
            return token
    return None


def choose(runner: NetRunner, transition: WiredTransition, frame: Frame, values: list[Any]) -> Token:
    """Give what a Choose makes of its inputs."""
    imposed = guarding(transition, values)
    if imposed is not None:
        return imposed
    failed = next((values[index] for index in transition.condition_inputs if type(values[index]) is Failed), None)
    if failed is not None:  # Also where `and` or `or` would not have looked at it: as for If.
        return failed
    try:
        truth = bool(read(transition.evaluate, values))
        return read(transition.then if truth else transition.otherwise, values)
    except AbnormalInput as found:
        if found.token is not SKIPPED:
            return found.token
        left_out = DfmeshError("the value chosen belongs to a branch that did not run")
        left_out.shows_no_value = True
        error: Exception = left_out
    except Exception as raised:
        error = raised
    return runner.failed(transition, frame, error)
