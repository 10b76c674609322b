"""A problem with time running backwards: receivers become senders. What is best for it is best for the original."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dfmesh.compiler.placement.problem import Problem


def mirrored(problem: Problem) -> tuple[Problem, list[int]]:
    """Give the mirrored problem, and for each variable of it the one of the original.

    Only what concerns time, capacity and rules is mirrored; shipments and prices are left out.
    """
    last = len(problem.variable) - 1
    ordered = sorted(range(len(problem.members)), key=lambda variable: -problem.members[variable][-1])
    number = {variable: index for index, variable in enumerate(ordered)}
    target, source = last - problem.source, last - problem.target
    edges = np.lexsort((source, target))
    other = replace(
        problem,
        variable=[number[variable] for variable in reversed(problem.variable)],
        members=[[last - node for node in reversed(problem.members[variable])] for variable in ordered],
        domain=problem.domain[ordered],
        compute=problem.compute[::-1],
        work=problem.work[::-1],
        source=source[edges],
        target=target[edges],
        size=problem.size[edges],
        latency=problem.latency.T,
        per_byte=problem.per_byte.T,
        shipments=[],
        residency={(number[a], number[b]): allowed for (a, b), allowed in problem.residency.items()},
    )
    other.__dict__["delay"] = problem.delay[edges].transpose(0, 2, 1)
    return other, ordered


__all__ = ["mirrored"]
