"""Branch and bound over the variables in order, with dominance between states of the same open ends.

What lies ahead of a partial placement depends only on its *open ends*: sites of variables that still have open
neighbours, when nodes with open receivers end, where shipments under way have arrived. Of two partial placements with
the same sites at their open ends, the one that is neither earlier nor cheaper anywhere is not followed. On chains,
trees and the like the search is thereby a dynamic program.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dfmesh.compiler.placement.problem import Floats, Problem
from dfmesh.compiler.placement.relaxation import Relaxation
from dfmesh.compiler.placement.windows import NANOSECOND, TOLERANCE

REMEMBERED = 24
"""States per set of open ends that are kept for comparison."""

_Row = list[int]


@dataclass(slots=True)
class _Shared:
    """A shipment with several takers: its consumers, and their shares as `[source site][site]`."""

    number: int
    source: int
    consumers: tuple[int, ...]
    shipping: list[list[int]]
    shares: dict[int, list[list[int]]]


@dataclass(slots=True)
class _Stage:
    """What is to be done when one variable of the order is fixed."""

    variable: int
    sites: list[int]
    later: list[tuple[int, list[_Row]]] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    timed: list[int] = field(default_factory=list)
    open_variables: list[int] = field(default_factory=list)
    open_nodes: list[int] = field(default_factory=list)
    open_shared: list[int] = field(default_factory=list)


class Search:
    """Finds the placement of least seconds, or of least charges, within limits on both.

    Attributes:
        best: The best placement found, one site per variable; None if there is none yet.
        seconds: Its seconds (`goal_seconds`), else the limit that it keeps.
        charges: Its charges, where those are the goal.
        steps: Choices looked at.
        complete: Whether everything was looked at or ruled out, so that nothing is better than `best`.
    """

    def __init__(
        self,
        problem: Problem,
        relaxation: Relaxation,
        shipping: list[list[list[int]]] | None,
        order: list[int],
        tails: Floats,
        *,
        limit: float,
        floor: float = 0.0,
        goal_seconds: bool,
        budget: int,
        longest: Floats | None = None,
    ) -> None:
        self.problem = problem
        self.best: list[int] | None = None
        self.seconds = limit
        self.charges = relaxation.ceiling
        self.steps = 0
        self.complete = False
        self._floor = floor
        self._goal_seconds = goal_seconds
        self._budget = budget
        self._timed = goal_seconds or longest is not None
        # Ending earlier than this is of no use to a node: whatever follows, it is in time.
        self._early = None if longest is None else (limit - longest).tolist()
        self._delay = problem.delay
        self._compute: list[list[float]] = problem.compute.tolist()
        self._tails = tails.tolist()
        self._load = problem.load.tolist()
        self._limited = problem.limited
        self._rest: list[_Row] = relaxation.own.tolist()
        self._least = [min(row) for row in self._rest]
        self._bound: int = relaxation.base + sum(self._least)
        self._shared = _shared(problem, relaxation, shipping)
        self._at = [0] * len(self._shared)  # Bits of the sites at which a fixed consumer is.
        self._who: list[dict[int, list[int]]] = [{} for _ in self._shared]
        self._chosen = [-1] * len(order)
        self._ends = [0.0] * len(problem.variable)
        self._busy = [0.0] * len(problem.sites)
        self._known: list[dict[tuple[int, ...], list[tuple[float, ...]]]] = [{} for _ in range(len(order) + 1)]
        self._edges: dict[int, list[list[float]]] = {}
        self._stages = self._staged(order, relaxation)

    def run(self) -> None:
        """Search until nothing better is left, the floor is reached, or the budget of steps is spent."""
        self.complete = self._descend(0, 0.0)

    def _staged(self, order: list[int], relaxation: Relaxation) -> list[_Stage]:
        position = {variable: index for index, variable in enumerate(order)}
        stages = [
            _Stage(variable, [site for site, may in enumerate(relaxation.domain[variable].tolist()) if may])
            for variable in order
        ]
        for (first, second), table in zip(relaxation.pairs, relaxation.tables.tolist(), strict=True):
            stages[position[first]].later.append((second, table))
        for index, shared in enumerate(self._shared):
            stages[position[shared.source]].sent.append(index)
            for consumer in shared.consumers:
                stages[position[consumer]].taken.append(index)
        if self._timed:
            self._schedule(stages, position)
        _open_ends(self.problem, stages, position, relaxation.pairs, self._shared)
        return stages

    def _schedule(self, stages: list[_Stage], position: dict[int, int]) -> None:
        """Note when each node's end is known: when it and all that it waits for are fixed."""
        known: list[int] = []
        for node, incoming in enumerate(self.problem.incoming):
            own = position[self.problem.variable[node]]
            known.append(max([own, *(known[source] for _, source in incoming)]))
            stages[known[-1]].timed.append(node)

    def _descend(self, depth: int, latest: float) -> bool:
        if depth == len(self._stages):
            self._found(latest)
            return True
        stage = self._stages[depth]
        if depth and not self._is_new(depth, latest):
            return True
        for site in self._options(stage):
            self.steps += 1
            if self.steps > self._budget:
                return False
            if not self._try(stage, site, depth, latest):
                return False
            if self._goal_seconds and self.best is not None and self.seconds <= self._floor:
                return True
        return True

    def _try(self, stage: _Stage, site: int, depth: int, latest: float) -> bool:
        """Follow one choice; False if the budget is spent."""
        variable = stage.variable
        undo: list[tuple[int, _Row, int]] = []
        bound = self._bound
        at = [(index, self._at[index]) for index in stage.taken]
        self._chosen[variable] = site
        self._bound += self._rest[variable][site] - self._least[variable]
        going = self._charge(stage, site, undo)
        ends = self._time(stage, latest) if going else None
        result = True
        if ends is not None:
            load = self._load[variable][site]
            if self._limited:
                self._busy[site] += load
                ends = max(ends, self._busy[site])
            if self._in_time(ends):
                result = self._descend(depth + 1, ends)
            if self._limited:
                self._busy[site] -= load
        self._chosen[variable] = -1
        self._bound = bound
        for other, row, least in reversed(undo):
            self._rest[other], self._least[other] = row, least
        for index, bits in at:
            self._at[index] = bits
            self._who[index][site].remove(variable)
        return result

    def _options(self, stage: _Stage) -> list[int]:
        rest = self._rest[stage.variable]
        if self._goal_seconds:
            starts = {site: self._promise(stage, site) for site in stage.sites}
            return sorted(stage.sites, key=lambda site: (starts[site], rest[site]))
        room = self.charges - self._bound + self._least[stage.variable]
        return sorted((site for site in stage.sites if rest[site] < room), key=rest.__getitem__)

    def _promise(self, stage: _Stage, site: int) -> float:
        """Estimate the whole's seconds if the variable is fixed at a site."""
        self._chosen[stage.variable] = site
        longest = 0.0
        for node in stage.timed:
            if self._site(node) == site:
                self._ends[node] = self._end(node)
                longest = max(longest, self._ends[node] + self._tails[node][site])
        self._chosen[stage.variable] = -1
        return longest

    def _site(self, node: int) -> int:
        return self._chosen[self.problem.variable[node]]

    def _in_time(self, seconds: float) -> bool:
        if self._goal_seconds and self.best is not None:
            return seconds < self.seconds - NANOSECOND / 2
        return seconds <= self.seconds + TOLERANCE

    # Charges

    def _charge(self, stage: _Stage, site: int, undo: list[tuple[int, _Row, int]]) -> bool:
        """Add what a choice costs to what lies ahead; False if that is too much."""
        for other, table in stage.later:
            self._change(other, [a + b for a, b in zip(self._rest[other], table[site], strict=True)], undo)
            if self._bound >= self.charges:
                break
        for index in stage.taken:  # Noted whatever happens, to be taken back likewise.
            self._arrive(index, stage.variable, site, undo)
        for index in stage.sent:
            for end in self._who[index]:
                if self._who[index][end]:
                    self._pay(index, site, end, undo)
        return self._bound < self.charges

    def _change(self, variable: int, row: _Row, undo: list[tuple[int, _Row, int]]) -> None:
        undo.append((variable, self._rest[variable], self._least[variable]))
        least = min(row)
        self._bound += least - self._least[variable]
        self._rest[variable], self._least[variable] = row, least

    def _arrive(self, index: int, variable: int, site: int, undo: list[tuple[int, _Row, int]]) -> None:
        is_first = not self._at[index] >> site & 1
        self._at[index] |= 1 << site
        self._who[index].setdefault(site, []).append(variable)
        start = self._chosen[self._shared[index].source]
        if is_first and start >= 0:
            self._pay(index, start, site, undo)

    def _pay(self, index: int, start: int, end: int, undo: list[tuple[int, _Row, int]]) -> None:
        """Charge a whole shipment to a site, instead of the shares of those who take it there."""
        shared = self._shared[index]
        whole = shared.shipping[start][end]
        if not whole:
            return
        self._bound += whole - sum(shared.shares[variable][start][end] for variable in self._who[index][end])
        for consumer in shared.consumers:
            share = shared.shares[consumer][start][end]
            if share and self._chosen[consumer] < 0:
                row = list(self._rest[consumer])
                row[end] -= share
                self._change(consumer, row, undo)

    # Time

    def _time(self, stage: _Stage, latest: float) -> float | None:
        """Find when the nodes end whose end is now known, and the last of all; None if that is too late."""
        for node in stage.timed:
            end = self._end(node)
            self._ends[node] = end
            if not self._in_time(end + self._tails[node][self._site(node)]):
                return None
            latest = max(latest, end)
        return latest

    def _end(self, node: int) -> float:
        site = self._site(node)
        start = 0.0
        for edge, source in self.problem.incoming[node]:
            rows = self._edges.get(edge)
            if rows is None:
                rows = self._edges[edge] = self._delay[edge].tolist()
            arrival = self._ends[source] + rows[self._site(source)][site]
            if arrival > start:
                start = arrival
        return start + self._compute[node][site]

    # States

    def _is_new(self, depth: int, latest: float) -> bool:
        """Tell whether no state with the same open ends was at least as good in everything."""
        stage = self._stages[depth]
        key = (*map(self._chosen.__getitem__, stage.open_variables), *map(self._at.__getitem__, stage.open_shared))
        state = (
            self._bound,
            latest if self._goal_seconds else 0.0,
            *self._open_times(stage),
            *map(self._busy.__getitem__, self._limited),
        )
        states = self._known[depth].setdefault(key, [])
        for other in states:
            for theirs, ours in zip(other, state, strict=True):
                if theirs > ours:
                    break
            else:
                return False
        if len(states) < REMEMBERED:
            states.append(state)
        return True

    def _open_times(self, stage: _Stage) -> list[float]:
        if self._early is None:
            return [self._ends[node] for node in stage.open_nodes]
        return [max(self._ends[node], self._early[node][self._site(node)]) for node in stage.open_nodes]

    def _found(self, latest: float) -> None:
        self.best = list(self._chosen)
        if self._goal_seconds:
            self.seconds = latest
        else:
            self.charges = self._bound


