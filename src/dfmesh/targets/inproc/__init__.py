"""Target `inproc`: all sites on the client's event loop, for tests and notebooks."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

from dfmesh.config import FederationConfig
from dfmesh.engine import CLIENT_PREFIX, JobRunner
from dfmesh.engine.adapters import SiteAdapters
from dfmesh.engine.adapters.loading import begin_use, end_use
from dfmesh.engine.heard_output import hear, hear_again, hear_no_more
from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AnyMessage, SiteLost, SubmitJob
from dfmesh.targets.inproc.carrier import Exchange, InprocCarrier


class InprocFederationRunner:
    """Hosts every site of a federation on one event loop."""

    def __init__(self, config: FederationConfig, homesite: str) -> None:
        """Prepare; nothing is started yet.

        Args:
            config: The federation.
            homesite: Site to which the client talks.
        """
        self._config = config
        self._homesite = homesite
        self._client = f"{CLIENT_PREFIX}{secrets.token_hex(8)}"
        self._sites: dict[str, JobRunner] = {}
        self._carrier: InprocCarrier | None = None
        self._hearing = False

    async def start(self, on_message: Callable[[AnyMessage], None], on_lost: Callable[[SiteLost], None]) -> None:
        """As `FederationRunner.start`. Nothing is ever lost here but with the whole process."""
        hear()
        self._hearing = True
        begin_use(self._config.directory)
        exchange = Exchange(asyncio.get_running_loop())
        for site in self._config.sites:
            adapters = SiteAdapters(self._config, site)
            runner = JobRunner(site, self._homesite, adapters, InprocCarrier(exchange, site))
            exchange.join(site, runner.receive)
            self._sites[site] = runner
        exchange.join(self._client, lambda _peer, message: on_message(message))
        self._carrier = InprocCarrier(exchange, self._client)

    async def close(self) -> None:
        """As `FederationRunner.close`."""
        for runner in self._sites.values():
            await runner.close()
        self._sites.clear()
        if self._hearing:
            self._hearing = False
            hear_no_more()
            end_use(self._config.directory)

    def pack(self, value: Any) -> Payload:
        """As `Carrier.pack`."""
        return self._connected().pack(value)

    def unpack(self, payload: Payload) -> Any:
        """As `Carrier.unpack`."""
        return self._connected().unpack(payload)

    def send(self, message: AnyMessage) -> int:
        """As `FederationRunner.send`."""
        if isinstance(message, SubmitJob):
            hear_again()
        return self._connected().send(self._homesite, message)

    def _connected(self) -> InprocCarrier:
        if self._carrier is None:
            raise RuntimeError("the runner is not started")
        return self._carrier
