"""What is told of the failures of one job at one site: each that the job fails by, of the others the first ones."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from dfmesh.engine import messages
from dfmesh.engine.adapters.hidden_secrets import HIDDEN_SECRETS
from dfmesh.engine.call_lines import CUT, LONGEST
from dfmesh.engine.line_text import whose_text
from dfmesh.engine.message_parts import Failure, JobLine
from dfmesh.engine.statistics import Statistics
from dfmesh.engine.wiring import WiredNet
from dfmesh.netir import Frame

_log = logging.getLogger("dfmesh.engine")

LOGGER: Final = "dfmesh"
"""Logger of the lines of a job's log that say what its loops tolerate."""


class FailureReports:
    """Tells the homesite of failures, and the log of the job of those that a loop tolerates.

    Of the latter it is one line for the first one of each statement, and one at the end that counts the others,
    however many they are.
    """

    def __init__(
        self,
        job: str,
        wired: WiredNet,
        send: Callable[[str, messages.AnyMessage], Any],
        statistics: list[Statistics],
        now: Callable[[], float],
        flush_lines: Callable[[], None],
    ) -> None:
        """Get ready to tell.

        Args:
            job: Id of the job.
            wired: The site's part of it.
            send: Sends a message to a peer.
            statistics: Of each transition; its first failure is noted there.
            now: Gives the time, in seconds since 1970.
            flush_lines: Sends what calls that are over have said, which is to come before what is told of their ends.
        """
        self._job = job
        self._wired = wired
        self._site = wired.net.site
        self._homesite = wired.net.homesite
        self._send = send
        self._statistics = statistics
        self._now = now
        self._flush_lines = flush_lines
        # Iterations that failed after the first one, by transition.
        self._further: dict[int, int] = {}

    def tell(self, failure: Failure) -> None:
        """Tell the homesite of something by which the job fails."""
        self._send(self._homesite, messages.FailureReport(self._job, failure))

    def failed(self, transition: int, failure: Failure, *, tolerated: bool) -> None:
        """Take note of a failure.

        Args:
            transition: Position of what failed.
            failure: As the client may have it.
            tolerated: Whether it is for a loop to handle, and the job goes on.
        """
        counted = self._statistics[transition]
        if counted.first_failure is None:
            counted.first_failure = failure
        if not tolerated:
            self.tell(failure)
        elif transition in self._further:
            self._further[transition] += 1
        else:
            self._further[transition] = 0
            self._flush_lines()
            cause = failure.to_error().cause_and_place
            text = f"failed in this iteration, which its loop tolerates: {cause}"
            line = self._line(failure.operation, failure.node, failure.location, text, failure.frame)
            self._send_lines([line])
            _log.warning("%s: %s", whose_text(f"site {self._site}:", line.operation, line.frame), line.text)

    def tell_further(self) -> None:
        """Say how many more iterations have failed than those that were told of, at the end of the job."""
        lines = []
        for transition, count in self._further.items():
            if count:
                ir = self._wired.transitions[transition].ir
                text = f"and {count} more iteration{'s' * (count != 1)} of {ir.name} failed"
                lines.append(self._line(ir.name, ir.node, ir.location, text))
                self._further[transition] = 0
        if lines:
            self._send_lines(lines)

    def close(self) -> None:
        """Tell nobody any more."""
        self._send, self._flush_lines = _nowhere, _nothing

    def _line(self, operation: str, node: str, location: str, text: str, frame: Frame = ()) -> JobLine:
        where = f"{location}: " if location else ""
        text = HIDDEN_SECRETS.hide(" ".join(f"{where}{text}".splitlines()))
        text = text if len(text) <= LONGEST else text[:LONGEST] + CUT
        return JobLine(self._now(), operation, node, frame, "WARNING", LOGGER, text)

    def _send_lines(self, lines: list[JobLine]) -> None:
        self._send(self._homesite, messages.JobLines(self._job, self._site, tuple(lines)))


def _nowhere(_peer: str, _message: messages.AnyMessage) -> None:
    """Sends nothing: the job is over."""


def _nothing() -> None:
    """Sends no lines: the job is over."""
