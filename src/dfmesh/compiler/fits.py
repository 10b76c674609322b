"""What fits a loop as the sequence that it goes over, and a value of which an operation takes a part."""

from __future__ import annotations

from typing import Any

from dfmesh.compiler.check_options import shown
from dfmesh.config.fitting import Fit
from dfmesh.netir import Selector, SelectorError, select
from dfmesh.values.elements import has_elements


def part_fit(fit: Fit, selector: Selector) -> Fit:
    """Give what fits where a part of a value is taken; a value without such a part does, since it may not be needed.

    Args:
        fit: What fits as the part.
        selector: Which part that is.
    """
    if not selector:
        return fit

    def judge(value: Any) -> str:
        try:
            mismatch = fit.judge(select(value, selector))
        except SelectorError:
            return ""
        return f"{''.join(map(str, selector))} {mismatch}" if mismatch else ""

    return Fit(frozenset(), judge)


def sequence_fit(*, in_block: bool) -> Fit:
    """Give what fits a loop as the parameter that it goes over.

    Args:
        in_block: The loop stands in a block, which may be left out when the parameter is None.
    """

    def judge(value: Any) -> str:
        if has_elements(value) or (in_block and value is None):
            return ""
        return f"is {shown(value)} ({type(value).__name__}), and a loop goes over lists, arrays and the like"

    return Fit(frozenset(), judge)
