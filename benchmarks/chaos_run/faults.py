"""What is done to a federation from outside, and the record of it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from chaos_run.case import HOMESITE, SITES, Case

LATE = 10.0
"""Seconds after the death of a site within which a job may still be hit by it, on a machine under load."""

SILENT_SECONDS = 12.0
"""How long a site may stand still in a run: more than any of our faults lets it, but the one that stops it for good."""

STOOD_STILL = "its event loop stood still"
"""What is said of a site that was ended for that."""


@dataclass(frozen=True)
class PlannedFault:
    """A fault of a job's own plan.

    Attributes:
        kind: What is done.
        after: When, in seconds since the job was submitted.
        site: To which site; empty if it is done to the job.
        seconds: For how long.
    """

    kind: str
    after: float
    site: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Profile:
    """What happens to a federation.

    Attributes:
        deadly: Share of jobs with an adapter that ends its site.
        harmless: Share of jobs with other adapters that misbehave.
        kinds: Kind of fault from outside to its weight.
        closes: Whether its client closes the session now and then while jobs run.
    """

    deadly: float
    harmless: float
    kinds: dict[str, float]
    closes: bool = False


_HARMLESS_KINDS = {"cancel": 0.34, "site stopped for a while": 0.33, "slow site": 0.33}
PROFILES = {
    "steady": Profile(0.0, 0.3, _HARMLESS_KINDS),
    "stormy": Profile(
        0.07,
        0.25,
        {**_HARMLESS_KINDS, "site killed": 0.2, "homesite killed": 0.07, "site stopped for good": 0.05},
        closes=True,
    ),
    "hosted": Profile(
        0.05, 0.25, {**_HARMLESS_KINDS, "site killed": 0.12, "homesite killed": 0.04, "site stopped for good": 0.03}
    ),
}
"""In `steady` no process dies, so that growth shows; in `stormy` sites die; `hosted` is shared by several clients."""


def plan_faults(source: random.Random, profile: Profile, case: Case) -> list[PlannedFault]:
    """Choose the faults of a job."""
    planned = []
    for _ in range(source.choice([0, 1, 1, 2])):
        kind = source.choices(list(profile.kinds), list(profile.kinds.values()))[0]
        after = source.uniform(0, case.seconds * 1.2)
        if kind == "cancel":
            planned.append(PlannedFault(kind, after))
        elif kind == "homesite killed":
            planned.append(PlannedFault(kind, after, HOMESITE))
        elif kind == "site killed":
            planned.append(PlannedFault(kind, after, source.choice([site for site in SITES if site != HOMESITE])))
        elif kind == "site stopped for good":
            planned.append(PlannedFault(kind, after, source.choice(SITES)))
        else:
            planned.append(PlannedFault(kind, after, source.choice(SITES), source.choice([0.1, 0.3, 1.0])))
    return planned


@dataclass(frozen=True)
class Loss:
    """A site that died, or may have died, and when jobs may have been hit by that.

    Attributes:
        site: The site.
        reason: Part of what its supervisor says.
        since: From when on, on the monotonic clock.
        until: Until when.
        job: Name of the job of which an operation ends it; empty if it was killed from outside.
        times: How often that may happen.
    """

    site: str
    reason: str
    since: float
    until: float
    job: str = ""
    times: int = 1


class FaultLog:
    """All faults of a client so far. For any thread."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._losses: deque[Loss] = deque(maxlen=2_000)
        self._history: deque[tuple[float, str]] = deque(maxlen=400)
        self._lock = threading.Lock()

    def add(self, kind: str, what: str = "", count: int = 1) -> None:
        """Count a fault."""
        with self._lock:
            self.counts[kind] += count
            self._history.append((time.monotonic(), f"{kind} {what}".strip()))

    def note(self, what: str) -> None:
        """Put something into the history that is no fault."""
        with self._lock:
            self._history.append((time.monotonic(), what))

    def lose(self, loss: Loss) -> None:
        """Note the death of a site."""
        with self._lock:
            self._losses.append(loss)

    def settle(self, job: str, until: float) -> None:
        """Say that a site which a job was to end will not die of it after so long."""
        with self._lock:
            settled = [replace(loss, until=until) if loss.job == job else loss for loss in self._losses]
            self._losses = deque(settled, maxlen=self._losses.maxlen)

    def losses(self, begin: float, end: float) -> list[Loss]:
        """Give the losses that a job may have been hit by that ran from `begin` to `end`."""
        with self._lock:
            return [loss for loss in self._losses if loss.since <= end and loss.until >= begin]

    def history(self, begin: float, end: float) -> list[str]:
        """Give what happened, with seconds since `begin`."""
        with self._lock:
            return [f"{at - begin:+8.3f} {what}" for at, what in self._history if begin - LATE <= at <= end + 1]

    def take_counts(self) -> dict[str, int]:
        """Give the counts since the last time."""
        with self._lock:
            counts, self.counts = self.counts, Counter()
        return dict(counts)


