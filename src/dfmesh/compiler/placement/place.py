"""Placing a graph, from its nodes and costs to names of sites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dfmesh.compiler.costs import Costs
from dfmesh.compiler.graph import Graph
from dfmesh.compiler.placement.objective import Objective
from dfmesh.compiler.placement.plan import Alternative, Placement
from dfmesh.errors import PipelineError

if TYPE_CHECKING:
    from dfmesh.compiler.placement.solver import Effort


def place(
    graph: Graph,
    costs: Costs,
    homesite: str,
    sites: list[str],
    objective: Objective = Objective.TIME,
    effort: Effort | None = None,
) -> Placement:
    """Choose the site of every node of a graph.

    Args:
        graph: Every node with candidates has at least one; the others may be anywhere.
        costs: Of that graph.
        homesite: Where the client attaches.
        sites: All sites in declared order.
        objective: What comes first.
        effort: How much may be done for it; None for what a compilation can afford.

    Raises:
        PipelineError: the sites' rules leave no placement; it names the fewest that are in conflict.
    """
    # They need numpy, and `import dfmesh` shall not.
    from dfmesh.compiler.placement.conflict import conflict
    from dfmesh.compiler.placement.problem import build
    from dfmesh.compiler.placement.solver import Effort, InfeasibleError, solve

    problem = build(graph, costs, homesite, sites)
    try:
        solution = solve(problem, objective, effort or Effort())
    except InfeasibleError:
        raise PipelineError("the pipeline cannot be placed", conflict(graph, costs, homesite, sites)) from None
    return Placement(
        [sites[solution.chosen[variable]] for variable in problem.variable],
        problem.estimate(solution.chosen),
        solution.certificate.complete,
        solution.certificate,
    )


def alternatives(
    graph: Graph,
    costs: Costs,
    homesite: str,
    sites: list[str],
    chosen: Sequence[str],
    objective: Objective = Objective.TIME,
) -> list[Alternative | None]:
    """Find the next best site of every node of a placed graph; None where there is no choice.

    In small problems everything else is placed anew for it; in larger ones it stays where it is, and
    `Alternative.replaced` is False. It solves or estimates once per node and site: for people who ask, not for every
    compilation.

    Args:
        graph: As for `place`.
        costs: As for `place`.
        homesite: As for `place`.
        sites: As for `place`.
        chosen: Site of each node.
        objective: As for `place`.
    """
    from dfmesh.compiler.placement.marginal import next_best
    from dfmesh.compiler.placement.problem import build

    problem = build(graph, costs, homesite, sites)
    order = {site: position for position, site in enumerate(sites)}
    return next_best(problem, [order[chosen[members[0]]] for members in problem.members], objective)


__all__ = ["alternatives", "place"]
