"""Ways of shipments, each from a site of the source to a site of a taker: whether they decide, how many there are."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.crowds import CROWD
from dfmesh.compiler.placement.problem import Flags, Problem


def is_paired(problem: Problem) -> bool:
    """Tell whether there are shipments, and no rule binds two variables."""
    return bool(problem.shipments) and not problem.residency


def ways_of(problem: Problem, domain: Flags, *, but: Collection[int] = ()) -> int:
    """Count the ways of all shipments that have few takers, without those from or to some variables."""
    sites = domain.sum(1).tolist()
    return sum(
        sites[shipment.source] * sites[taker]
        for shipment in problem.shipments
        if len(shipment.consumers) < CROWD and shipment.source not in but
        for taker in shipment.consumers
        if taker not in but
    )


def scale_of(charges: Charges) -> float:
    """Give what a usual shipment is charged."""
    amounts = charges.amounts[charges.amounts > 0]
    if not len(amounts):
        return 1.0
    return max(1.0, float(np.median(amounts) * charges.prices.mean() / charges.unit) * charges.weight)


__all__ = ["is_paired", "scale_of", "ways_of"]
