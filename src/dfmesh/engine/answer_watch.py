"""Sites that do not answer: the start and the end of a job have a time within which all sites are to answer.

A site whose process has ended, or whose event loop stands still, is found by whoever supervises it. What is left is one
that lives and says nothing, since it is broken or hostile.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dfmesh.errors import SessionError

ANSWER_SECONDS = 120.0
"""How long a site may take to answer. It may have to import the modules of adapters before it can."""

ANSWER_SECONDS_VARIABLE = "DFMESH_ANSWER_SECONDS"
"""How many seconds a site may take to answer when a job starts or ends; 0 for ever. Without it: 120."""


def seconds_in(variable: str, default: float) -> float:
    """Read a number of seconds from an environment variable.

    Args:
        variable: Its name.
        default: What holds if it is not set.

    Raises:
        SessionError: it is no number of seconds.
    """
    text = os.environ.get(variable, "")
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise SessionError(f"{variable}={text!r} is no number of seconds")
    return seconds


class Awaiting(Protocol):
    """A job that may wait for answers of sites."""

    @property
    def awaits(self) -> str:
        """Names what is to be answered; empty if nothing is. It does not change while the same is awaited."""
        ...


class AnswerWatch:
    """Looks now and then, while there are jobs, for those that have waited for the same since the last look."""

    def __init__(
        self,
        jobs: Mapping[str, Awaiting],
        seconds: float,
        later: Callable[[float, Callable[[], None]], Any],
        on_overdue: Callable[[str], None],
    ) -> None:
        """Look at nothing yet.

        Args:
            jobs: Those that are not over, by id.
            seconds: From one look to the next: how long an answer may take at least, and half of what it may at most.
            later: Calls a function after some seconds.
            on_overdue: Gets the id of a job that has waited so long.
        """
        self._jobs = jobs
        self._seconds = seconds
        self._later = later
        self._on_overdue = on_overdue
        self._looking = False
        self._seen: dict[str, str] = {}

    def begin(self) -> None:
        """Take note that there is a job."""
        if not self._looking:
            self._looking = True
            self._later(self._seconds, self._look)

    def _look(self) -> None:
        self._looking = False
        before, self._seen = self._seen, {job: awaited for job, one in self._jobs.items() if (awaited := one.awaits)}
        for job in [job for job, awaited in self._seen.items() if before.get(job) == awaited]:
            self._on_overdue(job)
        if self._jobs:
            self.begin()
