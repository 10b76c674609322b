"""Operations of the clinic and its friends; they note that they were called."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

called: list[str] = []


def read() -> dict[str, Any]:
    called.append("read")
    return {"names": ["ada", "grace"], "count": 2}


def stream() -> Iterator[str]:
    called.append("stream")
    yield from ("ada", "grace")


def names(count: int) -> list[str]:
    called.append("names")
    return ["ada", "grace", "mary"][:count]


def work(x: Any) -> int:
    called.append("work")
    with contextlib.suppress(TypeError):
        return len(x)
    return 0


def join(left: Any, right: Any) -> str:
    called.append("join")
    return f"{len(str(left))}+{len(str(right))}"


def leave() -> None:
    """End the site, as a crash would."""
    os._exit(1)
