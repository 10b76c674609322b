"""The ways of all shipments as lists, for `pair_smoothing.py`, and what of them is decided already."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dfmesh.compiler.placement.problem import Flags, Floats, Indices, Whole


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """Ways from sites of sources to sites of takers.

    Departures, arrivals and groups are named by numbers; some of these may not occur.

    Attributes:
        sender: Choice of each departure.
        taker: Choice of each arrival.
        departure: Departure of each way.
        arrival: Arrival of each way; ways are ordered by it.
        cost: What each way costs.
        group: Ways of one shipment between the same sites have the same.
        tolls: Toll of each departure.
        parts: Part of the cost that the taker of each way bears; below zero for an equal one.
    """

    sender: Indices
    taker: Indices
    departure: Indices
    arrival: Indices
    cost: Whole
    group: Indices
    tolls: Floats
    parts: Floats

    def settled(self, decided: Flags, own: Whole) -> Delivery:
        """Charge to the choices what is sure to be paid, and leave it out of the ways.

        Args:
            decided: Choices of variables with no other.
            own: What each choice is charged; changed.
        """
        groups, group = _named(self.group)
        cost = self.cost
        # A way that a taker is sure to use is paid by the source wherever it is, and free for other takers.
        sure = np.flatnonzero(decided[self.taker[self.arrival]] & (cost > 0))
        paid, at = np.unique(group[sure], return_index=True)
        np.add.at(own, self.sender[self.departure[sure[at]]], cost[sure[at]])
        is_paid = np.zeros(groups, np.bool_)
        is_paid[paid] = True
        cost = np.where(is_paid[group], 0, cost)
        # What a single taker has to pay wherever it is, the source being known, is its own charge.
        alone = np.bincount(group, minlength=groups)[group] == 1
        certain = np.flatnonzero(alone & decided[self.sender[self.departure]] & (cost > 0))
        np.add.at(own, self.taker[self.arrival[certain]], cost[certain])
        cost[certain] = 0
        return replace(self, cost=cost, group=group)

    def audible(self) -> Delivery:
        """Leave out takers with nothing left to pay, and number departures and arrivals without gaps."""
        matters = np.zeros(len(self.sender), np.bool_)
        matters[self.departure[self.cost > 0]] = True
        about = np.zeros(len(self.taker), np.bool_)
        about[self.arrival[matters[self.departure]]] = True
        still = about[self.arrival]
        departures, departure = _kept(self.departure[still], len(self.sender))
        arrivals, arrival = _kept(self.arrival[still], len(self.taker))
        return Delivery(
            self.sender[departures],
            self.taker[arrivals],
            departure,
            arrival,
            self.cost[still],
            self.group[still],
            self.tolls[departures],
            self.parts[still],
        )


def _named(names: Indices) -> tuple[int, Indices]:
    """Number the names that occur without gaps, in order."""
    there, renamed = _kept(names, int(names.max(initial=-1)) + 1)
    return len(there), renamed


def _kept(names: Indices, count: int) -> tuple[Indices, Indices]:
    """Give which names below a number occur, and the same list with these numbered without gaps."""
    occurs = np.zeros(count, np.bool_)
    occurs[names] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[names]


__all__ = ["Delivery"]
