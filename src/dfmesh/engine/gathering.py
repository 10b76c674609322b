"""Collect and reduce: what comes out of a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dfmesh.engine.message_parts import Failure
from dfmesh.engine.tokens import ABNORMAL, MISSING, Failed, NotSelected, Token
from dfmesh.errors import DfmeshError
from dfmesh.netir import Collect, Frame, OnError, Reduce, SelectorError

if TYPE_CHECKING:
    from dfmesh.engine.net_runner import NetRunner
    from dfmesh.engine.wiring import WiredScope, WiredTransition


class Gathering:
    """What a collect or reduce has got so far below one frame.

    Attributes:
        inputs: The other inputs, once they are complete; None before.
        arguments: Reduce: further arguments of the operation, once the other inputs are complete.
        outcome: A failure or skip that the other inputs decided; None if there is none.
        tokens: Tokens that came and are not yet folded, by index of the iteration.
        came: How many came.
        count: How many there will be; None while the loop still opens some.
        failure: Why the loop itself failed.
        value: Reduce: the value so far.
        next: Reduce: index of the next token to fold.
        busy: Reduce: a call is going on.
        merged: Reduce: whether a call has merged values.
        counted: Reduce: iterations that count as done though their tokens are not folded yet.
    """

    __slots__ = (
        "arguments",
        "busy",
        "came",
        "count",
        "counted",
        "failure",
        "inputs",
        "merged",
        "next",
        "outcome",
        "tokens",
        "value",
    )

    def __init__(self) -> None:
        self.inputs: list[Any] | None = None
        self.arguments: dict[str, Any] = {}
        self.outcome: Token = None
        self.tokens: dict[int, Token] = {}
        self.came = 0
        self.count: int | None = None
        self.failure: Failure | None = None
        self.value: Any = MISSING
        self.next = 0
        self.busy = False
        self.merged = False
        self.counted: set[int] = set()


class Gatherings:
    """The NetRunner's rules for collect and reduce."""

    def __init__(self, runner: NetRunner) -> None:
        self._runner = runner

    def gather(self, transition: WiredTransition, frame: Frame, token: Token) -> None:
        """A token of one iteration has come."""
        if isinstance(token, NotSelected):
            token = self._runner.failed(transition, frame, SelectorError(token.failure.message), transition.body)
        gathering = self._at(transition, frame[:-1])
        gathering.tokens[frame[-1]] = token
        gathering.came += 1
        if not isinstance(transition.ir.action, Reduce):
            self._iteration_done(transition, frame)
            self._conclude(transition, frame[:-1], gathering)
        elif gathering.inputs is None:  # They may depend on the end of the loop, which must not wait for them.
            gathering.counted.add(frame[-1])
            self._iteration_done(transition, frame)
        else:
            self._fold(transition, frame[:-1], gathering)

    def inputs_complete(self, transition: WiredTransition, frame: Frame, values: list[Any]) -> None:
        """All inputs besides the gathered ones are there."""
        gathering = self._at(transition, frame)
        gathering.inputs = values
        if isinstance(transition.ir.action, Reduce):
            gathering.arguments = {name: item(values) for name, item in transition.arguments}
            if transition.initial is not None:
                gathering.value = transition.initial(values)
            self._fold(transition, frame, gathering)
        else:
            self._conclude(transition, frame, gathering)

    def decided(self, transition: WiredTransition, frame: Frame, outcome: Token) -> None:
        """The other inputs failed or were skipped; what is gathered does not matter any more."""
        gathering = self._at(transition, frame)
        gathering.inputs = []
        gathering.outcome = outcome
        self._settle(transition, frame, gathering)

    def ended(self, scope: WiredScope, frame: Frame, count: int, failure: Failure | None) -> None:
        """The loop has told how many iterations there are."""
        for transition in scope.gatherers:
            gathering = self._at(transition, frame)
            gathering.count = count
            gathering.failure = failure
            self._settle(transition, frame, gathering)

    def _at(self, transition: WiredTransition, frame: Frame) -> Gathering:
        gathering = transition.gatherings.get(frame)
        if gathering is None:
            gathering = transition.gatherings[frame] = Gathering()
        return gathering

    def _iteration_done(self, transition: WiredTransition, frame: Frame) -> None:
        if transition.body is not None:
            self._runner.done(self._runner.wired.scopes[transition.body], frame)

    def _settle(self, transition: WiredTransition, frame: Frame, gathering: Gathering) -> None:
        if isinstance(transition.ir.action, Reduce):
            self._fold(transition, frame, gathering)
        else:
            self._conclude(transition, frame, gathering)

    def _on_error(self, transition: WiredTransition) -> OnError:
        action = transition.ir.action
        return action.on_error if isinstance(action, Collect | Reduce) else OnError.FAIL

    # Collect

    def _conclude(self, transition: WiredTransition, frame: Frame, gathering: Gathering) -> None:
        if gathering.inputs is None or gathering.came != gathering.count or frame not in transition.gatherings:
            return
        del transition.gatherings[frame]
        self._runner.finish(transition, frame, self._collected(transition, gathering))

    def _collected(self, transition: WiredTransition, gathering: Gathering) -> Token:
        if gathering.outcome is not None:
            return gathering.outcome
        if gathering.failure is not None:
            return Failed(gathering.failure)
        tokens = [gathering.tokens[index] for index in range(gathering.came)]
        on_error = self._on_error(transition)
        if on_error is OnError.FAIL:
            failed = next((token for token in tokens if isinstance(token, Failed)), None)
            if failed is not None:
                return failed
        if on_error is OnError.COLLECT:
            tokens = [token.failure.to_item() if isinstance(token, Failed) else token for token in tokens]
        return [token for token in tokens if not isinstance(token, ABNORMAL)]

    # Reduce

    def _fold(self, transition: WiredTransition, frame: Frame, gathering: Gathering) -> None:
        """Fold the tokens that are next in order, until a call is needed or the next one is not there."""
        if gathering.inputs is None or gathering.busy:
            return
        while gathering.next in gathering.tokens:
            token = gathering.tokens.pop(gathering.next)
            if isinstance(token, Failed) and gathering.outcome is None and self._on_error(transition) is OnError.FAIL:
                gathering.outcome = token
            if gathering.outcome is None and not isinstance(token, ABNORMAL):
                if gathering.value is MISSING:
                    gathering.value = token
                else:
                    self._merge(transition, frame, gathering, token)
                    return
            self._step(transition, frame, gathering)
        if gathering.next == gathering.count and frame in transition.gatherings:
            del transition.gatherings[frame]
            self._runner.finish(transition, frame, self._reduced(transition, frame, gathering))

    def _merge(self, transition: WiredTransition, frame: Frame, gathering: Gathering, token: Token) -> None:
        action = transition.ir.action
        if not isinstance(action, Reduce):
            raise TypeError(f"{transition.ir.name} is no reduce")
        gathering.busy = True
        arguments = {action.left: gathering.value, action.right: token, **gathering.arguments}
        self._runner.calling.start(transition, frame, arguments)

    def _step(self, transition: WiredTransition, frame: Frame, gathering: Gathering) -> None:
        index = gathering.next
        gathering.next += 1
        if index in gathering.counted:
            gathering.counted.discard(index)
        else:
            self._iteration_done(transition, (*frame, index))

    def folded(self, transition: WiredTransition, frame: Frame, value: Any) -> None:
        """A merge has returned."""
        gathering = self._at(transition, frame)
        gathering.busy = False
        gathering.merged = True
        gathering.value = value
        self._step(transition, frame, gathering)
        self._fold(transition, frame, gathering)

    def fold_failed(self, transition: WiredTransition, frame: Frame, token: Failed) -> None:
        """A merge has raised; the result is its failure."""
        gathering = self._at(transition, frame)
        gathering.busy = False
        if gathering.outcome is None:
            gathering.outcome = token
        self._step(transition, frame, gathering)
        self._fold(transition, frame, gathering)

    def _reduced(self, transition: WiredTransition, frame: Frame, gathering: Gathering) -> Token:
        if gathering.outcome is not None:
            return gathering.outcome
        if gathering.failure is not None:
            return Failed(gathering.failure)
        if gathering.value is MISSING:
            error = DfmeshError("there was nothing to reduce; give initial=... for loops that may be empty")
            error.shows_no_value = True
            return self._runner.failed(transition, frame, error)
        if not gathering.merged and transition.ir.id in self._runner.not_alone:
            error = DfmeshError(
                "there was a single value, which a rule of residency keeps from going where the merged ones may; "
                "it is not given on as it is"
            )
            error.shows_no_value = True
            return self._runner.failed(transition, frame, error)
        return gathering.value