def _shared(problem: Problem, relaxation: Relaxation, shipping: list[list[list[int]]] | None) -> list[_Shared]:
    if shipping is None:
        return []
    return [
        _Shared(
            number,
            shipment.source,
            shipment.consumers,
            shipping[number],
            {consumer: relaxation.shares[number, consumer].tolist() for consumer in shipment.consumers},
        )
        for number, shipment in enumerate(problem.shipments)
        if len(shipment.consumers) > 1
    ]


def _open_ends(
    problem: Problem,
    stages: list[_Stage],
    position: dict[int, int],
    pairs: list[tuple[int, int]],
    shared: list[_Shared],
) -> None:
    """Note for each stage what a partial placement before it must be compared by."""
    own = [position[variable] for variable in problem.variable]
    known = {node: depth for depth, stage in enumerate(stages) for node in stage.timed}
    until = {depth: depth for depth in range(len(stages))}  # Last stage that depends on a variable's site.
    for first, second in pairs:
        until[position[first]] = max(until[position[first]], position[second])
    for node, depth in known.items():
        until[own[node]] = max(until[own[node]], depth)
        for _, target in problem.outgoing[node]:
            until[own[node]] = max(until[own[node]], known[target])
    for depth, last in until.items():
        for later in range(depth + 1, last + 1):
            stages[later].open_variables.append(stages[depth].variable)
    for node, depth in known.items():
        last = max((known[target] for _, target in problem.outgoing[node]), default=depth)
        for later in range(depth + 1, last + 1):
            stages[later].open_nodes.append(node)
    for index, shipment in enumerate(shared):
        places = [position[variable] for variable in (shipment.source, *shipment.consumers)]
        for later in range(min(places) + 1, max(places) + 1):
            stages[later].open_shared.append(index)


__all__ = ["Search"]
