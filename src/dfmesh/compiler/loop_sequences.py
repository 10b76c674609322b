"""Which values a loop can go over, as far as that is known before the run."""

from __future__ import annotations

from typing import Any

from dfmesh.compiler.check_options import shown
from dfmesh.config.fitting import Fit
from dfmesh.values.elements import has_elements


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
