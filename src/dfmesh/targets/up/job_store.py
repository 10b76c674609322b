"""The journals of jobs that are over: how long they are kept, and what is left by a host that was killed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dfmesh.engine.messages import AddParameters, CancelJob, CloseParameters
from dfmesh.errors import SessionError
from dfmesh.targets.up.journal import (
    ENDED,
    RESULTS,
    SUBMISSION,
    Ended,
    Submission,
    read_ended,
    recover_journal,
    remove_journal,
)
from dfmesh.targets.up.messages import OwnerLeft
from dfmesh.targets.up.record_log import RecordLogError
from dfmesh.targets.wire import Codec

MOST_JOBS = 1000
"""Jobs that are over of which the journal is kept; the oldest go first."""

MOST_DAYS = 14
"""Days for which the journal of a job that is over is kept."""

MOST_BYTES = 8 * 2**30
"""Bytes of journals of jobs that are over, together; the newest one is kept whatever its size."""

_log = logging.getLogger("dfmesh.up")


class Interrupted(NamedTuple):
    """A job that was going on when its host ended.

    Attributes:
        submission: The job, and who submitted it.
        given: Parameter sets in its journal.
        last: What it says of the end of parameter sets; None if nothing.
        cancelled: Whether it was cancelled.
    """

    submission: Submission
    given: int
    last: CloseParameters | OwnerLeft | None
    cancelled: bool


class JobStore:
    """The directory with the journals of all jobs of a host.

    Attributes:
        directory: The directory.
        ended: Jobs that are over, the oldest first.
    """

    def __init__(self, directory: Path, codec: Codec) -> None:
        """Use a directory.

        Args:
            directory: The directory; made if it is not there.
            codec: Of the journals.

        Raises:
            OSError: it cannot be used.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory = directory
        self.ended: dict[str, Ended] = {}
        self._codec = codec
        self._size = 0

    def load(self) -> Iterator[Interrupted]:
        """Read what is there, and give the jobs that were going on, the oldest first; others are in `ended`.

        What cannot be read is passed over with a warning, and stays where it is.
        """
        found = [read_ended(path.parent) for path in self.directory.glob(f"*/{ENDED}")]
        for ended in sorted((one for one in found if one is not None), key=lambda one: one.entry.ended or 0.0):
            self._keep(ended)
        self._trim()
        interrupted = []
        for path in self.directory.glob(f"*/{SUBMISSION}"):
            if path.parent.name in self.ended:
                continue
            if not path.stat().st_size:
                remove_journal(path.parent)  # The disk was full: there is nothing to go on with.
            else:
                try:
                    interrupted.append(self._interrupted(path.parent))
                except (RecordLogError, OSError) as error:
                    _log.warning("a job cannot be gone on with: %s", error)
        yield from sorted(interrupted, key=lambda job: job.submission.origin.submitted)

    def _interrupted(self, directory: Path) -> Interrupted:
        given, last, cancelled = 0, None, False

        def take(message: Any) -> None:
            nonlocal given, last, cancelled
            given += isinstance(message, AddParameters)
            cancelled = cancelled or isinstance(message, CancelJob)
            last = message if isinstance(message, CloseParameters | OwnerLeft) else last

        submission = recover_journal(directory, self._codec, take)
        return Interrupted(submission, given, last, cancelled)

    def path(self, job: str) -> Path:
        """Give the directory of a job's journal."""
        return self.directory / job

    def results_path(self, job: str) -> Path:
        """Give the file with a job's results."""
        return self.directory / job / RESULTS

    def add(self, ended: Ended) -> None:
        """Take a job that is over; older ones may go for it."""
        self._keep(ended)
        self._trim()

    def _keep(self, ended: Ended) -> None:
        self.ended[ended.entry.job] = ended
        self._size += ended.entry.size

    def _trim(self) -> None:
        while self.ended:
            oldest = next(iter(self.ended.values())).entry
            too_old = time.time() - (oldest.ended or 0.0) > MOST_DAYS * 24 * 3600
            too_many = len(self.ended) > MOST_JOBS or (self._size > MOST_BYTES and len(self.ended) > 1)
            if not (too_old or too_many):
                return
            self.forget(oldest.job)

    def forget(self, job: str) -> None:
        """Remove the journal of a job that is over; who reads it at the moment can go on."""
        self._size -= self.ended.pop(job).entry.size
        remove_journal(self.path(job))


def pick(prefix: str, jobs: list[str]) -> str:
    """Find the job of which the user has given the beginning of the id.

    Raises:
        SessionError: there is none, or there are several.
    """
    if prefix in jobs:
        return prefix
    found = [job for job in jobs if prefix and job.startswith(prefix)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise SessionError(f"there is no job {prefix!r}; `dfmesh jobs` lists those there are")
    raise SessionError(f"several jobs begin with {prefix!r}: {', '.join(found[:5])}; give more of the id")
