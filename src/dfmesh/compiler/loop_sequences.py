"""Which values a loop can go over, as far as that is known before the run."""

from __future__ import annotations

from typing import Any

from dfmesh.compiler.check_options import shown
from dfmesh.config.fitting import Fit


def loop_takes(value: Any) -> bool:
    """Tell whether a loop can go over a value; text and bytes are refused, though Python could iterate them."""
    # Tables and batches of Arrow are sequences of rows to ForEach, though Python does not iterate them.
    iterable = hasattr(value, "__iter__") or hasattr(value, "to_batches") or hasattr(value, "to_pylist")
    return iterable and not isinstance(value, str | bytes | bytearray)


def sequence_fit(*, in_block: bool) -> Fit:
    """Give what fits a loop as the parameter that it goes over.

    Args:
        in_block: The loop stands in a block, which may be left out when the parameter is None.
    """

    def judge(value: Any) -> str:
        if loop_takes(value) or (in_block and value is None):
            return ""
        return f"is {shown(value)} ({type(value).__name__}), and a loop goes over lists, arrays and the like"

    return Fit(frozenset(), judge)
