"""What placing a graph gives: sites, what they are estimated to cost, and the proof."""

from __future__ import annotations

from dataclasses import dataclass

from dfmesh.compiler.placement.objective import Objective

SECOND_DIGITS = 9
"""Digits to which seconds are compared, and given: a nanosecond."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a placement is estimated to cost.

    Attributes:
        seconds: Length of the critical path, or what the busiest site of limited capacity needs if that is longer.
        bytes_moved: Between sites, each value once per destination.
        away: Nodes that are not at the homesite.
        rank: Sum of the positions of the chosen sites in declared order.
        money: Price of computing and sending, in the currency of the federation file.
    """

    seconds: float
    bytes_moved: float
    away: int
    rank: int
    money: float = 0.0

    def key(self, objective: Objective) -> tuple[float, ...]:
        """Give what placements are compared by under an objective, from left to right, less is better."""
        if objective is Objective.TIME:
            return (self.seconds, self.bytes_moved, self.away, self.rank)
        first = self.bytes_moved if objective is Objective.BYTES else self.money
        return (first, self.seconds, self.away, self.rank)


@dataclass(frozen=True, slots=True)
class Certificate:
    """How good a placement is proven to be.

    Attributes:
        objective: What was asked for.
        cost: What the placement costs under the objective: seconds, bytes or money.
        bound: What every placement costs at the least.
        tie_break: The second criterion of the placement: bytes under TIME, else seconds.
        tie_break_bound: What that is at the least in every placement that costs no more than this one.
        complete: Whether no other placement is better, all the tie-breakers of the objective included.
        steps: Nodes of search trees that were looked at.
    """

    objective: Objective
    cost: float
    bound: float
    tie_break: float
    tie_break_bound: float
    complete: bool
    steps: int = 0

    @property
    def gap(self) -> float:
        """How much less some placement might cost, as a share of the cost; 0 where the cost is proven."""
        return (self.cost - self.bound) / self.cost if self.cost > self.bound else 0.0

    def __str__(self) -> str:
        """Say it in one line."""
        unit = {Objective.TIME: "s", Objective.BYTES: "B", Objective.MONEY: ""}[self.objective]
        proof = "proven to be the least" if self.gap == 0 else f"at least {self.bound:.6g} (gap {self.gap:.2%})"
        return f"{self.objective.value} {self.cost:.6g} {unit}".strip() + f", {proof}"


@dataclass(frozen=True, slots=True)
class Alternative:
    """The next best site of a node.

    Attributes:
        site: Its name.
        seconds: How much longer the whole pipeline would take.
        bytes_moved: How many bytes more would move between sites.
        money: How much more it would cost.
        replaced: Whether all other nodes were placed anew for it; else they stay where they are.
    """

    site: str
    seconds: float
    bytes_moved: float
    money: float = 0.0
    replaced: bool = False


@dataclass(slots=True)
class Placement:
    """The chosen sites.

    Attributes:
        sites: Site of each node, by index.
        estimate: What it is estimated to cost.
        exact: Whether no placement is better, tie-breakers included.
        certificate: What is proven about it.
    """

    sites: list[str]
    estimate: Estimate
    exact: bool
    certificate: Certificate


__all__ = ["SECOND_DIGITS", "Alternative", "Certificate", "Estimate", "Placement"]
