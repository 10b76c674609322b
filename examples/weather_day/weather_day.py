"""Runs the weather day: `run_day(out_dir)` gives 24 maps and one page.

From a shell: `python examples/weather_day/weather_day.py [DIRECTORY]`, or `dfmesh demo weather`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from weather_day_page.page import lead_sentence, write_page  # noqa: E402
from weather_day_page.summary import SitePlacement, SiteRow, bytes_between, placement_of  # noqa: E402

FEDERATION = HERE / "weather.dfm.yaml"
HOME = "app"
DAY = "1995-03-18"


@dataclass
class DayReport:
    """What is known of a run, while it goes on and afterwards.

    Attributes:
        job: The running job; None before it is submitted.
        maps: Hour to the file of its map, for the maps that are there.
        rows: Site to what it read, dropped and sent; bytes sent only after the end.
        placement: What ran where; after the end.
        page: The HTML page; None until it is written.
        first_map_seconds: From the call of `run_day` to the first map; None until then.
        seconds: From the call of `run_day` to the end of the job; None until then.
        job_seconds: From the submission to the end of the job; None until then.
    """

    job: Any = None
    maps: dict[datetime, Path] = field(default_factory=dict)
    rows: dict[str, SiteRow] = field(default_factory=dict)
    placement: list[SitePlacement] = field(default_factory=list)
    page: Path | None = None
    first_map_seconds: float | None = None
    seconds: float | None = None
    job_seconds: float | None = None

    @property
    def bytes_moved(self) -> int:
        """Bytes sent from one site to another."""
        return bytes_between(self.placement)

    @property
    def bytes_raw(self) -> int:
        """Size of the reports read: what would have moved if they had."""
        return sum(row.bytes_read for row in self.rows.values())

    def table(self) -> list[list[str]]:
        """The table of sites as text, titles first."""
        titles = ["site", "reports read", "kept", "reports dropped", "values dropped", "sent to sites"]
        return [titles, *(row.cells() for row in self.rows.values())]

    @property
    def sentence(self) -> str:
        """How many bytes moved instead of how many."""
        return lead_sentence(self.bytes_moved, self.bytes_raw)


def run_day(
    out_dir: str | Path,
    *,
    target: str = "local",
    day: str = DAY,
    job_id: str | None = None,
    on_progress: Callable[[DayReport], None] | None = None,
) -> DayReport:
    """Make the maps of a day and the page that shows them.

    Args:
        out_dir: Where to write `map-00.png` to `map-23.png` and `index.html`; made if it is not there.
        target: Where the federation runs: `local`, `inproc` or `up`.
        day: The day, UTC; the data that come with the example have one.
        job_id: Job that is going on or over, in target `up`; None to submit one.
        on_progress: Called with the report after the submission, at each result and at the end.

    Returns:
        The report.

    Raises:
        dfmesh.JobError: If any operation failed.
    """
    began = time.perf_counter()
    from pipeline import build

    from dfmesh import Federation

    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    federation = Federation.load(FEDERATION)
    report, tell = DayReport(), on_progress or (lambda report: None)
    with federation.session(target=target, homesite=HOME) as session:
        submitted = time.perf_counter()
        if job_id is None:
            report.job = session.submit(build(federation), {"day": day})
        else:
            report.job = session.attach(job_id)
        tell(report)
        for item in report.job:
            _take(item, report, out, day)
            if report.maps and report.first_map_seconds is None:
                report.first_map_seconds = time.perf_counter() - began
            tell(report)
        report.job.result()
        ended = time.perf_counter()
        report.seconds, report.job_seconds = ended - began, ended - submitted
        _finish(report, out)
    tell(report)
    return report


def _take(item: Any, report: DayReport, out: Path, day: str) -> None:
    """Take one result: a map, or the counts of one site and hour."""
    if item.place == "frame":
        hour = datetime.fromisoformat(day).replace(hour=item.frame[-1])
        report.maps[hour] = out / f"map-{hour:%H}.png"
        report.maps[hour].write_bytes(item.value)
    elif item.place == "quality":
        site = item.value["site"]
        report.rows.setdefault(site, SiteRow(site)).add(item.value)


def _finish(report: DayReport, out: Path) -> None:
    """Take the final figures of the sites, and write the page."""
    report.placement = placement_of(report.job.progress().sites)
    for site in report.placement:
        if site.site in report.rows:
            report.rows[site.site].bytes_sent = bytes_between([site])
    report.rows = {site.site: report.rows[site.site] for site in report.placement if site.site in report.rows}
    report.maps = dict(sorted(report.maps.items()))
    frames = [(hour, path.read_bytes()) for hour, path in report.maps.items()]
    report.page = out / "index.html"
    write_page(
        report.page, frames, list(report.rows.values()), report.placement, report.bytes_moved, report.bytes_raw, HOME
    )


def main() -> None:
    """Run the day and say what came out."""
    report = run_day(sys.argv[1] if len(sys.argv) > 1 else "weather-day")
    print(f"{len(report.maps)} maps, the first after {report.first_map_seconds:.2f} s, the last {report.seconds:.2f} s")
    for row in report.rows.values():
        print(f"{row.site}: {row.read} reports read, {row.kept} kept, dropped {dict(row.rejected)}")
    print(report.sentence)
    print(report.page)


if __name__ == "__main__":
    main()
