"""Calls of one operation that one thread makes one after the other, as long as none of them blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from dfmesh.engine.worker_thread import Ended, Receiver, Work

if TYPE_CHECKING:
    from dfmesh.engine.adapters.present_call import Tell
    from dfmesh.engine.call_plan import CallPlan


class CallRun(Work):
    """What `Work` is for one call. Its results come in the order of the calls.

    One thread goes through it, so all its calls together need one permit to compute, if any. Calls that it has not
    begun can be taken away from it at any moment, by `split`, for others to make.

    Attributes:
        receiver: Gets the results.
        plan: How the calls are made.
        first: Number of the first call; the others follow it.
        given: How many results were given to the receiver.
        seen: The call that was going on when somebody last looked how far the run is; -1 before.
        size: How many calls it makes, and will make as it is now.
        position: The call that goes on, from 0 on; the last one that did between calls; -1 before the first.
    """

    __slots__ = ("_arguments", "_function", "_rest", "first", "given", "plan", "position", "receiver", "seen", "size")

    def __init__(
        self,
        receiver: RunReceiver,
        plan: CallPlan,
        first: int,
        function: Callable[..., Any],
        arguments: Sequence[dict[str, Any]],
    ) -> None:
        """Prepare calls.

        Args:
            receiver: Gets the results.
            plan: How the calls are made.
            first: Number of the first one.
            function: What is called.
            arguments: Its keywords for each call.
        """
        super().__init__(_nothing, _unheard, plan.operation, None)
        self.receiver = receiver
        self.plan = plan
        self.first = first
        self.given = 0
        self.seen = -1
        self.position = -1
        self.size = len(arguments)
        self._function = function
        self._arguments = arguments
        # Threads take from it one by one: each number goes to one of them.
        self._rest = iter(range(len(arguments)))

    def advance(self) -> bool:
        """Turn to the next call; False if there is none."""
        if self.abandoned:
            return False
        position = next(self._rest, -1)
        if position < 0:
            return False
        self.position = position
        self.call = None
        return True

    @property
    def leaves(self) -> bool:
        """As `Work.leaves`."""
        return self.plan.leaves

    def invoke(self) -> Any:
        """Make the call."""
        return self._function(**self._arguments[self.position])

    def tell(self) -> Tell | None:
        """As `Work.tell`."""
        return partial(self.receiver.say, self.first + self.position)

    def split(self) -> list[Work]:
        """Take away the calls that have not begun, as works of their own, and tell the receiver of that.

        Returns:
            What is to be put to work. If the run needs a permit, that is nothing: each work needs its own one, and the
            receiver sees to that.
        """
        works: dict[int, Work] = {}
        for position in list(self._rest):  # In one go: what the thread takes must all come before.
            function = partial(self._function, **self._arguments[position])
            call = self.first + position
            works[call] = Work(function, Ended(self.receiver, call, self.plan), self.operation, None)
        self.size -= len(works)
        self.receiver.run_split(self, works)
        if self.given == self.size:
            self.receiver.run_over(self)
        return list(works.values()) if self.permit is None else []

    def take(self, count: int) -> int:
        """Count results as given; gives the number of the call of the first one."""
        call = self.first + self.given
        self.given += count
        if self.given == self.size:
            self.receiver.run_over(self)
        return call

    def end(self, value: Any, error: BaseException | None, seconds: float) -> None:
        """Hand over a result that is alone, or an exception; of a run that was stopped, it is the last one."""
        if self.abandoned and self.permit is not None:
            self.permit.give_back()
        call = self.take(1)
        self.receiver.call_ended(call, self.plan, value, error, seconds, self._arguments[call - self.first])


class RunReceiver(Receiver, Protocol):
    """Who gets the results of a run, on the event loop."""

    def run_ended(self, run: CallRun, first: int, given: list[Any], seconds: list[float]) -> None:
        """Calls of a run that follow one another have ended with values."""
        ...

    def run_split(self, run: CallRun, works: dict[int, Work]) -> None:
        """Calls of a run, by number, go on as works of their own."""
        ...

    def run_over(self, run: CallRun) -> None:
        """All results of a run have been given, or are about to be."""
        ...


def _nothing() -> None:
    """Stands for the function of a single call."""


def _unheard(_value: Any, _error: BaseException | None, _seconds: float) -> None:
    """Stands for who hears of the end of a single call."""
