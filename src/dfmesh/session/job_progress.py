"""How far a job is: what its sites did so far, added up for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dfmesh.compiler.quantity_text import bytes_text
from dfmesh.engine.message_parts import SiteReport
from dfmesh.errors import OperationFailure
from dfmesh.session.job_inbox import JobStatus
from dfmesh.text_tables import aligned

_TITLES = ("site", "operation", "done", "running", "waiting", "failed", "seconds")


@dataclass
class OperationProgress:
    """One operation at one site, all its statements together.

    Attributes:
        site: The site.
        operation: Its name.
        done: Frames that ended with a value.
        running: Calls going on.
        waiting: Frames of which some input is there and some is not.
        failed: Frames that ended with an error.
        seconds: Time spent in calls, summed.
        first_failure: What failed first, also if a loop tolerated it; None if nothing did.
    """

    site: str
    operation: str
    done: int = 0
    running: int = 0
    waiting: int = 0
    failed: int = 0
    seconds: float = 0.0
    first_failure: OperationFailure | None = None

    @property
    def cells(self) -> list[str]:
        """A row of a table: site, operation, done, running, waiting, failed, seconds; a dot for nothing."""
        counts = (self.done, self.running, self.waiting, self.failed)
        return [self.site, self.operation, *(str(count) if count else "·" for count in counts), f"{self.seconds:.2f}"]

    @property
    def failure_text(self) -> str:
        """What failed first, on one line: place in the pipeline, operation, frame, cause; empty if nothing did."""
        return "" if self.first_failure is None else f"first failure: {self.first_failure}"


class JobProgress:
    """How far a job is. `print(job.progress())` shows a table.

    Attributes:
        status: Of the job.
        results: Number of results that have come.
        sites: What each site says: its statements with what waits, runs, is done and has failed, and the bytes it
            sent, by peer.
    """

    def __init__(self, status: JobStatus, sites: Sequence[SiteReport], results: int) -> None:
        self.status = status
        self.sites = tuple(sites)
        self.results = results

    @property
    def operations(self) -> list[OperationProgress]:
        """What each operation did at each site, its statements added up."""
        found: dict[tuple[str, str], OperationProgress] = {}
        for site in self.sites:
            for report in site.operations:
                key = (site.site, report.operation)
                entry = found.setdefault(key, OperationProgress(*key))
                entry.done += report.done
                entry.running += report.running
                entry.waiting += report.waiting
                entry.failed += report.failed
                entry.seconds += report.seconds
                if entry.first_failure is None and report.first_failure is not None:
                    entry.first_failure = report.first_failure.to_error()
        return list(found.values())

    @property
    def links(self) -> list[tuple[str, str, int]]:
        """Bytes sent so far on each link, as (from, to, bytes); the last `to` is `client`."""
        found: dict[tuple[str, str], int] = {}
        for site in self.sites:
            for peer, size in site.bytes_sent.items():
                if size and peer != site.site:
                    key = (site.site, "client" if peer.startswith("client:") else peer)
                    found[key] = found.get(key, 0) + size
        ordered = sorted(found, key=lambda key: (key[1] == "client", key))
        return [(*key, found[key]) for key in ordered]

    @property
    def bytes_between_sites(self) -> int:
        """Bytes that sites sent to one another, on behalf of the client included, heads of messages included."""
        return sum(size for _, peer, size in self.links if peer != "client")

    def summary(self) -> str:
        """Say it in one line."""
        results = f"{self.results} result{'s' * (self.results != 1)}"
        return f"{self.status.value}, {results}, {bytes_text(self.bytes_between_sites)} between sites"

    def to_text(self) -> str:
        """Give it as plain text: a line, a row per operation and site, what failed first, the bytes on the links."""
        lines = [self.summary()]
        if operations := self.operations:
            lines += aligned([_TITLES, *(entry.cells for entry in operations)], numbers_from=2)
            lines += filter(None, (entry.failure_text for entry in operations))
        if links := self.links:
            lines.append(", ".join(f"{source} → {peer} {bytes_text(size)}" for source, peer, size in links))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<JobProgress {self.summary()}>"


__all__ = ["JobProgress", "OperationProgress"]
