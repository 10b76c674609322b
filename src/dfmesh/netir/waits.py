"""What waits for what in the nets of all sites, to prove that nothing waits for itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from dfmesh.netir.net import ITERATION_PORTS, Collect, LookUp, Loop, NetIR, Reduce, Store, Transition


class WaitGraph:
    """What waits for what, within the frames of one parameter set.

    There is a point for the end of each transition and, for loops, one for the beginning and one for the end of an
    iteration: a loop ends when its iterations have, since only so many may be open at a time.

    Attributes:
        transitions: All transitions of all nets.
    """

    def __init__(self, nets: Iterable[NetIR]) -> None:
        """Find out; the nets must be sound in all else.

        Args:
            nets: The nets of all sites of a job.
        """
        nets = list(nets)
        self.transitions: list[Transition] = [transition for net in nets for transition in net.transitions]
        self._waits: list[list[int]] = [[] for _ in self.transitions]
        self._owner = list(range(len(self.transitions)))
        self._at = {transition.id: point for point, transition in enumerate(self.transitions)}
        self._begins: dict[int, int] = {}
        self._iterations: dict[int, int] = {}
        self._loop_of: dict[int, int] = {}
        self._add_loops()
        sources = self._sources(nets)
        for point, transition in enumerate(self.transitions):
            self._add_waits(point, transition, sources)
        self.order, self._stuck = self._sorted()

    def _add_loops(self) -> None:
        for point, transition in enumerate(self.transitions):
            if isinstance(transition.action, Loop):
                begin = self._begins[transition.id] = self._point(point)
                iteration = self._iterations[transition.action.body] = self._point(point)
                self._loop_of[transition.action.body] = point
                self._waits[point] += (begin, iteration)

    def _point(self, owner: int) -> int:
        self._waits.append([])
        self._owner.append(owner)
        return len(self._waits) - 1

    def _sources(self, nets: list[NetIR]) -> dict[int, int]:
        """Give the point that the token of each place waits for."""
        points: dict[int, int] = {}
        for point, transition in enumerate(self.transitions):
            for route in transition.routes:
                early = route.port in ITERATION_PORTS
                points[route.id] = self._begins.get(transition.id, point) if early else point
        return {
            place: points[route]
            for net in nets
            for route, arrival in net.arrivals.items()
            if route in points
            for place in arrival.places
        }

    def _add_waits(self, point: int, transition: Transition, sources: Mapping[int, int]) -> None:
        waits = self._waits[self._begins.get(transition.id, point)]
        for place in transition.inputs:
            source = sources.get(place.id)
            if source is not None:
                waits.append(source)
        if isinstance(transition.action, Collect | Reduce) and transition.action.body in self._loop_of:
            waits.append(self._loop_of[transition.action.body])
        iteration = self._iterations.get(transition.scope)
        if iteration is not None:
            self._waits[iteration].append(point)

    def _sorted(self) -> tuple[list[int], set[int]]:
        """Give the points in an order in which what is waited for comes first, and those that wait for ever."""
        waiting: list[list[int]] = [[] for _ in self._waits]
        missing = [len(waits) for waits in self._waits]
        for point, waits in enumerate(self._waits):
            for source in waits:
                waiting[source].append(point)
        ready = deque(point for point, count in enumerate(missing) if not count)
        order: list[int] = []
        while ready:
            source = ready.popleft()
            order.append(source)
            for point in waiting[source]:
                missing[point] -= 1
                if not missing[point]:
                    ready.append(point)
        return order, {point for point, count in enumerate(missing) if count}

    def cycle(self) -> list[Transition]:
        """Give transitions that wait for one another in a ring, each for the next one; empty if there are none."""
        if not self._stuck:
            return []
        seen: dict[int, int] = {}
        path: list[int] = []
        point = min(self._stuck)
        while point not in seen:
            seen[point] = len(path)
            path.append(point)
            point = next(source for source in self._waits[point] if source in self._stuck)
        owners = [self._owner[point] for point in path[seen[point] :]]
        different = [owner for index, owner in enumerate(owners) if owner != owners[index - 1]]
        return [self.transitions[owner] for owner in different or owners[:1]]

    def crossing_lookups(self) -> dict[int, int]:
        """Find look-ups for whose end another's store waits that may be holding its key by then.

        If such a one waited for an equal key that is being computed elsewhere, two could wait for one another
        crosswise, or one for itself. So it must not wait.

        Returns:
            The id of each such look-up's transition, with the id of one such store's.
        """
        stores = [
            (point, self._at[transition.action.lookup])
            for point, transition in enumerate(self.transitions)
            if isinstance(transition.action, Store) and transition.action.lookup in self._at
        ]
        if len(stores) < 2:
            return {}
        held_until, held_from = [0] * len(self._waits), [0] * len(self._waits)
        for bit, (store, lookup) in enumerate(stores):
            held_until[store] |= 1 << bit
            held_from[lookup] |= 1 << bit
        for point in reversed(self.order):
            until, since = held_until[point], held_from[point]
            if until or since:
                for source in self._waits[point]:
                    held_until[source] |= until
                    held_from[source] |= since
        crossing: dict[int, int] = {}
        for point, transition in enumerate(self.transitions):
            # A key whose look-up waits for this one is not held yet while this one waits.
            others = held_until[point] & ~held_from[point] if isinstance(transition.action, LookUp) else 0
            if others:
                store, _ = stores[others.bit_length() - 1]
                crossing[transition.id] = self.transitions[store].id
        return crossing
