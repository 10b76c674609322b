"""A bound of bytes by smoothed ascent, where passing messages between neighbours stops too early.

It is the linear relaxation of "a shipment is paid once per site that takes it and is not the sender's", which needs
that a shipment costs the same between any two sites. Each taker offers a part of that for every site; the parts of
one shipment and site together are never more than it costs. What the offers leave to pay at the cheapest site of each
variable, added up, is a bound. Its edges are smoothed (each variable weighs its sites by the exponential of what they
cost), so that the offers can follow the slope. Methods: smoothing (Nesterov, Mathematical Programming 2005)
with falling temperature, accelerated steps that restart when they turn back (O'Donoghue and Candes, 2015).

The ascent is in floating point; what is claimed (`certify`) is computed in whole numbers from rounded offers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.problem import Flags, Floats, Indices, Problem, Whole
from dfmesh.compiler.placement.runs import beginnings

LEAST = 1e-9
"""Less than any charge; only keeps divisors from being zero."""

PROJECTIONS = 3
"""How often offers are lowered together before they are scaled down to what the shipment costs."""

ROUGH = 1
"""The same where no bound comes of it."""


def is_uniform(problem: Problem, charges: Charges) -> bool:
    """Tell whether a shipment costs the same between any two sites, and no rule binds two variables."""
    prices = charges.prices
    if problem.residency or not problem.shipments or len(prices) < 2:
        return False
    price = prices[0, 1]
    same = np.count_nonzero(prices == price)
    return bool(price > 0 and not prices.diagonal().any() and same == prices.size - len(prices))


@dataclass(slots=True, eq=False)
class Smoothing:
    """Offers of the takers of all shipments, and what they leave to pay.

    A *choice* is a site of a variable; choices are ordered by variable. An *offer* is of a taker for one of its
    sites; offers are ordered by group, which is a shipment with a site that it may go to.

    Attributes:
        variable: Variable of each choice.
        site: Site of each choice.
        own: What each choice is charged by itself.
        taker: Choice that each offer burdens.
        sender: Choice that each offer relieves: the sender at the same site; the number of choices if it cannot be.
        group: Group of each offer.
        cost: What each group may offer together.
        offers: How much each taker offers.
    """

    variable: Indices
    site: Indices
    own: Whole
    taker: Indices
    sender: Indices
    group: Indices
    cost: Whole
    offers: Floats
    _start: Indices
    _first: Indices
    _pace: Floats
    _ahead: Floats
    _speed: float
    _weights: Floats

    @classmethod
    def of(cls, problem: Problem, charges: Charges, domain: Flags) -> Smoothing:
        """State the relaxation of a problem, each cost offered in equal parts."""
        variable, site = np.nonzero(domain)
        position = np.full(domain.shape, len(variable), np.intp)
        position[variable, site] = np.arange(len(variable))
        takers, senders, groups, costs = [], [], [], []
        apart = np.array([0, 1], np.intp)
        sites = len(problem.sites)
        for number, shipment in enumerate(problem.shipments):
            costs.append(int(charges.between(number, apart[:1], apart[1:])[0, 0]))
            for consumer in shipment.consumers:
                there = np.flatnonzero(domain[consumer])
                takers.append(position[consumer, there])
                senders.append(position[shipment.source, there])
                groups.append(number * sites + there)
        known, group = np.unique(np.concatenate(groups), return_inverse=True)
        order = np.argsort(group, kind="stable")
        return _made(
            variable.astype(np.intp),
            site.astype(np.intp),
            charges.own[variable, site],
            np.concatenate(takers)[order],
            np.concatenate(senders)[order],
            group[order].astype(np.intp),
            np.array(costs, np.int64)[known // sites],
            None,
        )

    def restricted(self, keep: Flags, *, loose: bool = False) -> Smoothing:
        """Give the same relaxation with some of the choices only, and the offers that are left.

        Args:
            keep: Which choices; at least one of each variable.
            loose: Whether offers between variables without a choice are left out: no bound comes of it then.
        """
        renamed = np.append(np.cumsum(keep) - 1, 0)
        there = np.append(keep, np.False_)
        still = keep[self.taker]
        if loose and self.size:
            is_open = np.append((np.bincount(self.variable[keep]) > 1)[self.variable] & keep, np.False_)
            deciding = still & (is_open[self.taker] | is_open[self.sender])
            still &= np.maximum.reduceat(deciding, self._first)[self.group]
        sender = self.sender[still]
        return _made(
            self.variable[keep],
            self.site[keep],
            self.own[keep],
            renamed[self.taker[still]],
            np.where(there[sender], renamed[sender], np.count_nonzero(keep)),
            self.group[still],
            self.cost,
            self.offers[still],
        )

    @property
    def weights(self) -> Floats:
        """How much each choice weighs among those of its variable, after an ascent."""
        return self._weights[:-1]

    @property
    def starts(self) -> Indices:
        """First choice of each variable."""
        return self._start

    @property
    def size(self) -> int:
        """How many offers there are, which is what an ascent costs per round."""
        return len(self.taker)

    def raised(self, rounds: int, warm: float, cool: float) -> tuple[int, Whole]:
        """Raise the bound as `ascend` does, and give it as `certify` does."""
        return self.certify(self.ascend(rounds, warm, cool))

    def ascend(self, rounds: int, warm: float, cool: float, *, rough: bool = False) -> Floats:
        """Raise the bound.

        Args:
            rounds: How many steps.
            warm: Temperature of the first step: the charge that makes a site weigh e times less.
            cool: That of the last.
            rough: Whether the bound does not matter, only what it tells about the choices.

        Returns:
            The best offers that were seen.
        """
        best, seen, times = -np.inf, self.offers, ROUGH if rough else PROJECTIONS
        lengths = np.diff(np.append(self._start, len(self.own)))
        for step in range(rounds if self.size else 1):
            temperature = warm * (cool / warm) ** (step / rounds)
            left = self._left(self._ahead)
            least = np.minimum.reduceat(left, self._start)
            if least.sum() > best:
                best, seen = float(least.sum()), self._ahead
            weights = np.exp((np.repeat(least, lengths) - left) / temperature)
            self._weights[:-1] = weights / np.repeat(np.add.reduceat(weights, self._start), lengths)
            slope = self._weights[self.taker] - self._weights[self.sender]
            pace = self._pace * temperature
            offers = self._kept_within_cost(self._ahead + pace * slope, pace, times)
            change = offers - self.offers
            speed = 1.0 if slope @ change < 0 else self._speed
            self._speed = (1 + (1 + 4 * speed * speed) ** 0.5) / 2
            self._ahead = self._kept_within_cost(offers + (speed - 1) / self._speed * change, pace, times)
            self.offers = offers
        return seen

    def _left(self, offers: Floats) -> Floats:
        count = len(self.own)
        left = self.own.astype(np.float64)
        left += np.bincount(self.taker, offers, count)
        left -= np.bincount(self.sender, offers, count + 1)[:count]
        return left

    def _kept_within_cost(self, offers: Floats, pace: Floats, times: int) -> Floats:
        offers = np.maximum(offers, 0.0)
        for _ in range(times):
            above = np.maximum(np.add.reduceat(offers, self._first) - self.cost, 0.0)
            moving = np.where(offers > 0, pace, 0.0)
            together = np.maximum(np.add.reduceat(moving, self._first), LEAST)
            offers = np.maximum(offers - moving * (above / together)[self.group], 0.0)
        together = np.maximum(np.add.reduceat(offers, self._first), LEAST)
        kept: Floats = offers * np.minimum(1.0, self.cost / together)[self.group]
        return kept

    def certify(self, offers: Floats) -> tuple[int, Whole]:
        """Give what every placement is charged at the least, and what each choice adds to it at the least."""
        whole = np.floor(offers).astype(np.int64)
        whole[self._first] -= np.maximum(np.add.reduceat(whole, self._first) - self.cost, 0)
        whole = np.maximum(whole, 0)
        whole[(np.add.reduceat(whole, self._first) > self.cost)[self.group]] = 0
        left = np.append(self.own, 0)
        np.add.at(left, self.taker, whole)
        np.subtract.at(left, self.sender, whole)
        left = left[:-1]
        least = np.minimum.reduceat(left, self._start)
        return int(least.sum()), left - np.repeat(least, np.diff(np.append(self._start, len(left))))


def _made(
    variable: Indices,
    site: Indices,
    own: Whole,
    taker: Indices,
    sender: Indices,
    group: Indices,
    cost: Whole,
    offers: Floats | None,
) -> Smoothing:
    count = len(variable)
    # What a single taker has to pay wherever the sender is, is its own charge.
    certain = (np.bincount(group, minlength=len(cost))[group] == 1) & (sender == count)
    own = own.copy()
    np.add.at(own, taker[certain], cost[group[certain]])
    taker, sender, group = taker[~certain], sender[~certain], group[~certain]
    first = beginnings(group)
    of_each = np.diff(np.append(first, len(group)))
    cost, group = cost[group[first]], np.repeat(np.arange(len(first)), of_each)
    in_equal_parts = (cost / of_each)[group]
    offers = in_equal_parts if offers is None else offers[~certain]
    touching = np.bincount(taker, minlength=count + 1) + np.bincount(sender, minlength=count + 1)
    touching[count] = 0
    return Smoothing(
        variable=variable,
        site=site,
        own=own,
        taker=taker,
        sender=sender,
        group=group,
        cost=cost,
        offers=offers,
        _start=beginnings(variable),
        _first=first,
        _pace=1.0 / (touching[taker] + touching[sender]),
        _ahead=offers,
        _speed=1.0,
        _weights=np.zeros(count + 1),
    )


__all__ = ["Smoothing", "is_uniform"]
