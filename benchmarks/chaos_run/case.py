"""A case: a pipeline, its parameter sets, and what plain Python says that must come of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dfmesh import Pipeline

Frame = tuple[int, ...]
SITES = ("home", "north", "south", "east")
HOMESITE = "home"
ONCE_ONLY = frozenset({"Once", "StreamOnce", "Leave", "Die"})
"""The operations that the federation file does not mark as idempotent."""
MOST_ATTEMPTS = 5
"""How often dfmesh begins a job."""


@dataclass(frozen=True)
class Expected:
    """A failure that a case has of itself.

    Attributes:
        node: Id of the statement.
        site: Where it runs.
        kind: Kind of the failure.
        text: Part of its message.
        frames: In which frames.
    """

    node: str
    site: str
    kind: str
    text: str
    frames: frozenset[Frame]


@dataclass(frozen=True)
class Death:
    """A site that an operation of the case ends.

    Attributes:
        site: The site.
        reason: Part of what its supervisor says of that.
        node: Id of the statement that does it.
        times: How often: an operation that may be run again is, as often as dfmesh begins a job.
    """

    site: str
    reason: str
    node: str
    times: int


@dataclass
class Case:
    """What is submitted, and what must come of it if nothing else goes wrong.

    Attributes:
        name: Of its template.
        pipeline: What is submitted.
        sets: Its parameter sets.
        results: Place to (frame, value) of all results.
        failures: What fails of itself.
        deaths: Sites that it ends itself.
        once_sites: Sites where it calls something that must not run twice.
        streams_once: Whether one of those makes a stream, which cannot be kept to be given again.
        once_log: Where those calls leave a line each; None if there are none.
        apart: Places whose results need no more than these sites, whatever becomes of the others.
        loose: Places whose values are lists from which those of lost sites may be missing.
        seconds: How long it takes, roughly.
        faults: Kind to how many faults of that kind are part of it.
        iterated: Whether the sets are handed over as an iterator.
    """

    name: str
    pipeline: Pipeline
    sets: list[dict[str, Any]]
    results: dict[str, list[tuple[Frame, Any]]]
    failures: list[Expected] = field(default_factory=list)
    deaths: list[Death] = field(default_factory=list)
    once_sites: set[str] = field(default_factory=set)
    streams_once: bool = False
    once_log: Path | None = None
    apart: dict[str, set[str]] = field(default_factory=dict)
    loose: set[str] = field(default_factory=set)
    seconds: float = 0.5
    faults: dict[str, int] = field(default_factory=dict)
    iterated: bool = False


class Draft:
    """A case that is being written by a template.

    Attributes:
        random: Source of all choices.
        ops: The operations of the federation.
        case: The case.
    """

    def __init__(self, source: random.Random, ops: Any, key: str, scratch: Path) -> None:
        """Begin.

        Args:
            source: Of all choices.
            ops: Operations of the federation.
            key: A name that no other job of the run has.
            scratch: Directory for files of the operations.
        """
        self.random = source
        self.ops = ops.chaos
        self.key = key
        self.scratch = scratch
        self.case = Case("", Pipeline(), [{}], {})

    def site(self, *others: str) -> str:
        """Choose a site, not one of the others."""
        return self.random.choice([site for site in SITES if site not in others])

    def call(self, operation: str, site: str, **arguments: Any) -> Any:
        """Write a call of an operation at a site."""
        if operation in ONCE_ONLY:
            self.case.once_sites.add(site)
            self.case.streams_once |= operation == "StreamOnce"
        return getattr(self.ops, operation)(site=site, **arguments)

    def once(self, site: str, x: Any, label: str) -> Any:
        """Write a call that must not be made twice for the same value."""
        self.case.once_log = self.scratch / f"{self.key}.once"
        return self.call("Once", site, x=x, label=label, log=str(self.case.once_log))

    def step(self, x: Any, label: str = "") -> tuple[Any, Callable[[int], int]]:
        """Write some operation on a whole number, and give its value and what it does in plain Python.

        Args:
            x: The number.
            label: Name of the step if `x` has another value in each frame, so that it may be a call that must not
                be made twice for a value; empty if not.
        """
        site, choice = self.site(), self.random.random()
        if choice < 0.12 and label:
            return self.once(site, x, label), lambda v: 3 * v + 1
        if choice < 0.22:
            seconds = self.random.choice([0.01, 0.05, 0.2])
            operation = self.random.choice(["Sleep", "Wait", "Loop"])
            return self.call(operation, site, seconds=seconds, x=x), lambda v: v
        a, b = self.random.randrange(1, 9), self.random.randrange(100)
        seconds = self.random.choice([0.0, 0.0, 0.0, 0.02, 0.1])
        return self.call("Affine", site, x=x, a=a, b=b, seconds=seconds), lambda v: a * v + b

    def give_sets(self, most: int, **more: Callable[[int], Any]) -> list[int]:
        """Make parameter sets with a different whole number `x` each, and give these numbers."""
        start, count = self.random.randrange(1_000), self.random.randrange(1, most + 1)
        xs = [start + 7 * k for k in range(count)]
        self.case.sets = [{"x": x, **{name: make(x) for name, make in more.items()}} for x in xs]
        return xs

    def expect(self, place: str, frame: Frame, value: Any) -> None:
        """Note a result."""
        self.case.results.setdefault(place, []).append((frame, value))

    def fails(self, node: str, site: str, kind: str, text: str, frames: set[Frame]) -> None:
        """Note a failure."""
        self.case.failures.append(Expected(node, site, kind, text, frozenset(frames)))


Template = Callable[[Draft], None]
