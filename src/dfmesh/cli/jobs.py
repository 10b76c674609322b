"""`dfmesh jobs`: the jobs of a federation that is up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dfmesh.compiler.quantity_text import count_text, seconds_text
from dfmesh.session.host import Host
from dfmesh.shown_text import shown_line

if TYPE_CHECKING:
    from rich.table import Table

    from dfmesh.session import JobSummary

COLUMNS = ("job", "pipeline", "status", "submitted", "took", "results", "failed", "client")
_WRAPPED = ("pipeline", "submitted")
_FIRST_NUMBER = 4
_SHORTEST_ID = 8


def show_jobs(wanted: str | None, *, as_json: bool) -> None:
    """List all jobs of a host.

    Args:
        wanted: Federation file or name of the host; None for the only one.
        as_json: Whether to print JSON.

    Raises:
        SessionError: none is up.
    """
    with Host(wanted) as host:
        jobs = host.jobs()
    if as_json:
        print(json.dumps([job_data(job) for job in jobs], indent=2))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    running = sum(not job.status.over for job in jobs)
    whose = f"{shown_line(host.record.title)} (host {host.record.name})"
    console.print(f"{whose}: {count_text(len(jobs), 'job')}, {running} going on", soft_wrap=True)
    if jobs:
        console.print(jobs_table(jobs))


def forget_jobs(wanted: str | None, forgotten: Sequence[str], *, as_json: bool) -> None:
    """Remove what is kept of jobs that are over.

    Args:
        wanted: Federation file or name of the host; None for the only one.
        forgotten: Their ids, or the beginnings of them.
        as_json: Whether to print JSON.

    Raises:
        SessionError: there is no such job, or it is going on.
    """
    with Host(wanted) as host:
        for prefix in forgotten:
            job = host.forget(prefix)
            print(json.dumps({"event": "forgotten", "job": job}) if as_json else f"{job} is forgotten", flush=True)


def job_data(job: JobSummary) -> dict[str, Any]:
    """Give a job as data."""
    ended = None if job.ended is None else job.ended.isoformat()
    return {**asdict(job), "status": job.status.value, "submitted": job.submitted.isoformat(), "ended": ended}


def jobs_table(jobs: Sequence[JobSummary]) -> Table:
    """Make the table of jobs; ids are as short as is possible without mistaking one for another."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for number, title in enumerate(COLUMNS):
        table.add_column(
            title,
            justify="right" if number >= _FIRST_NUMBER else "left",
            no_wrap=title not in _WRAPPED,
            overflow="fold",
            min_width=10 if title in _WRAPPED else None,
        )
    length = _id_length([job.id for job in jobs])
    for job in jobs:
        style = {"failed": "red", "finished": "dim", "cancelled": "dim"}.get(job.status.value, "")
        table.add_row(job.id[:length], *map(shown_line, _cells(job)), style=style)
    return table


def _cells(job: JobSummary) -> tuple[str, ...]:
    took = ((job.ended or datetime.now(UTC)) - job.submitted).total_seconds()
    return (
        job.name or "-",
        job.status.value,
        _time(job.submitted.astimezone()),
        seconds_text(max(took, 0.0)),
        f"{job.results:,}",
        f"{job.failures:,}" if job.failures else "·",
        str(job.owner),
    )


def _time(moment: datetime) -> str:
    today = moment.date() == datetime.now().astimezone().date()
    return f"{moment:%H:%M:%S}" if today else f"{moment:%Y-%m-%d %H:%M}"


def _id_length(ids: Sequence[str]) -> int:
    length = _SHORTEST_ID
    while len({job[:length] for job in ids}) < len(ids):
        length += 1
    return length
