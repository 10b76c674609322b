"""Messages that wait until a site has loaded the modules that may register the classes of the values in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dfmesh.engine.messages import AnyMessage

Operations = Iterable[tuple[str, str | None]]
"""Names of operations, each with the provider."""

LoadModules = Callable[[Operations, Callable[[], None]], None]
"""Imports the modules of adapters, without blocking, then calls a function on the event loop."""

Deliver = Callable[[str, AnyMessage], None]


class HeldMessages:
    """Those of one site, by attempt of a job; per attempt they stay in order."""

    def __init__(self, load: LoadModules | None) -> None:
        """Hold nothing.

        Args:
            load: Imports modules; None where all are loaded, and nothing has to wait.
        """
        self._load = load
        self._held: dict[str, list[tuple[str, AnyMessage]]] = {}
        self._loaded: set[str] = set()

    def hold_behind(self, peer: str, message: AnyMessage) -> bool:
        """Keep a message if an earlier one of the same attempt is held; False if there is none."""
        held = self._held.get(message.job)
        if held is not None:
            held.append((peer, message))
        return held is not None

    def hold(self, peer: str, message: AnyMessage, operations: Operations, deliver: Deliver) -> bool:
        """Keep a message, load what the attempt's operations need, then deliver what is held.

        Args:
            peer: Who sent it.
            message: It has a value of a class that is not known here.
            operations: Of the attempt, at this site.
            deliver: Takes peer and message.

        Returns:
            Whether it is held; it is not if all has been loaded already.
        """
        attempt = message.job
        if self._load is None or attempt in self._loaded:
            return False
        self._loaded.add(attempt)
        held = self._held[attempt] = [(peer, message)]

        def loaded() -> None:
            if self._held.get(attempt) is held:
                del self._held[attempt]
                for sender, one in held:
                    deliver(sender, one)

        self._load(operations, loaded)
        return True

    def drop(self, attempt: str) -> None:
        """Forget an attempt that has ended."""
        self._held.pop(attempt, None)
        self._loaded.discard(attempt)

    def close(self) -> None:
        """Forget all: what is held is of jobs that are given up, and must not begin once the modules are there."""
        self._held.clear()
        self._loaded.clear()
