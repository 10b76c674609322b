"""What is kept of one job on disk: what was submitted, and all that the homesite said of it.

A directory per job:

    submission   JobOrigin, SubmitJob, AddParameters..., CloseParameters or CancelJob; a `RecordLog`
    results      JobStarted, YieldPackage, FrameFinished, ..., JobFinished; a `RecordLog`, sent to clients as it is
    ended        the job's `JobEntry`; written when the job is over
    log          what its adapters printed and logged, as text; a `SiteLog`
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dfmesh.engine.messages import SubmitJob
from dfmesh.engine.whole_file import write_whole
from dfmesh.targets.up.job_lines import JobText
from dfmesh.targets.up.messages import JobEntry, JobOrigin
from dfmesh.targets.up.record_log import RecordLog, RecordLogError, recover
from dfmesh.targets.wire import Codec

SUBMISSION, RESULTS, ENDED, LOG = "submission", "results", "ended", "log"


class Ended(msgspec.Struct, array_like=True, frozen=True):
    """What is kept of a job that is over, beside its results.

    Attributes:
        entry: As it stands in the list.
        sources: Place to the number of Yields that send to it.
        order: Position of each Yield.
        broken: Why its results are not whole; empty if they are.
    """

    entry: JobEntry
    sources: dict[str, int]
    order: dict[str, int]
    broken: str = ""


class Journal:
    """The journal of a job that is going on.

    Attributes:
        directory: Where it is.
        submission: What was submitted.
        results: What came.
        lines: What adapters printed and logged, as text.
    """

    def __init__(
        self,
        directory: Path,
        codec: Codec,
        soon: Callable[[Callable[[], None]], Any],
        on_results: Callable[[], None],
        on_broken: Callable[[OSError], None],
    ) -> None:
        """Begin a journal, or go on with one.

        Args:
            directory: Where it is; made if it is not there.
            codec: Of the messages.
            soon: As for `RecordLog`.
            on_results: Called when more results, or lines, can be read.
            on_broken: Called when something cannot be written.

        Raises:
            OSError: it cannot be written.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory = directory
        self.submission = RecordLog(directory / SUBMISSION, codec, soon, on_broken=on_broken, keep_open=False)
        self.results = RecordLog(directory / RESULTS, codec, soon, on_results, on_broken)
        self.lines = JobText(directory / LOG, soon, on_results)

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return self.submission.size + self.results.size

    def end(self, ended: Ended) -> None:
        """Note that the job is over; nothing more is written.

        Args:
            ended: What is kept beside the results.

        Raises:
            OSError: it cannot be written. A host that comes later takes the job for one that was interrupted.
        """
        self.close()
        write_whole(self.directory / ENDED, msgspec.msgpack.encode(ended))

    def close(self) -> None:
        """Write what is left, and close the files."""
        self.submission.close()
        self.results.close()
        self.lines.close()


class Submission(NamedTuple):
    """What a journal says was submitted.

    Attributes:
        origin: By whom and when.
        submit: The job.
    """

    origin: JobOrigin
    submit: SubmitJob


def read_ended(directory: Path) -> Ended | None:
    """Read what is kept of a job that is over; None if it was going on when its host ended."""
    try:
        return msgspec.msgpack.decode((directory / ENDED).read_bytes(), type=Ended)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None


def recover_journal(directory: Path, codec: Codec, take: Callable[[Any], None]) -> Submission:
    """Make the submission of an interrupted job whole, and read it.

    Args:
        directory: Where the journal is.
        codec: Of its messages.
        take: Gets all that was submitted after the job itself.

    Raises:
        RecordLogError: it is no journal, or the job was not submitted before the host ended.
        OSError: it cannot be read.
    """
    heads: list[Any] = []

    def sort_out(message: Any) -> None:
        if len(heads) < 2:
            heads.append(message)
        else:
            take(message)

    recover(directory / SUBMISSION, codec, sort_out)
    if len(heads) < 2 or not isinstance(heads[0], JobOrigin) or not isinstance(heads[1], SubmitJob):
        raise RecordLogError(f"{directory} holds no submission")
    return Submission(heads[0], heads[1])


def remove_journal(directory: Path) -> None:
    """Remove all of it; who reads it still can go on."""
    shutil.rmtree(directory, ignore_errors=True)
