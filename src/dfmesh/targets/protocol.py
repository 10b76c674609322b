"""The client's side of a target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dfmesh.engine.messages import AnyMessage, Payload, SiteLost

OnOutput = Callable[[str, str], None]
"""Takes a site and a line that it, or an adapter there, has printed; called on the event loop, and must not block."""


class FederationRunner(Protocol):
    """Starts the sites of a federation, supervises them, and connects the client to the homesite.

    All calls are made on the client's event loop.
    """

    async def start(self, on_message: Callable[[AnyMessage], None], on_lost: Callable[[SiteLost], None]) -> None:
        """Start the sites and connect to the homesite.

        Args:
            on_message: Gets each message that the homesite sends to this client, in order.
            on_lost: Told when the homesite is lost, and why. The runner restarts it by itself; the jobs that this
                client had there are gone.

        Raises:
            SessionError: a site did not start; says which, and what it printed.
        """
        ...

    async def close(self) -> None:
        """Stop all sites and free everything. Idempotent; ends within seconds also when sites hang."""
        ...

    def pack(self, value: Any) -> Payload:
        """As `Carrier.pack`."""
        ...

    def unpack(self, payload: Payload) -> Any:
        """As `Carrier.unpack`."""
        ...

    def send(self, message: AnyMessage) -> int:
        """Queue a message for the homesite and return its size in bytes."""
        ...
