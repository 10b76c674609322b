"""What is told of the failures of one job at one site: each that the job fails by, of the others the first ones."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from dfmesh.engine import messages
from dfmesh.engine.adapters.hidden_secrets import HIDDEN_SECRETS
from dfmesh.engine.call_lines import CUT, LONGEST
from dfmesh.engine.message_parts import Failure, JobLine
from dfmesh.engine.statistics import Statistics
from dfmesh.engine.wiring import WiredNet
from dfmesh.netir import Transition

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
    ) -> None:
        """Get ready to tell.

        Args:
            job: Id of the job.
            wired: The site's part of it.
            send: Sends a message to a peer.
            statistics: Of each transition; its first failure is noted there.
            now: Gives the time, in seconds since 1970.
        """
        self._job = job
        self._wired = wired
        self._site = wired.net.site
        self._homesite = wired.net.homesite
        self._send = send
        self._statistics = statistics
        self._now = now
        # Iterations that failed after the first one, by transition.
        self._further: dict[int, int] = {}

    def tell(self, failure: Failure) -> None:
        """Tell the homesite of something by which the job fails."""
        self._send(self._homesite, messages.FailureReport(self._job, failure))

    def failed(self, transition: int, failure: Failure, *, tolerated: bool, before: Callable[[], None]) -> None:
        """Take note of a failure.

        Args:
            transition: Position of what failed.
            failure: As the client may have it.
            tolerated: Whether it is for a loop to handle, and the job goes on.
            before: Called before a line is sent, to send those that were said earlier.
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
            before()
            where = f"{failure.location}: " if failure.location else ""
            cause = failure.to_error().cause_and_place
            line = self._line(failure, f"{where}this iteration failed, which its loop tolerates: {cause}")
            self._send_lines(line)
            _log.warning("%s: %s #%s: %s", self._site, line.operation, ".".join(map(str, line.frame)), line.text)

    def tell_further(self) -> None:
        """Say how many more iterations have failed than those that were told of, at the end of the job."""
        further, self._further = self._further, {}
        lines = [
            self._line(self._wired.transitions[transition].ir, _further_text(count, self._wired.transitions[transition].ir))
            for transition, count in further.items()
            if count
        ]
        if lines:
            self._send_lines(*lines)

    def _line(self, whose: Failure | Transition, text: str) -> JobLine:
        frame = whose.frame if isinstance(whose, Failure) else ()
        name = whose.operation if isinstance(whose, Failure) else whose.name
        text = HIDDEN_SECRETS.hide(" ".join(text.splitlines()))
        text = text if len(text) <= LONGEST else text[:LONGEST] + CUT
        return JobLine(self._now(), name, whose.node, frame, "WARNING", LOGGER, text)

    def _send_lines(self, *lines: JobLine) -> None:
        self._send(self._homesite, messages.JobLines(self._job, self._site, lines))


