"""Looking for a placement within a limit of seconds: fix variables one by one, take back what leads nowhere.

After each choice `propagation.py` rules out what no longer keeps the limit. The variable with the fewest sites left is
fixed next, those before others at which choices have failed often; so the search is where the problem is hard, and what
is left when that is settled is chosen from first to last without looking back (*completed*).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.problem import Floats, Indices
from dfmesh.compiler.placement.propagation import Propagation, State

FAILED = 0.2
"""By how much a failed choice makes a variable more urgent, as a share."""

TRIED = 3
"""Sites of a variable that are tried before the limit is raised, once there is no more patience."""

RAISE = 0.002
"""Share by which the limit is raised at first where no site keeps it; twice as much each time after."""

CHOOSING = 5
"""Edges whose update takes about as long as the rest of a choice."""

COMPLETED = frozenset({0, *(2**power for power in range(3, 20, 2))})
"""Numbers of fixed variables at which completing is tried."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a descent.

    Attributes:
        chosen: A placement within the limit, or one little above it; None if there is none, or none was found.
        proven: Whether there is certainly none within the limit.
    """

    chosen: list[int] | None
    proven: bool


@dataclass(slots=True)
class _Choice:
    variable: int
    best: list[int]
    left: list[int]
    state: State
    site: int = -1


class Descent:
    """Descents within one limit after the other; later ones know where earlier ones failed.

    Attributes:
        propagation: What is left of the problem.
        steps: Choices looked at.
    """

    def __init__(self, propagation: Propagation) -> None:
        self.propagation = propagation
        self.steps = 0
        self._problem = propagation.problem
        self._urgency = np.ones(len(propagation.sites))
        self._stack: list[_Choice] = []
        self._patient_until = self._end = 0

    def within(self, limit: float, ceiling: float, patience: int, work: int) -> Outcome:
        """Look for a placement within a limit.

        Args:
            limit: Seconds.
            ceiling: Seconds; placements that take as long are of no use.
            patience: After how much work, by the propagation's count, the limit is raised where choices fail, instead
                of taking back earlier ones.
            work: After how much the descent ends.
        """
        propagation = self.propagation
        if not propagation.begin(limit):
            return Outcome(None, proven=True)
        self._patient_until = propagation.work + patience
        self._end = propagation.work + work
        self._stack = []
        completed, spare = -1, None
        while True:
            depth = len(self._stack)
            if depth in COMPLETED and depth > completed:
                completed = depth
                chosen = self.completed()
                seconds = np.inf if chosen is None else self._problem.seconds(chosen)
                if seconds <= propagation.limit:
                    return Outcome(chosen, proven=False)
                if seconds < ceiling:
                    spare, ceiling = chosen, seconds
            variable = self._next()
            if variable is None:
                return Outcome(propagation.chosen(), proven=False)
            best = self._options(variable)
            self._stack.append(_Choice(variable, best, best[::-1], propagation.state))
            if not self._choose(ceiling):
                return Outcome(spare, proven=not self._stack)
            completed = min(completed, len(self._stack) - 1)

    def _next(self) -> int | None:
        if len(self._stack) == len(self._urgency):
            return None
        size = self.propagation.state.left / self._urgency
        size[[choice.variable for choice in self._stack]] = np.inf
        return int(size.argmin())

    def _options(self, variable: int) -> list[int]:
        """Give the positions left for a variable, the most promising first."""
        propagation, problem = self.propagation, self._problem
        positions, longest = propagation.promises(variable)
        if problem.limited:
            sites = propagation.sites[variable][positions]
            busy = self._busy()[sites] + problem.load[variable, sites]
            may = busy <= propagation.limit
            positions, longest = positions[may], np.maximum(longest, busy)[may]
        found: list[int] = positions[np.argsort(longest, kind="stable")].tolist()
        return found

    def _busy(self) -> Floats:
        sites = [choice.site for choice in self._stack]
        load = self._problem.load[[choice.variable for choice in self._stack], sites]
        busy: Floats = np.bincount(np.array(sites, np.intp), load, len(self._problem.sites)).astype(np.float64)
        return busy

    def _choose(self, ceiling: float) -> bool:
        """Follow the next choice that leaves something; False if there is none, or none before the ceiling."""
        propagation = self.propagation
        share = RAISE
        while self._stack:
            choice = self._stack[-1]
            propagation.state = choice.state
            is_patient = propagation.work < self._patient_until
            if propagation.work >= self._end:
                return False
            if choice.left and (is_patient or len(choice.best) - len(choice.left) < TRIED):
                self.steps += 1
                propagation.work += CHOOSING
                if propagation.choose(choice.variable, choice.left.pop()):
                    choice.site = propagation.site(choice.variable)
                    return True
                self._urgency[choice.variable] += FAILED
            elif is_patient:
                propagation.work += CHOOSING
                self._stack.pop()
            elif not choice.best or propagation.limit * (1 + share) >= ceiling:
                return False
            else:
                propagation.limit *= 1 + share
                share *= 2
                choice.left = choice.best[:1]
                choice.best = choice.best[:1]
        return False

    def completed(self) -> list[int] | None:
        """Choose what is not fixed from first to last, each where the whole ends first as far as can be seen."""
        self.propagation.work += len(self.propagation.sites)
        return _Completing(self.propagation).run()


class _Completing:
    def __init__(self, propagation: Propagation) -> None:
        self._propagation = propagation
        self._problem = propagation.problem
        self._position = propagation.state.position[:]
        self._ends: list[float] = [-1.0] * len(self._problem.variable)
        self._busy = np.zeros(len(self._problem.sites))

    def run(self) -> list[int] | None:
        order: list[int] = list(range(len(self._position)))
        if self._problem.limited:
            order.sort(key=self._regret)
        if not all(self._place(variable) for variable in order):
            return None
        sites = self._propagation.sites
        return [int(sites[variable][position]) for variable, position in enumerate(self._position)]

    def _regret(self, variable: int) -> float:
        """Give how much longer a variable busies a site if it does not get the best one; most first."""
        sites = self._propagation.sites[variable][self._propagation.state.alive[variable]]
        load = np.sort(self._problem.load[variable, sites])
        return -float(load[1] - load[0]) if len(load) > 1 else -np.inf

    def _place(self, variable: int) -> bool:
        propagation, problem = self._propagation, self._problem
        positions = propagation.allowed(variable, self._position)
        if not len(positions):
            return False
        ends: dict[int, Floats] = {}
        longest = np.zeros(len(positions))
        for node in problem.members[variable]:
            ends[node] = self._end(node, positions, ends)
            longest = np.maximum(longest, propagation.through(node, positions, ends[node]))
        if problem.limited:
            sites = propagation.sites[variable][positions]
            load = problem.load[variable, sites]
            longest = np.maximum(longest, self._busy[sites] + load)
            in_time = longest <= propagation.limit
            if np.isfinite(propagation.limit) and in_time.any():  # What keeps the sites least busy leaves most room.
                longest = np.where(in_time, load, np.inf)
        best = int(longest.argmin())
        self._position[variable] = int(positions[best])
        site = propagation.sites[variable][positions[best]]
        self._busy[site] += problem.load[variable, site]
        for node, found in ends.items():
            self._ends[node] = float(found[best])
        return True

    def _end(self, node: int, positions: Indices, ends: dict[int, Floats]) -> Floats:
        """Give when a node ends at some positions; inputs that are not known yet come as early as they can."""
        propagation, problem = self._propagation, self._problem
        start = np.zeros(len(positions))
        for edge, source in problem.incoming[node]:
            if source in ends:
                start = np.maximum(start, ends[source])
            elif self._ends[source] >= 0:
                at = self._position[problem.variable[source]]
                start = np.maximum(start, self._ends[source] + propagation.delay[edge][at, positions])
            else:
                start = np.maximum(start, propagation.state.start[node][positions])
        end: Floats = start + propagation.compute[node][positions]
        return end


__all__ = ["Descent", "Outcome"]
