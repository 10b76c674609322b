"""How calls are made, and who hears what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dfmesh.engine.adapters import Adapter, AdapterKind, Raised
from dfmesh.engine.call_limits import CallLimits, Limits
from dfmesh.engine.call_lines import Whose
from dfmesh.engine.message_parts import Failure, JobLine

ASYNC = (AdapterKind.COROUTINE, AdapterKind.ASYNC_GENERATOR)
"""Adapters that run on the event loop."""


BRIEF = 0.0005
"""Seconds that a call takes on average, below which one thread makes many calls one after the other."""


class CallOutcome:
    """What happens to the calls of a job; called on the event loop. This one takes note of nothing."""

    def returned(self, call: int, value: Any, seconds: float) -> None:
        """The call has ended with a value."""

    def raised(self, call: int, raised: Raised, seconds: float) -> None:
        """The call, or its generator, has ended with an error."""

    def streams(self, call: int) -> None:
        """The call has returned a generator."""

    def broken(self, call: int, failure: Failure, seconds: float) -> None:
        """The call has ended with the error of a stream that it was fed with."""

    def taken(self, call: int, index: int, count: int) -> None:
        """The call has taken items of a stream that it is fed with."""

    def all_returned(self, calls: Sequence[int], given: list[Any], seconds: list[float]) -> None:
        """Calls have ended with values."""

    def items(self, call: int, given: list[Any], seconds: float, *, more: bool) -> None:
        """The generator has produced items, after it was asked to; if `more`, it goes on with others asked for."""

    def exhausted(self, call: int) -> None:
        """The generator has no more items."""

    def whose(self, call: int) -> Whose | None:
        """Tell operation, statement and frame of a call; None once it is over. Called on any thread."""

    def said(self, lines: tuple[JobLine, ...], dropped: int) -> None:
        """Calls have printed or logged lines, and so many more that were dropped."""


NOBODY = CallOutcome()
"""The outcome of calls whose job has ended."""


class CallPlan:
    """How the calls of one transition are made.

    Attributes:
        operation: Name of the operation.
        provider: Provider in the site; None for the site's own interface.
        retries: How often a failed call is tried again.
        timeout: Seconds one attempt may take.
        adapter: The adapter, once it was loaded; stays None for one whose calls run in processes of their own.
        simple: One attempt of a plain function, without a time-out: needs no task.
        limits: What its calls have to keep to; None if to nothing, or as long as that is not known.
        loading: Seconds that it took to load the adapter, if that was done for the present job.
        leaves: Whether what the calls give goes, as a whole, to other sites.
        brief: Whether its calls take so little time that one thread had better make many of them.
    """

    __slots__ = (
        "adapter",
        "brief",
        "leaves",
        "limits",
        "loading",
        "operation",
        "provider",
        "retries",
        "simple",
        "timeout",
    )

    def __init__(self, operation: str, provider: str | None, retries: int, timeout: float | None) -> None:
        self.operation = operation
        self.provider = provider
        self.retries = retries
        self.timeout = timeout
        self.adapter: Adapter | None = None
        self.simple = False
        self.limits: Limits | None = None
        self.loading = 0.0
        self.leaves = False
        self.brief = True

    def load(self, adapter: Adapter, limits: CallLimits | None = None) -> Adapter:
        """Note the adapter, and what its calls have to keep to at this site."""
        self.adapter = adapter
        if limits is not None:
            self.limits = limits.of(adapter.spec, blocks=adapter.kind not in ASYNC)
        self.simple = adapter.kind is AdapterKind.FUNCTION and not self.retries and self.timeout is None
        return adapter
