"""Live progress: what is known of a job while it runs, how often it is asked for, and what it looks like."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dfmesh.cli.clock import seconds_since_start
from dfmesh.compiler.quantity_text import bytes_text, count_text, seconds_text
from dfmesh.errors import JobCancelledError
from dfmesh.session.job_inbox import JobStatus
from dfmesh.session.job_progress import JobProgress, OperationProgress
from dfmesh.shown_text import shown_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from dfmesh.cli.above_table import AboveTable
    from dfmesh.session import Job

REFRESH_SECONDS = 0.25
"""How often a person sees new figures; results are shown with the next refresh."""


@dataclass
class JobView:
    """What is known of a job.

    Attributes:
        title: What runs.
        began: Time of the start, as `time.monotonic` gives it; that of the command, interpreter included, by default.
        status: Of the job, or what happens before there is one.
        first_result_seconds: From the start to the first result; None until then.
        ended_seconds: From the start to the end; None until then.
        results: Results that have come.
        progress: What the sites said last.
    """

    title: str
    began: float = field(default_factory=lambda: time.monotonic() - seconds_since_start())
    status: str = "starting sites"
    first_result_seconds: float | None = None
    ended_seconds: float | None = None
    results: int = 0
    progress: JobProgress = field(default_factory=lambda: JobProgress(JobStatus.STARTING, (), 0))

    @property
    def seconds(self) -> float:
        """Seconds from the start till now, or till the end."""
        return time.monotonic() - self.began if self.ended_seconds is None else self.ended_seconds

    def result_came(self) -> None:
        """Count a result."""
        self.results += 1
        if self.first_result_seconds is None:
            self.first_result_seconds = time.monotonic() - self.began

    def ended(self, status: str) -> None:
        """Note how it ended."""
        self.status = status
        self.ended_seconds = time.monotonic() - self.began

    def headline(self) -> str:
        """Say in one line how the job stands."""
        first = "" if self.first_result_seconds is None else f", first at {seconds_text(self.first_result_seconds)}"
        results = f"{count_text(self.results, 'result')}{first}"
        return f"{self.title}: {self.status}, {self.seconds:.1f} s since command start; {results}"


def draw(view: JobView, most_rows: int = 1000) -> RenderableType:
    """Draw a job: headline, operations per site, bytes on the links.

    Args:
        view: What is known.
        most_rows: Rows of the table at most; of more, those that have something to do are shown.
    """
    from rich.console import Group
    from rich.text import Text

    links = [
        f"{source} → {peer} {bytes_text(size)}".replace(" ", "\N{NO-BREAK SPACE}")
        for source, peer, size in view.progress.links
    ]
    parts: list[Any] = [Text(shown_line(view.headline()), style="bold")]
    if view.progress.sites:
        parts.append(_operations_table(view.progress.operations, most_rows))
    if links:
        between = f"between sites {bytes_text(view.progress.bytes_between_sites)}: " if len(links) > 1 else ""
        parts.append(Text(between + ", ".join(links)))
    if view.status == JobStatus.FINISHED.value:  # Else the errors of the job are told.
        parts += [Text(shown_line(text)) for entry in view.progress.operations if (text := entry.failure_text)]
    return Group(*parts)


def _operations_table(operations: list[OperationProgress], most_rows: int) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("site", overflow="fold")
    table.add_column("operation", overflow="fold", min_width=12)
    for title in ("done", "running", "waiting", "failed", "seconds"):
        table.add_column(title, justify="right", no_wrap=True)
    shown = _most_active(operations, most_rows)
    site = ""
    for entry in shown:
        style = "red" if entry.failed else "" if entry.running or entry.waiting else "dim"
        cells = ("" if entry.site == site else entry.site, *entry.cells[1:])
        table.add_row(*map(shown_line, cells), style=style)
        site = entry.site
    if len(shown) < len(operations):
        table.add_row("", f"… and {len(operations) - len(shown)} more")
    return table


def _most_active(operations: list[OperationProgress], most: int) -> list[OperationProgress]:
    if len(operations) <= most:
        return operations
    ranked = sorted(operations, key=lambda entry: (not entry.failed, not entry.running, not entry.waiting))
    kept = {id(entry) for entry in ranked[:most]}
    return [entry for entry in operations if id(entry) in kept]


class ProgressAsker:
    """Asks a job's sites now and then how far they are, on a thread of its own, until it is stopped."""

    def __init__(self, view: JobView, seconds: float, tell: Callable[[JobView], None]) -> None:
        """Begin.

        Args:
            view: Where to put the answers.
            seconds: How long to wait between an answer and the next question.
            tell: Called after each answer, on that thread; also while there is no job yet.
        """
        self._view = view
        self._seconds = seconds
        self._tell = tell
        self._job: Job | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dfmesh-progress", daemon=True)
        self._thread.start()

    def ask(self, job: Job) -> None:
        """Ask this job from now on."""
        self._job = job

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            job = self._job
            if job is not None:
                # The time-out is short, since stop() waits for it; who does not answer now is asked again.
                with contextlib.suppress(TimeoutError):
                    self._view.progress = job.progress(timeout=self._seconds)
                self._view.status = job.status.value
            if not self._stopped.is_set():
                self._tell(self._view)


class LiveProgress:
    """Shows a job on standard error: live on a terminal, once at the end elsewhere. Use it as a context."""

    def __init__(self, view: JobView) -> None:
        """Prepare to show.

        Args:
            view: What to show; whoever runs the job keeps its results and its end up to date.
        """
        from rich.console import Console

        self.view = view
        self._console: Console = Console(stderr=True, highlight=False, markup=False)
        self._live: Any = None
        self._above: AboveTable | None = None
        self._asker: ProgressAsker | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.live import Live

            from dfmesh.cli.above_table import AboveTable

            self._live = Live(
                self._drawn(), console=self._console, auto_refresh=False, redirect_stderr=False, redirect_stdout=False
            )
            self._live.start()
            self._above = AboveTable(self._console)
            self._asker = ProgressAsker(self.view, REFRESH_SECONDS, lambda view: self._refresh())
        return self

    def watch(self, job: Job) -> None:
        """Show this job from now on."""
        if self._asker is not None:
            self._asker.ask(job)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._asker is not None:
            self._asker.stop()
        if kind is not None and self.view.ended_seconds is None:
            interrupted = issubclass(kind, KeyboardInterrupt | JobCancelledError)
            self.view.ended("interrupted" if interrupted else "failed")
        if self._above is not None:
            self._refresh()
            self._above.end(self._live.stop)
        else:
            self._console.print(draw(self.view))

    def _refresh(self) -> None:
        self._live.update(self._drawn(), refresh=True)

    def _drawn(self) -> RenderableType:
        links = 2 + len(self.view.progress.links) * 22 // max(1, self._console.width)
        return draw(self.view, max(3, self._console.height - 5 - links))


__all__ = ["REFRESH_SECONDS", "JobView", "LiveProgress", "ProgressAsker", "draw"]
