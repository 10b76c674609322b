"""In which order a search fixes variables: senders before receivers, few open ends at any time."""

from __future__ import annotations

from dfmesh.compiler.placement.problem import Problem

CAREFUL = 300
"""Variables up to which the number of open ends is looked at; beyond, the order of the pipeline is kept."""


def search_order(problem: Problem) -> list[int]:
    """Order the variables; each follows those that its first node takes something from."""
    count = len(problem.members)
    if count > CAREFUL:
        return list(range(count))
    neighbours = neighbourhood(problem)
    needed = [_needed(problem, variable) for variable in range(count)]
    placed: set[int] = set()
    order: list[int] = []
    while len(order) < count:
        ready = [v for v in range(count) if v not in placed and needed[v] <= placed]
        last = order[-1] if order else -1
        chosen = min(ready, key=lambda v: (_opened(v, neighbours, placed), last not in neighbours[v], v))
        placed.add(chosen)
        order.append(chosen)
    return order


def decoupling_order(problem: Problem) -> list[int]:
    """Order the variables so that each has few neighbours, direct or through later ones, before it.

    It is the reverse of an elimination by least degree; for trees every variable has one neighbour before it. Senders
    may follow receivers.
    """
    count = len(problem.members)
    if count > CAREFUL:
        return list(range(count))
    neighbours = neighbourhood(problem, timed=False)
    left = set(range(count))
    order: list[int] = []
    while left:
        chosen = min(left, key=lambda v: (len(neighbours[v]), -v))
        left.remove(chosen)
        order.append(chosen)
        around = neighbours[chosen]
        for other in around:
            neighbours[other] |= around
            neighbours[other] -= {other, chosen}
    return order[::-1]


def neighbourhood(problem: Problem, *, timed: bool = True) -> list[set[int]]:
    """Give the variables that each variable shares a shipment or a rule with, and an edge if time counts."""
    own = problem.variable
    found: list[set[int]] = [set() for _ in problem.members]
    pairs = [(shipment.source, consumer) for shipment in problem.shipments for consumer in shipment.consumers]
    if timed:
        pairs += [(own[a], own[b]) for a, b in zip(problem.source.tolist(), problem.target.tolist(), strict=True)]
    for first, second in [*pairs, *problem.residency]:
        if first != second:
            found[first].add(second)
            found[second].add(first)
    return found


def _needed(problem: Problem, variable: int) -> set[int]:
    first = problem.members[variable][0]
    return {problem.variable[source] for _, source in problem.incoming[first]}


def _opened(variable: int, neighbours: list[set[int]], placed: set[int]) -> int:
    """Count by how much the open ends grow: variables that still have neighbours to be placed."""
    after = placed | {variable}
    closed = sum(1 for other in neighbours[variable] & placed if neighbours[other] <= after)
    return (not neighbours[variable] <= after) - closed


__all__ = ["decoupling_order", "search_order"]
