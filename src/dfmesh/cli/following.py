"""Following a job: its results go to files, people or a machine are told how far it is and how it ended."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO

from dfmesh.cli.earlier_results import EarlierResults
from dfmesh.cli.failures import (
    EXIT_INTERRUPTED,
    EXIT_JOB_FAILED,
    EXIT_SESSION,
    CommandError,
    failure_data,
    print_error,
)
from dfmesh.cli.progress import JobView, LiveProgress, ProgressAsker
from dfmesh.cli.result_files import ResultFiles
from dfmesh.compiler.quantity_text import bytes_text, count_text, seconds_text
from dfmesh.errors import SessionError
from dfmesh.shown_text import shown_line

if TYPE_CHECKING:
    from dfmesh.errors import OperationFailure
    from dfmesh.session import Job, JobProgress, ResultItem

_EVENT_SECONDS = 1.0
"""How often a machine is told how far a job is."""

_TOLD_AT_MOST = 3
"""Results that cannot be written and are told of one by one: there may be as many as there are results."""

_HOST_LOST = "HostLost"


@dataclass(frozen=True)
class Following:
    """What is to be done with a job.

    Attributes:
        directory: Where its results go.
        as_json: Whether standard output is for a machine.
        federation: Name of the federation.
        pipeline: Name of the pipeline.
        target: Where it runs.
        outlives: Whether the job outlives this command.
    """

    directory: Path
    as_json: bool
    federation: str
    pipeline: str
    target: str
    outlives: bool


class Audience(AbstractContextManager["Audience"], Protocol):
    """Who is told of a job."""

    def watch(self, job: Job) -> None:
        """The job is there."""
        ...


class JobFollower:
    """Follows one job to its end.

    Attributes:
        view: What is known of it.
    """

    def __init__(self, following: Following, yields: Mapping[str, int], out: TextIO, job: str | None = None) -> None:
        """Look at where the results go; nothing is changed.

        Args:
            following: What is to be done.
            yields: How many Yields send to each place.
            out: Standard output.
            job: Id of the job, if it is there already: results of it that an earlier command wrote may be there.

        Raises:
            CommandError: there are files where results will go.
        """
        self.view = JobView(following.pipeline)
        self._following = following
        self._out = out
        self._earlier = EarlierResults(following.directory, yields, job)
        self._unwritten: list[CommandError] = []
        self._files = ResultFiles(following.directory, frozenset(place for place, count in yields.items() if count > 1))

    def audience(self) -> Audience:
        """Make who is told, to be used as a context."""
        return _JsonEvents(self.view, self._out) if self._following.as_json else LiveProgress(self.view)

    def make_room(self) -> None:
        """Remove the results of an earlier job, now that there will be new ones."""
        removed = self._earlier.remove()
        if removed and not self._following.as_json:
            where = f"from {self._following.directory}"
            print(f"removed {count_text(removed, 'result')} of an earlier run {where}", file=self._out)

    def take_results(self, job: Job) -> None:
        """Write each result as it comes, until the job is over."""
        if self._following.outlives:
            self._files.write_index(self._about(job))  # Says whose the files are, also if we are killed.
        job.on_restart(_tell_restart)
        for item in job:
            self.view.result_came()
            try:
                entry = self._files.write(item)
            except CommandError as error:  # Others may have room, or go elsewhere.
                self._not_written(item, error)
                continue
            if self._following.as_json:
                emit(self._out, "result", seconds=round(self.view.seconds, 3), **entry)
        self.view.ended(job.status.value)
        self.view.progress = job.progress()

    def _not_written(self, item: ResultItem, error: CommandError) -> None:
        self._unwritten.append(error)
        if self._following.as_json:
            what = {"place": item.place, "frame": list(item.frame), "site": item.site, "node": item.node}
            emit(self._out, "unwritten", seconds=round(self.view.seconds, 3), **what, error=str(error))
        elif len(self._unwritten) <= _TOLD_AT_MOST:
            print_error(str(error))

    def _about(self, job: Job) -> dict[str, Any]:
        """What the index and the last event say of the job."""
        first = self.view.first_result_seconds
        return {
            "job": job.id,
            "federation": self._following.federation,
            "pipeline": self._following.pipeline,
            "target": self._following.target,
            "status": job.status.value,
            "seconds": round(self.view.seconds, 3),
            "first_result_seconds": None if first is None else round(first, 3),
            "bytes_between_sites": self.view.progress.bytes_between_sites,
            "sites": _sites_data(self.view.progress),
            "errors": [failure_data(error) for error in job.errors],
            "restarts": [[failure_data(failure) for failure in lost] for lost in job.restarts],
        }

    def tell_end(self, job: Job) -> None:
        """Say how it ended: to a machine all of it; to people the files, while a failure is raised for `reported`.

        Raises:
            JobError: the job failed.
            SessionError: the host of the job is gone.
            CommandError: the job has finished, but some of its results could not be written.
            SystemExit: it was cancelled or detached from, or it failed and a machine has been told.
        """
        index = self._files.write_index(self._about(job))
        status = job.status.value
        lost = next((error for error in job.errors if error.kind == _HOST_LOST), None)
        count = len(self._files.entries)
        if self._following.as_json:
            emit(self._out, "end", results=count, index=str(index), **self._about(job))
            if status != "finished":
                interrupted = status in ("cancelled", "detached")
                raise SystemExit(EXIT_INTERRUPTED if interrupted else EXIT_SESSION if lost else EXIT_JOB_FAILED)
            self._tell_unwritten()
            return
        self._print_files(index)
        if status == "detached":
            print_error(f"detached; job {job.id} goes on, and `dfmesh attach {job.id}` meets it again")
            raise SystemExit(EXIT_INTERRUPTED)
        if status == "cancelled":
            print_error(f"{_how_cancelled(job)}; what had come is kept: {count_text(count, 'result')}")
            raise SystemExit(EXIT_INTERRUPTED)
        if lost is not None:
            raise SessionError(lost.message)
        job.result()
        self._tell_unwritten()

    def _tell_unwritten(self) -> None:
        if self._unwritten:
            what = count_text(len(self._unwritten), "result")
            raise CommandError(f"{what} could not be written; the first: {self._unwritten[0]}")

    def _print_files(self, index: Path) -> None:
        counts = Counter(entry["place"] for entry in self._files.entries)
        sizes: Counter[str] = Counter()
        for entry in self._files.entries:
            sizes[entry["place"]] += entry["bytes"]
        for place, count in counts.items():
            first_entry = next(entry for entry in self._files.entries if entry["place"] == place)
            note = f", {first_entry['note']}" if "note" in first_entry else ""
            more = "" if count == 1 else f" and {count - 1} more"
            path = self._files.directory / first_entry["file"]
            print(shown_line(f"{place}: {path}{more}, {bytes_text(sizes[place])}{note}"), file=self._out)
        view = self.view
        first = view.first_result_seconds
        after = "" if first is None else f", the first result after {seconds_text(first)}"
        moved = f"{bytes_text(view.progress.bytes_between_sites)} between sites"
        came = count_text(len(self._files.entries), "result")
        ended = f"the end {seconds_text(view.seconds)} after the command began"
        print(f"{index}: {came}; {ended}{after}; {moved}", file=self._out)


def _tell_restart(lost: tuple[OperationFailure, ...]) -> None:
    reason = lost[0].message.partition("\n")[0].removesuffix(":")
    print_error(f"site {lost[0].site} was lost ({reason}); the job goes on from what is unfinished")


def _how_cancelled(job: Job) -> str:
    """Say who cancelled it, unless it was the user of this command."""
    reason = job.errors[0].message if job.errors else ""
    return "cancelled" if not reason or "Ctrl-C" in reason else f"cancelled ({reason})"


class _JsonEvents:
    """Tells a machine: one JSON object per line on standard output."""

    def __init__(self, view: JobView, out: TextIO) -> None:
        self._view = view
        self._out = out
        self._asker: ProgressAsker | None = None

    def __enter__(self) -> Self:
        return self

    def watch(self, job: Job) -> None:
        """The job is there."""
        emit(self._out, "submitted", job=job.id, seconds=round(self._view.seconds, 3))
        self._asker = ProgressAsker(self._view, _EVENT_SECONDS, self._tell)
        self._asker.ask(job)

    def _tell(self, view: JobView) -> None:
        emit(
            self._out,
            "progress",
            seconds=round(view.seconds, 3),
            status=view.status,
            results=view.results,
            bytes_between_sites=view.progress.bytes_between_sites,
            sites=_sites_data(view.progress),
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._asker is not None:
            self._asker.stop()


_output = threading.Lock()


def emit(out: TextIO, event: str, /, **data: Any) -> None:
    """Tell a machine of an event: a line of JSON."""
    line = json.dumps({"event": event, **data})
    with _output:
        print(line, file=out, flush=True)


def _sites_data(progress: JobProgress) -> dict[str, Any]:
    sites: dict[str, Any] = {site.site: {"operations": {}, "bytes_sent": {}} for site in progress.sites}
    for entry in progress.operations:
        counts = {name: getattr(entry, name) for name in ("done", "running", "waiting", "failed")}
        sites[entry.site]["operations"][entry.operation] = {
            **counts,
            "seconds": round(entry.seconds, 4),
            "first_failure": entry.first_failure and failure_data(entry.first_failure),
        }
    for source, peer, size in progress.links:
        sites[source]["bytes_sent"][peer] = size
    return sites


__all__ = ["Audience", "Following", "JobFollower", "emit"]
