"""`dfmesh logs`: what sites have printed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dfmesh.api import did_you_mean
from dfmesh.cli.failures import UsageError
from dfmesh.engine.line_text import NO_BREAK_SPACE
from dfmesh.errors import SessionError
from dfmesh.session.host import Host
from dfmesh.shown_text import shown_line

_PART_SIZE = 256 * 1024


def show_lines(site: str | None, job: str | None, wanted: str | None, *, follow: bool, as_json: bool) -> None:
    """Show what sites have printed.

    Args:
        site: Only what this site has printed; None for all.
        job: Only what the adapters of this job have printed and logged; None for all.
        wanted: Federation file or name of the host; None for the only one.
        follow: Whether to go on with what is printed from now on.
        as_json: Whether each line is to be a JSON object.

    Raises:
        SessionError: none is up, or there is no such job.
        UsageError: there is no such site.
        BrokenPipeError: nobody reads any more.
    """
    printer = _Printer(site, as_json=as_json)
    try:
        host = Host(wanted)
    except SessionError:
        if wanted is None or follow or not _show_kept(printer, job, wanted):
            raise
        return
    if site is not None and site not in (*host.record.sites, "host"):
        raise UsageError(f"no site {site!r}; {did_you_mean(site, list(host.record.sites))}")
    with host:
        try:
            host.lines(printer.take, job or "", follow=follow)
        finally:
            if printer.error is not None:
                raise printer.error


def _show_kept(printer: _Printer, job: str | None, wanted: str) -> bool:
    """Show what is kept of a host that is not up; False if there is nothing.

    Raises:
        SessionError: there is no such job.
    """
    from dfmesh.targets.up.directories import named_host, state_directory
    from dfmesh.targets.up.site_log import read_log

    kept = state_directory(named_host(wanted))
    if not (kept / "lines").is_dir():
        return False
    directory = kept / "lines" if job is None else _lines_of(job, kept / "jobs")
    position, data = 0, b"."
    while data:
        data, position = read_log(directory, position, _PART_SIZE)
        printer.take(data, not data)
    return True


def _lines_of(job: str, jobs: Path) -> Path:
    from dfmesh.targets.up.job_store import pick
    from dfmesh.targets.up.journal import LOG

    return jobs / pick(job, [path.name for path in jobs.iterdir()] if jobs.is_dir() else []) / LOG


class _Printer:
    """Prints lines.

    Attributes:
        error: Why that is not possible any more; None while it is.
    """

    def __init__(self, site: str | None, *, as_json: bool) -> None:
        self.error: BrokenPipeError | None = None
        self._site = site
        self._as_json = as_json
        self._rest = b""

    def take(self, data: bytes, end: bool) -> None:
        """Print lines, each given as `time site text`; a part may end within a line."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        shown = (self._line(line.decode("utf-8", "replace")) for line in lines)
        try:
            sys.stdout.write("".join(line for line in shown if line))
            sys.stdout.flush()
        except BrokenPipeError as error:
            self.error = error
            raise

    def _line(self, line: str) -> str:
        time, _, rest = line.partition(" ")
        whose, _, text = rest.partition(" ")
        site, *call = whose.split(NO_BREAK_SPACE)
        if self._site not in (None, site):
            return ""
        if self._as_json:
            operation, number = (*call, "", "")[:2]
            frame = [int(part) for part in number.removeprefix("#").split(".") if part]
            whole = {"time": time, "site": site, "operation": operation, "frame": frame, "text": text}
            return json.dumps(whole) + "\n"
        return shown_line(f"{time} [{' '.join((site, *call))}] {text}") + "\n"
