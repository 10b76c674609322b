"""`dfmesh demo weather`: the weather day with live progress."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dfmesh.cli.clock import seconds_since_start
from dfmesh.cli.failures import EXIT_INTERRUPTED, CommandError, print_error
from dfmesh.cli.interrupting import CancelOnInterrupt, DetachOnInterrupt
from dfmesh.cli.progress import JobView, LiveProgress
from dfmesh.cli.result_files import check_directory
from dfmesh.errors import SessionError
from dfmesh.targets import is_hosted

if TYPE_CHECKING:
    from rich.table import Table

    from dfmesh.session import Job

_MODULE = "weather_day"
_PACKAGE = Path(__file__).resolve().parents[1]


def run_weather_day(out: Path, target: str, job_id: str | None = None) -> None:
    """Run the weather day, and say what came out.

    Args:
        out: Where to write maps and page.
        target: Where the federation runs.
        job_id: A job that was submitted before, in target `up`; None to submit one.

    Raises:
        CommandError: the example or Pillow is not installed.
        JobError: an operation failed.
        UsageError: nothing can be written there.
        SystemExit: the user has seen enough of a job of before; it goes on.
    """
    if importlib.util.find_spec("PIL") is None:
        raise CommandError("the weather day draws its maps with Pillow: pip install 'dfmesh[weather]'")
    check_directory(out, ["index.html", *(f"map-{hour:02d}.png" for hour in range(24))])
    example = load_example(find_example())
    watcher = _Watcher(is_new=job_id is None, is_hosted=is_hosted(target))
    try:
        with LiveProgress(watcher.view) as watcher.progress, watcher.interrupts:
            report = example.run_day(out, target=target, job_id=job_id, on_progress=watcher.take)
            watcher.finish(report)
    except SessionError:
        if watcher.job is None or watcher.job.status != "detached":
            raise
        print_error(f"detached; job {watcher.job.id} goes on, and --job {watcher.job.id} meets it again")
        raise SystemExit(EXIT_INTERRUPTED) from None
    _print_report(report, watcher)


def find_example() -> Path:
    """Find `weather_day.py`: inside the installed package, or beside the source tree that is being worked on.

    Raises:
        CommandError: it is in neither.
    """
    places = (_PACKAGE / "examples", _PACKAGE.parents[1] / "examples")
    for place in places:
        path = place / "weather_day" / "weather_day.py"
        if path.is_file():
            return path
    looked = " and ".join(map(str, places))
    raise CommandError(f"the weather day is not installed (looked in {looked}); install dfmesh from a wheel or a clone")


def load_example(path: Path) -> ModuleType:
    """Load the example's module from its file."""
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    spec.loader.exec_module(module)
    return module


class _Watcher:
    """Follows a run of the weather day.

    Attributes:
        view: What is known of its job.
        progress: What shows it.
        interrupts: What turns Ctrl-C into the end of the job, once there is one.
        first_map_seconds: From the start of the command to the first map; None until then.
        job: The job, once there is one.
    """

    def __init__(self, *, is_new: bool, is_hosted: bool) -> None:
        self._is_new = is_new
        self._is_hosted = is_hosted
        self.job: Job | None = None
        self.view = JobView("weather day")
        self.progress = LiveProgress(self.view)
        self.first_map_seconds: float | None = None
        self.interrupts = ExitStack()

    def take(self, report: Any) -> None:
        """Take in what `run_day` tells: after the submission, at each result, at the end."""
        if self.job is None:
            self.job = report.job
            self.progress.watch(report.job)
            self.interrupts.enter_context((CancelOnInterrupt if self._is_new else DetachOnInterrupt)(report.job))
            if self._is_hosted:
                print(f"job {report.job.id}", flush=True)
        elif report.seconds is None:
            self.view.result_came()
        if report.maps and self.first_map_seconds is None:
            self.first_map_seconds = seconds_since_start()

    def finish(self, report: Any) -> None:
        """Take in the end."""
        self.view.ended(report.job.status.value)
        self.view.progress = report.job.progress()


def _print_report(report: Any, watcher: _Watcher) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    console.print(site_table(*report.table()))
    paths = list(report.maps.values())
    console.print(f"{len(paths)} maps: {paths[0]} to {paths[-1].name}", soft_wrap=True)
    console.print(f"page: {report.page}", soft_wrap=True)
    console.print(
        f"first map {watcher.first_map_seconds:.2f} s and end {watcher.view.seconds:.2f} s after the command began; "
        f"the job alone, from its submission to its end, {report.job_seconds:.2f} s",
        soft_wrap=True,
    )
    console.print(report.sentence, style="bold", soft_wrap=True)


def site_table(titles: list[str], *rows: list[str]) -> Table:
    """Make the table of sites: reports read and kept, what was dropped and why, bytes sent."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(title, justify="left" if title == "site" or "dropped" in title else "right")
    for row in rows:
        table.add_row(*row)
    return table
