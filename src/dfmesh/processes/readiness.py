"""Whether a descriptor has something to tell, whatever its number: `select.select` takes none above 1023."""

from __future__ import annotations

import select


def is_readable(descriptor: int, seconds: float = 0.0) -> bool:
    """Wait until a descriptor can be read or its other end has gone; False after so many seconds."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(1000 * seconds))
