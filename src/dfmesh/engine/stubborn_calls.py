"""Calls that are stopped and go on nevertheless: stopped again and again, named in the log, counted."""

from __future__ import annotations

import asyncio
import logging

from dfmesh.engine import stopping
from dfmesh.engine.worker_thread import Work, WorkerThread
from dfmesh.errors import DfmeshError

STUCK_LIMIT = 1000
"""Threads that hang in calls which did not stop, before the site takes no further work for threads."""

STOP_SECONDS = 2.0
"""Time in which a call that is stopped should end; then the log says that it does not."""

_PAUSES = (0.05, 0.2, 0.5, STOP_SECONDS - 0.75, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
"""Seconds until a call is stopped once more: the adapter may have caught the exception, or waited in C."""

_LATE = 4
"""How often a call has been stopped once more when `STOP_SECONDS` are over."""

_log = logging.getLogger("dfmesh.engine")


class TooManyStuckError(DfmeshError):
    """A site has no thread left for a call: too many hang in calls that did not stop."""


class StubbornCalls:
    """Those on the threads of one site. To be used on the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: str) -> None:
        """Begin with none.

        Args:
            loop: The event loop.
            owner: Whose threads these are, such as `site 'us'`, for the log; may be empty.
        """
        self._loop = loop
        self._owner = owner
        self._stuck: dict[Work, None] = {}

    @property
    def operations(self) -> list[str]:
        """Operations of the calls that hang, one entry per call."""
        return [work.operation for work in self._stuck]

    @property
    def too_many(self) -> bool:
        """Whether so many hang that the site takes no further work for threads."""
        return len(self._stuck) >= STUCK_LIMIT

    def refusal(self) -> TooManyStuckError:
        """Make what a call is told that is not taken."""
        operations = ", ".join(sorted({work.operation for work in self._stuck})[:5])
        return TooManyStuckError(
            f"{len(self._stuck)} threads of {self._owner or 'the site'} hang in calls that did not stop ({operations});"
            " restart the site, and declare `isolation: process` for these adapters"
        )

    def ended(self, work: Work, seconds: float) -> None:
        """Take note that a call that was stopped is over."""
        if work in self._stuck:
            del self._stuck[work]
            _log.info("%s: a call of %s that did not stop has ended after %.1f s", self._owner, work.operation, seconds)

    def insist(self, work: Work, worker: WorkerThread, attempt: int = 0) -> None:
        """Raise `CallStopped` in the code of a call, and end what it waits for, again and again until it is over.

        Code that cleans up because of it has `STOP_SECONDS` for that.
        """
        if worker.work is not work:
            return
        if attempt == _LATE:
            self._note_stuck(work)
        with worker.gate:
            if worker.work is not work:
                return
            has_time = 0 < attempt < _LATE and stopping.is_cleaning_up(worker.thread)
            if not worker.shielded and not has_time:
                stopping.raise_in(worker.thread)
                stopping.end_wait(worker.thread)
        if attempt < len(_PAUSES):
            self._loop.call_later(_PAUSES[attempt], self.insist, work, worker, attempt + 1)

    def _note_stuck(self, work: Work) -> None:
        self._stuck[work] = None
        _log.warning(
            "%s%s did not stop within %g s although %s: it waits in code that cannot be interrupted, or catches "
            "CallStopped. It goes on in a thread of its own, unheard. Declare `isolation: process` for its adapter "
            "to have such calls ended.",
            work.operation,
            f" at {self._owner}" if self._owner else "",
            STOP_SECONDS,
            work.stopping,
        )
