"""The parameter sets of a job on their way to the homesite: a bounded number there, the others on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dfmesh.engine.messages import AddParameters, AnyMessage, CloseParameters
from dfmesh.targets.up.messages import OwnerLeft
from dfmesh.targets.up.record_log import RecordLog, RecordLogError, RecordLogReader
from dfmesh.targets.wire import Codec

MAX_AT_HOMESITE = 1024
"""Parameter sets of a job that run, or wait at the homesite, at a time."""


class ParameterSpool:
    """Hands parameter sets on in order. All are in the job's log already; those too many are read from there again.

    Attributes:
        given: Parameter sets so far.
        closed: Whether there will be no more.
    """

    def __init__(self, log: RecordLog, codec: Codec, send: Callable[[AnyMessage], None]) -> None:
        """Begin with none.

        Args:
            log: The job's log, into which everything goes.
            codec: Of the log.
            send: Takes messages to the homesite.
        """
        self.given = 0
        self.closed = False
        self._log = log
        self._codec = codec
        self._send = send
        self._at_homesite = 0
        self._waiting = 0
        self._reader: RecordLogReader | None = None

    def add(self, message: AddParameters) -> None:
        """Take a parameter set.

        Raises:
            WireError: it cannot be written down.
        """
        if self.closed:
            return
        if not self._waiting and self._at_homesite >= MAX_AT_HOMESITE:
            self._log.flush()
            self._reader = RecordLogReader(self._log, self._codec, self._log.size)
        self._log.append(message)
        self.given += 1
        if self._at_homesite >= MAX_AT_HOMESITE:
            self._waiting += 1
        else:
            self._at_homesite += 1
            self._send(message)

    def close(self, message: CloseParameters | OwnerLeft) -> None:
        """There will be no more, for whatever reason."""
        if self.closed:
            return
        self._log.append(message)
        self.closed = True
        if not self._waiting:
            self._send(CloseParameters(message.job))

    def restore(self, job: str, given: int, *, closed: bool) -> None:
        """Go on with what the log holds, from its beginning.

        Args:
            job: Id of the job.
            given: Parameter sets in it.
            closed: Whether it says that there will be no more.
        """
        self.given = self._waiting = given
        self.closed = closed
        self._reader = RecordLogReader(self._log, self._codec)
        self._fill()
        if closed and not given:
            self._send(CloseParameters(job))

    def frame_finished(self) -> None:
        """A parameter set is done: another one may go."""
        self._at_homesite -= 1
        if self._waiting:
            self._fill()

    def _fill(self) -> None:
        self._log.flush()
        while self._waiting and self._at_homesite < MAX_AT_HOMESITE:
            message = self._next_waiting()
            self._waiting -= 1
            self._at_homesite += 1
            self._send(message)
            if self.closed and not self._waiting:
                self._send(CloseParameters(message.job))
        if not self._waiting:
            self._reader = None

    def _next_waiting(self) -> AddParameters:
        """Read on in the log, where there may be other messages in between."""
        message: Any = None
        while not isinstance(message, AddParameters):
            message = None if self._reader is None else self._reader.next()
            if message is None:
                raise RecordLogError(f"{self._log.path} has lost a parameter set")
        return message
