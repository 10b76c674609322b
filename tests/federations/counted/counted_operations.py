"""What jobs of many kinds do, and what a site holds of them."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np


def objects() -> dict[str, int]:
    """Count the objects of dfmesh in this process by class, and all blocks of memory that Python has."""
    gc.collect()
    kinds = Counter(type(item) for item in gc.get_objects())
    found = {kind.__qualname__: count for kind, count in kinds.items() if str(kind.__module__).startswith("dfmesh")}
    return {**found, "blocks": sys.getallocatedblocks()}


def same(x: Any) -> Any:
    print("the same")
    return x


def fail(x: Any) -> Any:
    raise ValueError(f"fails for {x}")


def zeros(n: int) -> np.ndarray:
    return np.zeros(n)


def items(n: int) -> Iterator[int]:
    yield from range(n)


def leave() -> None:
    os._exit(1)
