"""Task graphs of so many columns and steps, in five patterns of dependencies.

The method is Task Bench's: E. Slaughter et al., "Task Bench: A Parameterized Benchmark for Evaluating Parallel Runtime
Performance", SC 2020. The patterns here are our own, like theirs in spirit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

SEED = 2020
MOST_RANDOM_SOURCES = 3

Sources = Callable[[int, int, int], Iterable[int]]
"""Of (step, column, width): the columns of the step before on which a task depends."""


def chain(step: int, column: int, width: int) -> Iterable[int]:
    """Each column by itself."""
    return (column,)


def stencil(step: int, column: int, width: int) -> Iterable[int]:
    """Its own column and its neighbours."""
    return range(max(0, column - 1), min(width, column + 2))


def fan(step: int, column: int, width: int) -> Iterable[int]:
    """By turns: one task depends on all columns, all columns on that one."""
    return range(width) if columns(fan, step, width) == 1 else (0,)


def tree(step: int, column: int, width: int) -> Iterable[int]:
    """Twice as many tasks in each step, until all columns are reached; then each by itself."""
    before = columns(tree, step - 1, width)
    return (column // 2,) if before < columns(tree, step, width) else (column,)


def at_random(step: int, column: int, width: int) -> Iterable[int]:
    """Its own column and up to three others, the same ones in every run."""
    chosen = random.Random(f"{SEED} {step} {column} {width}")
    return {column, *chosen.sample(range(width), min(width, chosen.randint(0, MOST_RANDOM_SOURCES)))}


PATTERNS: dict[str, Sources] = {"chain": chain, "stencil": stencil, "fan": fan, "tree": tree, "random": at_random}


def columns(pattern: Sources, step: int, width: int) -> int:
    """How many tasks a step has."""
    if pattern is fan:
        return width if step % 2 == 0 else 1
    if pattern is tree:
        return min(width, 2**step)
    return width


def graph(name: str, width: int, steps: int) -> list[tuple[int, list[int]]]:
    """A task graph as `(column, indices of the tasks that it depends on)`, step after step."""
    pattern = PATTERNS[name]
    tasks: list[tuple[int, list[int]]] = []
    before: list[int] = []
    for step in range(steps):
        now = []
        for column in range(columns(pattern, step, width)):
            sources = sorted(pattern(step, column, width)) if step else []
            now.append(len(tasks))
            tasks.append((column, [before[source] for source in sources]))
        before = now
    return tasks