class Injector:
    """Does the faults of jobs."""

    def __init__(self, log: FaultLog, process_ids: Callable[[], dict[str, int]]) -> None:
        """Begin.

        Args:
            log: Where faults are noted.
            process_ids: Gives the site processes that run.
        """
        self._log = log
        self._process_ids = process_ids

    def run(
        self, faults: list[PlannedFault], begin: float, over: Callable[[float], bool], cancel: Callable[[], None]
    ) -> None:
        """Do the faults of a job at their times; those that come after its end are left out.

        Args:
            faults: What to do.
            begin: When the job was submitted.
            over: Waits for the end of the job for so many seconds, and says whether it has come.
            cancel: Cancels the job.
        """
        for fault in sorted(faults, key=lambda fault: fault.after):
            if over(max(0.0, begin + fault.after - time.monotonic())):
                return
            if fault.kind == "cancel":
                self._log.add(fault.kind)
                cancel()
            else:
                self._to_site(fault)

    def _to_site(self, fault: PlannedFault) -> None:
        pid = self._process_ids().get(fault.site)
        if pid is None:
            return
        if fault.kind == "site stopped for a while":
            self._stopped(pid, fault, [(fault.seconds, 0.0)])
        elif fault.kind == "slow site":
            self._stopped(pid, fault, [(0.045, 0.005)] * round(fault.seconds / 0.05))
        elif fault.kind == "site stopped for good":
            now = time.monotonic()
            self._log.lose(Loss(fault.site, STOOD_STILL, now, now + 4 * SILENT_SECONDS + LATE))
            if _signal(pid, signal.SIGSTOP):
                self._log.add(fault.kind, fault.site)
        else:
            now = time.monotonic()
            # Noted first: nobody may hear of it before us.
            self._log.lose(Loss(fault.site, "killed by SIGKILL", now, now + LATE))
            if _signal(pid, signal.SIGKILL):
                self._log.add(fault.kind, fault.site)

    def _stopped(self, pid: int, fault: PlannedFault, rhythm: list[tuple[float, float]]) -> None:
        done, now = False, time.monotonic()
        # If we are killed in between, it stays stopped.
        self._log.lose(Loss(fault.site, STOOD_STILL, now, now + 4 * SILENT_SECONDS + LATE, f"stop of {pid} at {now}"))
        for stopped, going in rhythm:
            if not _signal(pid, signal.SIGSTOP):
                break
            done = True
            time.sleep(stopped)
            _signal(pid, signal.SIGCONT)
            time.sleep(going)
        self._log.settle(f"stop of {pid} at {now}", 0.0)
        if done:
            self._log.add(fault.kind, f"{fault.site} {fault.seconds}")


def _signal(pid: int, number: int) -> bool:
    """Send a signal, unless the process is dead already."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat", "rb") as file:
            if file.read().rpartition(b")")[2].split()[0] == b"Z":
                return False
        os.kill(pid, number)
        return True
    return False
