"""Heartbeats: finds sites whose processes live while their event loops stand still.

Each site counts up in the table it shares with us, from its event loop and by nothing else, so the count says that the
loop turns; no message has to get through. A loop that stands still while its process uses no CPU is stopped or in a
deadlock: such a site is to be ended. One whose process works is only told of: an adapter that holds the interpreter's
lock, or takes all cores, does not make a site dead.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dfmesh.targets.local.call_log import read_beats
from dfmesh.targets.local.members import Site

SILENT_SECONDS = 30.0
"""How long an event loop may stand still until something is done about it."""

_LOOKS = 6
"""Looks, and beats, in that time."""

_BUSY = 0.02
"""Which part of the time a process must have used of a core to count as working."""


def beat_seconds(silent_seconds: float) -> float:
    """Give the seconds between two beats of a site, and between two looks at them; 0 for no beats."""
    return silent_seconds / _LOOKS


@dataclass(slots=True)
class _Pulse:
    """What was seen of one life of a site.

    Attributes:
        generation: Which life.
        beats: Its count.
        silent: Seconds for which the count has stood still, as far as we looked.
        cpu: Seconds of CPU that the process had used when they began; None if that cannot be known.
        told: Seconds of silence that have been told of.
    """

    generation: int
    beats: int
    silent: float = 0.0
    cpu: float | None = None
    told: float = 0.0


class Heartbeats:
    """Looks at the sites of a supervisor now and then, on its event loop."""

    def __init__(
        self,
        sites: Iterable[Site],
        silent_seconds: float,
        on_dead: Callable[[Site, str], None],
        on_busy: Callable[[Site, str], None],
    ) -> None:
        """Prepare.

        Args:
            sites: Whom to look at.
            silent_seconds: As `SILENT_SECONDS`; 0 to look at nobody.
            on_dead: Gets a site that is to be ended, and why.
            on_busy: Gets a site that stands still and works, or that goes on after that, and what to tell.
        """
        self._sites = list(sites)
        self._silent_seconds = silent_seconds
        self._seconds = beat_seconds(silent_seconds)
        self._on_dead = on_dead
        self._on_busy = on_busy
        self._loop = asyncio.get_running_loop()
        self._pulses: dict[str, _Pulse] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._looked_at = 0.0

    @property
    def standing_still(self) -> dict[str, float]:
        """Sites whose event loops stand still while they work, and the seconds for which they have done so."""
        return {name: pulse.told + pulse.silent for name, pulse in self._pulses.items() if pulse.told}

    def start(self) -> None:
        """Begin to look."""
        if self._seconds > 0:
            self._look_later()

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_later(self) -> None:
        self._looked_at = self._loop.time()
        self._timer = self._loop.call_later(self._seconds, self._look)

    def _look(self) -> None:
        late = self._loop.time() - self._looked_at > 2 * self._seconds
        if late:
            self._pulses.clear()  # We stood still ourselves, perhaps with all others: that says nothing of them.
        for site in self._sites:
            if site.process is not None:  # Also one that is not ready: jobs wait for it.
                self._look_at(site, site.process.pid)
        self._look_later()

    def _look_at(self, site: Site, pid: int) -> None:
        beats = read_beats(site.calls)
        pulse = self._pulses.get(site.name)
        if pulse is None or pulse.generation != site.generation or pulse.beats != beats:
            if pulse is not None and pulse.generation == site.generation and pulse.told:
                self._on_busy(site, f"the event loop of the site goes on, after more than {pulse.told:.0f} s")
            self._pulses[site.name] = _Pulse(site.generation, beats)
            return
        if pulse.silent == 0:
            pulse.cpu = cpu_seconds(pid)
        pulse.silent += self._seconds
        if pulse.silent > self._silent_seconds:
            self._judge(site, pid, pulse)

    def _judge(self, site: Site, pid: int, pulse: _Pulse) -> None:
        now = cpu_seconds(pid)
        if now is not None and pulse.cpu is not None and now - pulse.cpu < _BUSY * self._silent_seconds:
            reason = f"its event loop stood still for {self._silent_seconds:g} s and its process did nothing"
            self._on_dead(site, f"{reason}: it was stopped, or an adapter blocks it")
            return
        if not site.ready:
            pulse.silent = 0.0  # It takes its time to start.
            return
        if not pulse.told:
            what = f"the event loop of the site has stood still for {self._silent_seconds:g} s while its process works"
            self._on_busy(site, f"{what}: an adapter keeps it from everything else")
        pulse.told += pulse.silent
        pulse.silent = 0.0


def cpu_seconds(pid: int) -> float | None:
    """Give the seconds of CPU that a process has used with all its threads; None if the system does not say."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
