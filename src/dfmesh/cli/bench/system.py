"""What a system under measurement can be asked for. Only the standard library is imported here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

SITES = ("home", "a", "b", "c")
"""Every system has four sites, workers or actors; the client attaches to the first if it attaches to one."""

ITEM_WINDOW = 256
"""Items that are open at a time."""

ARRAY_WINDOW = 4
"""Arrays that are open at a time."""

IN_FLIGHT = 16
"""Jobs that each of several clients keeps in flight, if the system can take as many."""


class CannotStateError(Exception):
    """This system has no way to say what is asked; the message is the reason, for the table."""


class Client(NamedTuple):
    """How one client starts a job of one operation, and takes its result.

    Attributes:
        submit: Starts a job that gives a number back; takes the number, gives what `take` wants.
        take: Waits for the end of that job and checks its result.
    """

    submit: Callable[[int], Any]
    take: Callable[[Any], None]


class Task(NamedTuple):
    """One task of a task graph.

    Attributes:
        column: Its position in its step, from 0; decides which worker it belongs to.
        sources: Indices, in the list of all tasks, of those that it depends on; all of them come before it.
    """

    column: int
    sources: tuple[int, ...]


class System:
    """One system, running. What a subclass does not define, it cannot do.

    All work is done by the functions of `operations`. Sites a and b are separate processes.
    """

    name: ClassVar[str]
    import_statement: ClassVar[str]
    """What a user's script imports."""
    in_flight: ClassVar[int] = IN_FLIGHT
    """Jobs that each client keeps in flight."""
    fixed_processes: ClassVar[bool] = True
    """Whether every job runs in the processes that `site_processes` gives."""

    def __enter__(self) -> Self:
        """Start four sites; they are ready when it returns."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything."""

    def first_results(self) -> list[int]:
        """Run one operation at each of the four sites; gives what they gave, which is 0, 1, 2, 3."""
        raise CannotStateError("not measured")

    def call(self, number: int) -> int:
        """Run a prepared job of one operation, which gives the number back, and wait for its end."""
        raise CannotStateError("not measured")

    def first_value(self, number: int) -> float:
        """Run such a job; gives the seconds until its value was there, which may be before its end."""
        raise CannotStateError("a job ends with its value")

    def client(self) -> Client:
        """Give one more client, to be used by one thread beside others."""
        raise CannotStateError("not measured")

    def items(self, count: int) -> int:
        """Make a list at site a, run one operation at site b on each element; gives the sum of what came back."""
        raise CannotStateError("not measured")

    def arrays(self, size: int, count: int) -> list[float]:
        """Move arrays that exist at site a to site b, and probe them there; gives the probes in order."""
        raise CannotStateError("not measured")

    def fresh_array(self, size: int) -> float:
        """Make an array at site a, move it to site b, and probe it there; gives the probe."""
        raise CannotStateError("not measured")

    def chains(self, hops: int, count: int) -> list[int]:
        """Run chains of operations, one after the other, alternately at sites b and a; gives what comes out.

        Args:
            hops: Operations of a chain, an even number.
            count: Chains that run at the same time; chain n carries the number n.
        """
        raise CannotStateError("not measured")

    def site_processes(self) -> dict[str, int]:
        """Give the process id of each site that is a process of its own."""
        raise CannotStateError("not measured")

    def graph(self, tasks: Sequence[Task], width: int) -> Callable[[int], list[int]]:
        """Prepare a task graph for two workers that share the columns.

        Args:
            tasks: The tasks, each after those that it depends on.
            width: Number of columns.

        Returns:
            A function that runs all tasks with so many iterations of `operations.work`, and gives the values of those
            on which no other depends, in order.
        """
        raise CannotStateError("not measured")


def ends(tasks: Sequence[Task]) -> list[int]:
    """List the tasks on which no other depends."""
    used = {source for task in tasks for source in task.sources}
    return [index for index in range(len(tasks)) if index not in used]


def worker_of(column: int, width: int) -> int:
    """Say which of two workers a column belongs to: neighbours stay together."""
    return 0 if 2 * column < width else 1
