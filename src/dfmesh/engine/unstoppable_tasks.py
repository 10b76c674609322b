"""Cancelling tasks that run the code of adapters, which may not listen."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

_PAUSES = (0.05, 0.2, 0.5, 1.25)
"""Seconds until a task that goes on is cancelled once more."""

_log = logging.getLogger("dfmesh.engine")


def cancel_for_good(task: asyncio.Task[Any], operation: str, reason: str) -> None:
    """Cancel a task; again if it goes on; and say so in the log if it still does after 2 seconds.

    Args:
        task: It; nobody waits for it.
        operation: Operation whose adapter runs in it; empty if none does yet.
        reason: Why it is cancelled, such as `its job has ended`.
    """
    _insist(task, operation, reason, 0)


def _insist(task: asyncio.Task[Any], operation: str, reason: str, attempt: int) -> None:
    if task.done():
        return
    task.cancel()
    if attempt < len(_PAUSES):
        task.get_loop().call_later(_PAUSES[attempt], _insist, task, operation, reason, attempt + 1)
    elif operation:
        _log.warning(
            "%s did not stop within %g s although %s: its coroutine catches CancelledError. It goes on, unheard. "
            "Declare `isolation: process` for its adapter to have such calls ended.",
            operation,
            sum(_PAUSES),
            reason,
        )
