"""Placements, and bounds, by an ascent among the few sites that messages leave or find best.

Messages get stuck above what their relaxation is worth, an ascent does not; but its steps are long where there are many
sites. Among six sites of each variable it takes a fraction of a second, and those nearly always have a placement next
to the best.
"""

from __future__ import annotations

import numpy as np

from dfmesh.compiler.placement.ascents import AMONG_FEW, BRANCH, WHOLE_AMONG_FEW
from dfmesh.compiler.placement.crowds import CROWD
from dfmesh.compiler.placement.hubs import resent
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.pair_smoothing import PairSmoothing
from dfmesh.compiler.placement.passing import pass_on
from dfmesh.compiler.placement.rounding import likeliest, rounded
from dfmesh.compiler.placement.schedule import Neighbours, Scheduler
from dfmesh.compiler.placement.standing import Standing
from dfmesh.compiler.placement.ways import ways_of

PROMISING = 6
"""Sites of a variable among which placements are made."""

MOVES = 4_000
"""Variables that may be looked at to move them one by one."""

LESS_WAYS = 150_000
"""Ways up to which there is an ascent after messages."""

WAY = 15
"""Entries of a table that take as long as one way in one step of an ascent."""

FREE, FREE_ROUNDS = 2, 7
"""Sites of a hub with which placements are made where its value costs nothing, and passes for each."""


def concentrate(standing: Standing, messages: Messages, *, everywhere: bool = True) -> None:
    """Make placements from the sites that look best by messages.

    Args:
        standing: Takes the placements.
        messages: They are passed on once more.
        everywhere: As for `pass_on`.
    """
    problem = standing.problem
    messages.watch(range(len(problem.members)))
    for send in (messages.forward, messages.backward):
        if not messages.remove(send(standing.total)):
            if everywhere:
                standing.note_bound(standing.total)
            return
    promising = np.zeros_like(problem.domain)
    for variable, least in messages.least.items():
        best = np.argsort(least, kind="stable")[:PROMISING]
        promising[variable, messages.sites[variable][best]] = True
    promising[np.arange(len(standing.chosen)), standing.chosen] = True
    smoothing = PairSmoothing.of(problem, standing.charges, promising)
    scale = _scale(standing)
    smoothing.raised(AMONG_FEW.rounds, AMONG_FEW.warm * scale, AMONG_FEW.cool * scale)
    scheduler, neighbours = Scheduler(problem), Neighbours(problem, standing.charges)
    for chosen in (likeliest(smoothing), rounded(smoothing, scale, WHOLE_AMONG_FEW)):
        standing.consider(scheduler.improve(chosen, neighbours, np.inf, MOVES))


def concentrate_where_free(standing: Standing, messages: Messages, hub: int) -> None:
    """Make placements with a hub at its best sites, and what takes its values where they come for nothing."""
    problem, least = standing.problem, messages.least[hub]
    for position in np.argsort(least, kind="stable")[:FREE].tolist():
        if least[position] >= standing.total:
            return
        domain, site = messages.domain(), int(messages.sites[hub][position])
        domain[hub] = np.arange(len(problem.sites)) == site
        for number, shipment in enumerate(problem.shipments):
            if shipment.source == hub:
                takers = list(shipment.consumers)
                free = domain[takers] & (standing.charges.sending(number, site) == 0)
                domain[takers] = np.where(free.any(1)[:, None], free, domain[takers])
        there = Messages(problem, standing.charges, messages.order, domain)
        pass_on(standing, there, FREE_ROUNDS, np.inf, everywhere=False)
        concentrate(standing, there, everywhere=False)
        messages.work += there.work


def ascended(standing: Standing, messages: Messages) -> int:
    """Make placements at the sites that are left, and give a bound of those; 0 if there are too many ways."""
    problem, left = standing.problem, messages.domain()
    if problem.residency or ways_of(problem, left) > LESS_WAYS:
        return 0
    smoothing = PairSmoothing.of(problem, standing.charges, left, messages)
    scale = _scale(standing)
    rounds = min(BRANCH.rounds, BRANCH.effort // max(smoothing.size, 1))
    messages.work += WAY * smoothing.size * rounds
    bound, _ = smoothing.raised(rounds, BRANCH.warm * scale, BRANCH.cool * scale)
    scheduler, neighbours = Scheduler(problem), Neighbours(problem, standing.charges)
    chosen = scheduler.improve(likeliest(smoothing), neighbours, np.inf, MOVES)
    for number, shipment in enumerate(problem.shipments):
        if len(shipment.consumers) >= CROWD:
            chosen = resent(problem, neighbours, chosen, number)
    standing.consider(scheduler.improve(chosen, neighbours, np.inf, MOVES))
    return bound


def _scale(standing: Standing) -> float:
    """Give what a variable is charged on the average."""
    return max(1.0, standing.total / len(standing.chosen))


__all__ = ["LESS_WAYS", "MOVES", "ascended", "concentrate", "concentrate_where_free"]
