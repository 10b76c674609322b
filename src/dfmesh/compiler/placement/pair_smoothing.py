"""A bound of charges by smoothed ascent where what a shipment costs depends on both sites, as money does.

A *way* leads one taker's share of a shipment from a site of the source to a site of the taker. It is the linear
relaxation of "a shipment is paid once per site that it goes to, by the price from where the source is". Takers that
could share a way each bear a *part* of its cost, together never more than it costs. The source pays a *toll* where it
departs to a taker, whatever the taker's site; the taker pays at each of its sites the least that any way there leaves
of the part. What that makes the cheapest site of each variable cost, added up, is a bound, whatever the parts and
tolls.

The ascent is that of `smoothing.py`, smoothed twice: variables weigh their sites, and arrivals weigh their ways. What
is claimed (`certify`) is computed in whole numbers from rounded parts and tolls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.crowds import CROWD, Crowds
from dfmesh.compiler.placement.delivery import Delivery
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.problem import Flags, Floats, Indices, Problem, Whole
from dfmesh.compiler.placement.runs import beginnings

LEAST = 1e-9
"""Less than any charge; only keeps divisors from being zero."""

CROWD_GAIN = 0.6
"""The same for offers of crowds."""

FAINTEST = -60.0
"""Exponent below which a weight is not made smaller: numbers next to zero are slow."""

GAIN = 4.0
"""How much longer steps are than is sure to be right. Chosen by trial; steps that turn back are noticed."""


class Shares(NamedTuple):
    """Who bears what: tolls per departure, parts per shared way, offers of the takers of values that many take."""

    tolls: Floats
    parts: Floats
    offers: Floats


@dataclass(slots=True, eq=False)
class PairSmoothing:
    """Tolls and parts of the takers of all shipments, and what they leave to pay.

    A *choice* is a site of a variable; choices are ordered by variable. A *departure* is a taker of a shipment with a
    site of the source, an *arrival* one with a site of the taker. Ways are ordered by arrival.

    Attributes:
        variable: Variable of each choice.
        site: Site of each choice.
        own: What each choice is charged by itself, and what it is sure to pay besides.
        sender: Choice of each departure.
        taker: Choice of each arrival.
        departure: Departure of each way.
        arrival: Arrival of each way.
        cost: What each way costs.
        group: Ways of one shipment between the same sites have the same.
        shared: Ways whose cost is shared, ordered by group.
        shares: Who bears what.
        crowds: Shipments with many takers; they have no ways.
    """

    variable: Indices
    site: Indices
    own: Whole
    sender: Indices
    taker: Indices
    departure: Indices
    arrival: Indices
    cost: Whole
    group: Indices
    shared: Indices
    shares: Shares
    crowds: Crowds
    _start: Indices
    _lengths: Indices
    _first: Indices
    _counts: Indices
    _sharing: Indices
    _sharing_first: Indices
    _limit: Floats
    _table: Floats
    _toll_pace: Floats
    _brake: Floats
    _part_pace: Floats
    _ahead: Shares
    _speed: float
    _weights: Floats

    @classmethod
    def of(cls, problem: Problem, charges: Charges, domain: Flags, messages: Messages | None = None) -> PairSmoothing:
        """State the relaxation of a problem without residency rules.

        Args:
            problem: The problem.
            charges: What is charged.
            domain: Sites to choose from, `[variable, site]`.
            messages: Those among the same sites, to begin with what they have moved; None to share in equal parts.
        """
        variable, site = np.nonzero(domain)
        position = np.full(domain.shape, -1, np.intp)
        position[variable, site] = np.arange(len(variable))
        senders, takers, departures, arrivals, costs, groups = ([np.zeros(0, np.intp)] for _ in range(6))
        tolls, parts = [np.zeros(0)], [np.zeros(0)]
        leaving = arriving = known = 0
        degree = _degrees(problem)
        for number, shipment in enumerate(problem.shipments):
            if len(shipment.consumers) >= CROWD:
                continue
            source, consumers = shipment.source, shipment.consumers
            # With one taker both ends are alike: the toll is paid at the one that has more to do with others.
            turned = len(consumers) == 1 and degree[consumers[0]] > degree[source]
            if turned:
                source, consumers = consumers[0], (source,)
            at = np.flatnonzero(domain[source])
            among = np.flatnonzero(domain[list(consumers)].any(0))
            between = charges.between(number, among, at).T if turned else charges.between(number, at, among)
            for which, consumer in enumerate(consumers):
                to = np.flatnonzero(domain[consumer])
                toll, part = _begun(messages, number, which, turned=turned)
                tolls.append(np.zeros(len(at)) if toll is None else toll)
                parts.append(np.full(len(at) * len(to), -1.0) if part is None else part)
                where = np.searchsorted(among, to)
                senders.append(position[source, at])
                takers.append(position[consumer, to])
                departures.append(np.tile(leaving + np.arange(len(at)), len(to)))
                arrivals.append(np.repeat(arriving + np.arange(len(to)), len(at)))
                costs.append(between[:, where].T.ravel())
                groups.append((known + where[:, None] + np.arange(len(at)) * len(among)).ravel())
                leaving, arriving = leaving + len(at), arriving + len(to)
            known += between.size
        crowds = Crowds.of(problem, charges, domain, position, messages)
        return _made(
            (variable.astype(np.intp), site.astype(np.intp), charges.own[variable, site]),
            (crowds, np.ones(len(variable), np.bool_)),
            Delivery(
                np.concatenate(senders),
                np.concatenate(takers),
                np.concatenate(departures),
                np.concatenate(arrivals),
                np.concatenate(costs),
                np.concatenate(groups),
                np.concatenate(tolls),
                np.concatenate(parts),
            ),
        )

    def restricted(self, keep: Flags) -> PairSmoothing:
        """Give the same relaxation with some of the choices only, and what is left to be decided.

        Args:
            keep: Which choices; at least one of each variable.
        """
        renamed = np.cumsum(keep) - 1
        still = keep[self.sender][self.departure] & keep[self.taker][self.arrival]
        parts = np.full(len(self.cost), -1.0)
        parts[self.shared] = self.shares.parts
        return _made(
            (self.variable[keep], self.site[keep], self.own[keep]),
            (self.crowds, keep),
            Delivery(
                renamed[self.sender],
                renamed[self.taker],
                self.departure[still],
                self.arrival[still],
                self.cost[still],
                self.group[still],
                self.shares.tolls,
                parts[still],
            ),
        )

    @property
    def weights(self) -> Floats:
        """How much each choice weighs among those of its variable, after an ascent."""
        return self._weights

    @property
    def starts(self) -> Indices:
        """First choice of each variable."""
        return self._start

    @property
    def size(self) -> int:
        """How many ways there are, which is what an ascent costs per round."""
        return len(self.cost) + self.crowds.size

    def raised(self, rounds: int, warm: float, cool: float) -> tuple[int, Whole]:
        """Raise the bound as `ascend` does, and give it as `certify` does."""
        return self.certify(self.ascend(rounds, warm, cool))

    def ascend(self, rounds: int, warm: float, cool: float, *, rough: bool = False) -> Shares:
        """Raise the bound.

        Args:
            rounds: How many steps.
            warm: Temperature of the first step: the charge that makes a site weigh e times less.
            cool: That of the last.
            rough: Whether the bound does not matter, only what it tells about the choices.

        Returns:
            The best shares that were seen.
        """
        best, seen = -np.inf, self.shares
        for step in range(rounds if self.size else 1):
            temperature = warm * (cool / warm) ** (step / rounds)
            tolls, parts, offers = self._ahead
            left, above = self._left(tolls, parts)
            beyond = self.crowds.beyond(offers)
            left += self.crowds.left(offers, beyond, len(left))
            bound = float(np.minimum.reduceat(left, self._start).sum())
            if bound > best:
                best, seen = bound, self._ahead
            ways, together = self._weighed_ways(above, temperature)
            left -= np.bincount(self.taker, temperature * np.log(together), len(left))
            left -= self.crowds.smoothing(beyond, temperature, len(left))
            self._weights = self._weighed_choices(left, temperature)
            ways *= np.repeat(self._weights[self.taker] / together, self._counts)
            toll_slope = self._weights[self.sender] - np.bincount(self.departure, ways, len(tolls))
            part_slope = ways[self.shared]
            offer_slope = self.crowds.slope(beyond, self._weights, temperature)
            tolls = tolls + temperature * self._toll_step(toll_slope)
            parts = self._kept_within_cost(parts + temperature * self._part_pace * part_slope, rough=rough)
            offers = np.maximum(offers + temperature * CROWD_GAIN * self.crowds.step(offer_slope, offers), 0.0)
            more_tolls, more_parts = tolls - self.shares.tolls, parts - self.shares.parts
            more_offers = offers - self.shares.offers
            turns_back = toll_slope @ more_tolls + part_slope @ more_parts + offer_slope @ more_offers < 0
            speed = 1.0 if turns_back else self._speed
            self._speed = (1 + (1 + 4 * speed * speed) ** 0.5) / 2
            onward = (speed - 1) / self._speed
            ahead = self._kept_within_cost(parts + onward * more_parts, rough=True)
            self._ahead = Shares(tolls + onward * more_tolls, ahead, np.maximum(offers + onward * more_offers, 0.0))
            self.shares = Shares(tolls, parts, offers)
        return seen

    def _toll_step(self, slope: Floats) -> Floats:
        """Give steps that are short where many takers pull a source the same way, and long where they disagree."""
        step = self._toll_pace * slope
        together = np.bincount(self.sender, step, len(self.own)) * self._brake
        longer: Floats = GAIN * (step - self._toll_pace * together[self.sender])
        return longer

    def _left(self, tolls: Floats, parts: Floats) -> tuple[Floats, Floats]:
        """Give what each choice has to pay, and by how much each way leaves less than the others to its arrival."""
        above = self._table.copy()
        above[self.shared] = parts
        above -= tolls[self.departure]
        left = self.own.astype(np.float64)
        left += np.bincount(self.sender, tolls, len(left))
        if len(self.cost):
            least = np.minimum.reduceat(above, self._first)
            left += np.bincount(self.taker, least, len(left))
            np.subtract(np.repeat(least, self._counts), above, out=above)
        return left, above

    def _weighed_ways(self, above: Floats, temperature: float) -> tuple[Floats, Floats]:
        if not len(self.cost):
            return above, np.zeros(0)
        above *= 1.0 / temperature
        weights: Floats = np.exp(np.maximum(above, FAINTEST, out=above), out=above)
        return weights, np.add.reduceat(weights, self._first)

    def _weighed_choices(self, left: Floats, temperature: float) -> Floats:
        least = np.repeat(np.minimum.reduceat(left, self._start), self._lengths)
        weights = np.exp(np.maximum((least - left) / temperature, FAINTEST))
        weighed: Floats = weights / np.repeat(np.add.reduceat(weights, self._start), self._lengths)
        return weighed

    def _kept_within_cost(self, parts: Floats, *, rough: bool) -> Floats:
        if not len(parts):
            return parts
        parts = np.maximum(parts, 0.0)
        together = np.add.reduceat(parts, self._sharing_first)
        if not rough:
            moving = np.where(parts > 0, self._part_pace, 0.0)
            per_pace = np.maximum(together - self._limit, 0.0) / np.maximum(
                np.add.reduceat(moving, self._sharing_first), LEAST
            )
            parts = np.maximum(parts - moving * per_pace[self._sharing], 0.0)
            together = np.add.reduceat(parts, self._sharing_first)
        kept: Floats = parts * np.minimum(1.0, self._limit / np.maximum(together, LEAST))[self._sharing]
        return kept

    def certify(self, shares: Shares) -> tuple[int, Whole]:
        """Give what every placement is charged at the least, and what each choice adds to it at the least."""
        left = self.own.copy()
        if len(self.cost):
            tolls = np.rint(shares.tolls).astype(np.int64)
            table = self.cost.copy()
            table[self.shared] = self._whole_parts(shares.parts)
            table -= tolls[self.departure]
            np.add.at(left, self.sender, tolls)
            np.add.at(left, self.taker, np.minimum.reduceat(table, self._first))
        self.crowds.certified(shares.offers, left)
        least = np.minimum.reduceat(left, self._start)
        return int(least.sum()), left - np.repeat(least, self._lengths)

    def _whole_parts(self, parts: Floats) -> Whole:
        whole = np.maximum(np.floor(parts).astype(np.int64), 0)
        if len(whole):
            limit = self.cost[self.shared[self._sharing_first]]
            first = self._sharing_first
            whole[first] = np.maximum(whole[first] - np.maximum(np.add.reduceat(whole, first) - limit, 0), 0)
            whole[(np.add.reduceat(whole, first) > limit)[self._sharing]] = 0
        return whole


def _made(choices: tuple[Indices, Indices, Whole], crowded: tuple[Crowds, Flags], ways: Delivery) -> PairSmoothing:
    """Put together a relaxation.

    Args:
        choices: Variable and site of each choice, and what it is charged.
        crowded: Shipments with many takers, and which of the choices they know are left.
        ways: All others.
    """
    variable, site, own = choices[0], choices[1], choices[2].copy()
    start = beginnings(variable)
    lengths = np.diff(np.append(start, len(variable)))
    decided = np.repeat(lengths == 1, lengths)
    crowds = crowded[0].restricted(crowded[1], decided, own)
    ways = ways.settled(decided, own).audible()

    among = np.bincount(ways.group)[ways.group]
    shared = np.flatnonzero((among > 1) & (ways.cost > 0))
    shared = shared[np.argsort(ways.group[shared], kind="stable")]
    sharing_first = beginnings(ways.group[shared])
    of_each = np.diff(np.append(sharing_first, len(shared)))
    parts = np.where(ways.parts[shared] < 0, ways.cost[shared] / among[shared], ways.parts[shared])
    touching = np.bincount(ways.sender, minlength=len(own)) + np.bincount(ways.taker, minlength=len(own))
    of_taker = np.zeros(len(ways.sender), np.intp)
    of_taker[ways.departure] = touching[ways.taker[ways.arrival]]
    counts = np.bincount(ways.arrival, minlength=len(ways.taker))
    pace = np.asarray(1.0 / (of_taker + 1.0), np.float64)
    shares = Shares(ways.tolls, parts, crowds.offers)
    return PairSmoothing(
        variable=variable,
        site=site,
        own=own,
        sender=ways.sender,
        taker=ways.taker,
        departure=ways.departure,
        arrival=ways.arrival,
        cost=ways.cost,
        group=ways.group,
        shared=shared,
        shares=shares,
        crowds=crowds,
        _start=start,
        _lengths=lengths,
        _first=np.cumsum(counts) - counts,
        _counts=counts,
        _sharing=np.repeat(np.arange(len(sharing_first)), of_each),
        _sharing_first=sharing_first,
        _limit=ways.cost[shared[sharing_first]].astype(np.float64),
        _table=ways.cost.astype(np.float64),
        _toll_pace=pace,
        _brake=np.asarray(1.0 / (1.0 + np.bincount(ways.sender, pace, len(own))), np.float64),
        _part_pace=GAIN / (touching[ways.taker[ways.arrival[shared]]] + 1),
        _ahead=shares,
        _speed=1.0,
        _weights=np.zeros(len(own)),
    )


def _begun(messages: Messages | None, number: int, which: int, *, turned: bool) -> tuple[Floats | None, Floats | None]:
    """Give tolls per site where they are paid, and parts per way, ordered by arrival, that messages lead to."""
    if messages is None:
        return None, None
    to_source, to_taker, share = messages.borne(number, which)
    toll = (to_taker if turned else to_source).astype(np.float64)
    return toll, None if share is None else share.T.ravel().astype(np.float64)


def _degrees(problem: Problem) -> list[int]:
    """Count the senders and takers of each variable."""
    degree = [0] * len(problem.members)
    for shipment in problem.shipments:
        degree[shipment.source] += len(shipment.consumers)
        for consumer in shipment.consumers:
            degree[consumer] += 1
    return degree


__all__ = ["PairSmoothing", "Shares"]
