"""Offers of the many takers of one value, for `pair_smoothing.py`: as few as takers and sites, not pairs of sites.

Each taker offers something wherever it may be. At each of its sites, the source may have to give back what the takers
offer together at a site beyond what the shipment costs between the two. That is a weaker relaxation than one with a
way from each site to each per taker, but not by much where takers are many, and far smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.problem import Flags, Floats, Indices, Problem, Whole

CROWD = 24
"""Takers of one value from which on it is treated like this."""

FAINTEST = 60.0
"""Size of an exponent above which a weight is taken as none or all."""


STIFFNESS = 10.0
"""How much more the offers of a crowd turn the slope when they rise together. Chosen by trial."""


@dataclass(slots=True, eq=False)
class Crowds:
    """The shipments of a problem that have many takers.

    An *entrance* is a shipment with a site that takers may be at; offers are ordered by entrance. A *delivery* is an
    entrance with a site of the source.

    Attributes:
        taker: Choice that each offer is made for.
        entrance: Entrance of each offer.
        sender: Choice of each delivery.
        opened: Entrance of each delivery.
        cost: What each delivery costs.
        offers: What the takers offer.
    """

    taker: Indices
    entrance: Indices
    sender: Indices
    opened: Indices
    cost: Whole
    offers: Floats
    _pace: Floats
    _entrances: int

    @classmethod
    def of(
        cls, problem: Problem, charges: Charges, domain: Flags, position: Indices, messages: Messages | None = None
    ) -> Self:
        """State them.

        Args:
            problem: The problem.
            charges: What is charged.
            domain: Sites to choose from, `[variable, site]`.
            position: Number of each choice, `[variable, site]`.
            messages: Those among the same sites, to begin with what they have moved; None to offer nothing.
        """
        offers = [np.zeros(0)]
        takers, entrances, senders, opened, costs = ([np.zeros(0, np.intp)] for _ in range(5))
        known = 0
        for number, shipment in enumerate(problem.shipments):
            if len(shipment.consumers) < CROWD:
                continue
            at = np.flatnonzero(domain[shipment.source])
            among = np.flatnonzero(domain[list(shipment.consumers)].any(0))
            for which, consumer in enumerate(shipment.consumers):
                to = np.flatnonzero(domain[consumer])
                offers.append(np.zeros(len(to)) if messages is None else _begun(messages, number, which))
                takers.append(position[consumer, to])
                entrances.append(known + np.searchsorted(among, to))
            senders.append(np.repeat(position[shipment.source, at], len(among)))
            opened.append(np.tile(known + np.arange(len(among)), len(at)))
            costs.append(charges.between(number, at, among).ravel())
            known += len(among)
        taker, entrance = np.concatenate(takers), np.concatenate(entrances)
        return cls._made(
            taker,
            entrance,
            np.concatenate(senders),
            np.concatenate(opened),
            np.concatenate(costs),
            np.concatenate(offers),
        )

    @classmethod
    def _made(
        cls, taker: Indices, entrance: Indices, sender: Indices, opened: Indices, cost: Whole, offers: Floats
    ) -> Self:
        touching = np.bincount(taker)
        pace = np.asarray(1.0 / (touching[taker] + 1.0) if len(taker) else (), np.float64)
        entrances = 1 + max(int(opened.max(initial=-1)), int(entrance.max(initial=-1)))
        return cls(taker, entrance, sender, opened, cost, offers, pace, entrances)

    def restricted(self, keep: Flags, decided: Flags, own: Whole) -> Self:
        """Give what is left when only some choices are.

        Args:
            keep: Which choices are left.
            decided: Which of those that are left are of variables with no other.
            own: What each choice that is left is charged; what the source is sure to pay is added.
        """
        renamed = np.cumsum(keep) - 1
        offered, delivered = keep[self.taker], keep[self.sender]
        taker, entrance, offers = renamed[self.taker[offered]], self.entrance[offered], self.offers[offered]
        sender, opened, cost = renamed[self.sender[delivered]], self.opened[delivered], self.cost[delivered]
        # Where a taker is sure to be, the shipment is sure to be paid, and costs the others nothing.
        known = np.zeros(self._entrances, np.bool_)
        known[entrance[decided[taker]]] = True
        sure = known[opened]
        np.add.at(own, sender[sure], cost[sure])
        left = ~known[entrance]
        offering = np.zeros(len(known), np.bool_)
        offering[entrance[left]] = True
        still = offering[opened]
        return self._made(taker[left], entrance[left], sender[still], opened[still], cost[still], offers[left])

    @property
    def size(self) -> int:
        """How many offers and deliveries there are."""
        return len(self.taker) + len(self.sender)

    def beyond(self, offers: Floats) -> Floats:
        """Give by how much offers are more than each delivery costs; below zero where they are less."""
        together = np.bincount(self.entrance, offers, self._entrances).astype(np.float64)
        beyond: Floats = together[self.opened] - self.cost
        return beyond

    def left(self, offers: Floats, beyond: Floats, choices: int) -> Floats:
        """Give what offers add to what each choice has to pay."""
        left = np.bincount(self.taker, offers, choices).astype(np.float64)
        left -= np.bincount(self.sender, np.maximum(beyond, 0.0), choices)
        return left

    def smoothing(self, beyond: Floats, temperature: float, choices: int) -> Floats:
        """Give how much less each choice pays when giving back is smoothed."""
        smooth = temperature * np.log1p(np.exp(-np.minimum(np.abs(beyond) / temperature, FAINTEST)))
        return np.bincount(self.sender, smooth, choices).astype(np.float64)

    def slope(self, beyond: Floats, weights: Floats, temperature: float) -> Floats:
        """Give how fast the bound rises with each offer, the choices having some weights."""
        share = 1.0 / (1.0 + np.exp(np.clip(-beyond / temperature, -FAINTEST, FAINTEST)))
        given_back = np.bincount(self.opened, share * weights[self.sender], self._entrances)
        slope: Floats = weights[self.taker] - given_back[self.entrance]
        return slope

    def step(self, slope: Floats, offers: Floats) -> Floats:
        """Give steps that are short where many takers of a value rise together, and long where they disagree."""
        moving = np.where((offers > 0) | (slope > 0), self._pace, 0.0)
        step = moving * slope
        together = np.bincount(self.entrance, step, self._entrances)
        brake = STIFFNESS / (1.0 + STIFFNESS * np.bincount(self.entrance, moving, self._entrances))
        longer: Floats = step - moving * (together * brake)[self.entrance]
        return longer

    def certified(self, offers: Floats, left: Whole) -> None:
        """Add what offers, rounded down to whole numbers, are sure to add to what each choice has to pay."""
        whole = np.floor(np.maximum(offers, 0.0)).astype(np.int64)
        together = np.zeros(self._entrances, np.int64)
        np.add.at(together, self.entrance, whole)
        np.add.at(left, self.taker, whole)
        np.subtract.at(left, self.sender, np.maximum(together[self.opened] - self.cost, 0))


def _begun(messages: Messages, number: int, which: int) -> Floats:
    """Give what a taker bears at each site by messages."""
    to_source, to_taker, share = messages.borne(number, which)
    if share is not None and len(to_source) == 1:
        return np.asarray(share[0], np.float64)
    return np.asarray(np.maximum(to_taker, 0), np.float64)


__all__ = ["CROWD", "Crowds"]
