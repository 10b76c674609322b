"""Solving the programs of `program.py` with HiGHS (Huangfu and Hall, Mathematical Programming Computation 2018).

One thread, one seed, and work counted in iterations and looks, never in time: equal programs give equal answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dfmesh.compiler.placement.problem import Floats, Whole
from dfmesh.compiler.placement.program import Program

if TYPE_CHECKING:
    from types import ModuleType

DEAREST = 1e4
"""What the dearest column costs when HiGHS sees it: far above its tolerances, and not too large for its arithmetic."""

TOLERANCE = 1e-9
"""By how much a row, a column or a reduced cost may be off; the least that HiGHS takes is a tenth of it."""

BEYOND = 1e-6
"""What a bound of HiGHS may be too high by, with the dearest column at `DEAREST`: a ten thousand millionth of that."""

ITERATIONS = 60_000
"""Steps of the simplex method at most."""

SETTINGS = {
    "output_flag": False,
    "threads": 1,
    "parallel": "off",
    "random_seed": 0,
    "primal_feasibility_tolerance": TOLERANCE,
    "dual_feasibility_tolerance": TOLERANCE,
    "mip_feasibility_tolerance": TOLERANCE,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": BEYOND / 10,
}


@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """What choices that may be parts of one tell.

    Attributes:
        bound: What every placement among the choices is charged at the least.
        dear: What each choice adds to it at the least.
        share: How much of each choice the relaxation takes.
        likeliest: Site of each variable that it takes most of.
        work: About how long a round of cuts takes in the same program: rows times steps of the simplex method.
    """

    bound: int
    dear: Whole
    share: Floats
    likeliest: list[int]
    work: int


@dataclass(frozen=True, slots=True)
class Solved:
    """What the search for whole choices gave.

    Attributes:
        chosen: Site of each variable; None if no placement was found.
        total: What HiGHS says that it is charged.
        bound: What every placement among the choices is charged at the least.
        margin: By how much those may be wrong.
        is_sound: Whether the search ended in one of the ways that are expected.
        is_whole: Whether it came to its end.
    """

    chosen: list[int] | None
    total: float
    bound: int
    margin: float
    is_sound: bool
    is_whole: bool


@cache
def _highs() -> ModuleType:
    # A hundred milliseconds: only for those who need it.
    import highspy

    return highspy


def relax(program: Program) -> Relaxed:
    """Solve a program with choices that need not be whole."""
    highs, scale = _loaded(program, whole=False)
    highs.setOptionValue("presolve", "off")
    highs.setOptionValue("simplex_iteration_limit", ITERATIONS)
    highs.run()
    solution = highs.getSolution()
    rows = len(program.lower)
    prices = np.array(solution.row_dual if solution.dual_valid else [0.0] * rows) * scale
    bound, dear = program.certified(np.nan_to_num(prices, posinf=0.0, neginf=0.0))
    share = np.array(solution.col_value if solution.value_valid else np.zeros(len(program.costs)))
    steps = highs.getInfo().simplex_iteration_count
    return Relaxed(bound, dear, share[: len(dear)], _sites(program, share), rows * steps)


def solve(program: Program, looks: int, *, heuristics: bool) -> Solved:
    """Solve a program with whole choices.

    Args:
        program: The program.
        heuristics: Whether placements are looked for before they are found on the way to the proof.
        looks: How often HiGHS may look at whether it shall go on: some times per round of cuts and branch.
    """
    highspy = _highs()
    highs, scale = _loaded(program, whole=True)
    # It gets no placement to begin with: the presolve of HiGHS 1.16 can change what that costs, and then finds nothing.
    if not heuristics:
        highs.setOptionValue("mip_heuristic_effort", 0.0)
        highs.setOptionValue("mip_heuristic_run_feasibility_jump", False)
    left = [looks]

    def look(kind: object, message: str, out: object, into: Any, own: object) -> None:
        left[0] -= 1
        into.user_interrupt = left[0] < 0

    highs.setCallback(look, None)
    highs.startCallback(highspy.cb.HighsCallbackType.kCallbackMipInterrupt)
    highs.run()
    status, info, kinds = highs.getModelStatus(), highs.getInfo(), highspy.HighsModelStatus
    chosen = None
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        chosen = _sites(program, np.array(highs.getSolution().col_value))
    margin = max(0.5, BEYOND * scale)
    bound = info.mip_dual_bound * scale
    return Solved(
        chosen,
        info.objective_function_value * scale,
        math.ceil(bound - BEYOND * scale) if math.isfinite(bound) else 0,
        margin,
        status in (kinds.kOptimal, kinds.kInterrupt),
        status == kinds.kOptimal,
    )


def _loaded(program: Program, *, whole: bool) -> tuple[Any, float]:
    highspy = _highs()
    highs = highspy._core._Highs()
    for name, value in SETTINGS.items():
        highs.setOptionValue(name, value)
    scale = max(1, int(program.costs.max())) / DEAREST
    columns = len(program.costs)
    kinds = np.zeros(columns, np.int32)
    kinds[: len(program.variable)] = whole
    highs.passModel(
        columns,
        len(program.lower),
        len(program.columns),
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        program.costs / scale,
        np.zeros(columns),
        np.ones(columns),
        program.lower,
        program.upper,
        program.starts.astype(np.int32),
        program.columns.astype(np.int32),
        program.signs,
        kinds,
    )
    return highs, scale


def _sites(program: Program, values: Floats) -> list[int]:
    first = np.searchsorted(program.variable, np.arange(int(program.variable[-1]) + 1))
    best = [int(part.argmax()) for part in np.split(values[: len(program.variable)], first[1:])]
    found: list[int] = program.site[first + np.array(best, np.intp)].tolist()
    return found


__all__ = ["Relaxed", "Solved", "relax", "solve"]
