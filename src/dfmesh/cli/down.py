"""`dfmesh down`: the end of a federation that is up."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path

from dfmesh.compiler.quantity_text import count_text
from dfmesh.errors import SessionError
from dfmesh.processes.readiness import is_readable
from dfmesh.session.host import Host
from dfmesh.shown_text import shown_line

STOP_SECONDS = 30.0
"""How long a host may take to stop."""


def bring_down(wanted: str | None, *, as_json: bool) -> None:
    """Stop a federation, and wait until its sites and its host have ended.

    Args:
        wanted: Federation file or name of the host; None for the only one.
        as_json: Whether standard output is for a machine.

    Raises:
        SessionError: none is up, or it does not stop.
    """
    from dfmesh.targets.up.directories import host_name

    try:
        host = Host(wanted)
    except SessionError:
        _clear(wanted)
        raise
    ended = _EndOf(host.record.pid)
    with host:
        going_on = sum(not job.status.over for job in host.jobs())
        host.stop()
    if not ended.wait(STOP_SECONDS):
        raise SessionError(f"the host {host.record.name!r} (process {host.record.pid}) does not stop")
    if as_json:
        print(json.dumps({"event": "down", "name": host.record.name, "interrupted": going_on}))
        return
    record = host.record
    called = "" if record.name == host_name(Path(record.federation)) else f" (host {record.name})"
    print(shown_line(f"{record.title}{called} is down"))
    if going_on:
        what = "was going on and goes" if going_on == 1 else "were going on and go"
        print(f"  {count_text(going_on, 'job')} {what} on when it is up again, where operations are idempotent")


def _clear(wanted: str | None) -> None:
    """Remove what a host that was killed has left."""
    from dfmesh.targets.up.directories import named_host
    from dfmesh.targets.up.host_lock import clear_leftovers

    if wanted is not None:
        with suppress(OSError):
            clear_leftovers(named_host(wanted))


class _EndOf:
    """The end of a process that is not our child."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._descriptor = -1
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):
                self._descriptor = os.pidfd_open(pid)

    def wait(self, seconds: float) -> bool:
        """Wait until it has come; False after so many seconds."""
        if self._descriptor >= 0:
            ended = is_readable(self._descriptor, seconds)
            os.close(self._descriptor)
            return ended
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                os.kill(self._pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.05)  # Where the system has no other way to hear of it.
        return False
