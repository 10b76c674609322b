"""What a placement is to be good at."""

from __future__ import annotations

import enum
from typing import Literal


class Objective(enum.Enum):
    """What comes first when two placements are compared, and what decides between equals.

    TIME: seconds, then bytes moved, then nodes away from the homesite, then the declared order of the sites.
    BYTES: bytes moved, then seconds, then nodes away from the homesite, then the declared order.
    MONEY: money, then seconds, then nodes away from the homesite, then the declared order.
    """

    TIME = "time"
    BYTES = "bytes"
    MONEY = "money"

    @classmethod
    def _missing_(cls, value: object) -> None:
        names = ", ".join(repr(objective.value) for objective in cls)
        raise ValueError(f"there is no objective {value!r}; there are {names}")


ObjectiveName = Literal["time", "bytes", "money"]
"""How users write an objective."""

__all__ = ["Objective", "ObjectiveName"]
