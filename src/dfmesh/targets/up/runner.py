"""The client's side of target `up`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dfmesh import __version__
from dfmesh.config import FederationConfig
from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AnyMessage, SiteLost
from dfmesh.errors import SessionClosedError, SessionError
from dfmesh.targets import payloads
from dfmesh.targets.up.host_connection import HostConnection, OnLines, OnMessage
from dfmesh.targets.up.host_record import HostRecord, find_host
from dfmesh.targets.up.messages import ForgetJob, JobAttached, JobEntry, ListJobs, Settle, StopHost, StopJob

SETTLE_SECONDS = 10.0
"""How long a host may take to take in what was sent, when a client leaves."""


class UpFederationRunner:
    """Connects to the host of a federation, which goes on without us. See `targets.protocol.HostingRunner`."""

    def __init__(
        self, config: FederationConfig | None, name: str | None = None, *, homesite: str | None = None
    ) -> None:
        """Prepare; nothing is connected.

        Args:
            config: The federation; None to use whichever the host runs, without submitting anything.
            name: Name of the host; None for the one that runs this federation.
            homesite: The homesite that the client wants; None for that of the host.
        """
        self._config = config
        self._name = name
        self._wanted_homesite = homesite
        self._connection: HostConnection | None = None
        self._on_lost: Callable[[SiteLost], None] = _ignore

    async def start(self, on_message: Callable[[AnyMessage], None], on_lost: Callable[[SiteLost], None]) -> None:
        """Connect to the host.

        Args:
            on_message: Gets each message for this client, in order.
            on_lost: Told when the host has gone. Its jobs may go on when it is started again.

        Raises:
            SessionError: no host runs, or it runs something else; says what to do.
        """
        record = find_host(None if self._config is None else self._config.path, self._name)
        connection = HostConnection(record, on_message, self._host_lost)
        await connection.open()
        try:
            self._check(connection.record)
        except SessionError:
            connection.close()
            raise
        self._on_lost = on_lost
        self._connection = connection

    def _check(self, host: HostRecord) -> None:
        if host.version != __version__:
            raise SessionError(
                f"the host {host.name!r} runs dfmesh {host.version}, this is {__version__}; stop it with its own"
                f" `dfmesh down {host.name}` and start it again with `dfmesh up {host.federation}`"
            )
        config = self._config
        if config is not None and host.digest != config.digest:
            raise SessionError(
                f"{config.path} is not what the host {host.name!r} has loaded; start it again:"
                f" `dfmesh down {host.name}`, then `dfmesh up {host.federation}` (jobs that run go on then)"
            )
        if self._wanted_homesite not in (None, host.homesite):
            raise SessionError(
                f"the host {host.name!r} has the homesite {host.homesite!r}, not {self._wanted_homesite!r};"
                " leave homesite out, or start another host with --homesite and --name"
            )

    async def close(self) -> None:
        """Leave. What was sent has been taken in; jobs go on."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._on_lost = _ignore
            with suppress(SessionError, TimeoutError):
                await asyncio.wait_for(connection.ask(lambda number: Settle("", number)), SETTLE_SECONDS)
            connection.close()

    def pack(self, value: Any) -> Payload:
        """As `Carrier.pack`."""
        return payloads.pack(value)

    def unpack(self, payload: Payload) -> Any:
        """As `Carrier.unpack`."""
        return payloads.unpack(payload)

    def send(self, message: AnyMessage) -> int:
        """Queue a message for the host and return its size in bytes."""
        return self._open().send(message)

    # As HostingRunner

    @property
    def host(self) -> HostRecord:
        """What the host says of itself."""
        return self._open().record

    async def list_jobs(self) -> tuple[JobEntry, ...]:
        """List all jobs of the host, the oldest first."""
        answer = await self._open().ask(lambda number: ListJobs("", number))
        jobs: tuple[JobEntry, ...] = answer.jobs
        return jobs

    async def attach(self, prefix: str, make: Callable[[JobAttached], OnMessage]) -> tuple[str, int]:
        """As `HostConnection.attach`."""
        return await self._open().attach(prefix, make)

    async def detach(self, job: str, number: int) -> None:
        """As `HostConnection.detach`."""
        await self._open().detach(job, number)

    async def cancel(self, prefix: str, reason: str) -> str:
        """Cancel a job, whoever submitted it, and give its whole id."""
        answer = await self._open().ask(lambda number: StopJob(prefix, number, reason))
        return str(answer.job)

    async def forget(self, prefix: str) -> str:
        """Remove the journal of a job that is over, and give its whole id."""
        answer = await self._open().ask(lambda number: ForgetJob(prefix, number))
        return str(answer.job)

    async def lines(self, prefix: str, on_lines: OnLines, *, follow: bool) -> None:
        """As `HostConnection.lines`."""
        await self._open().lines(prefix, on_lines, follow=follow)

    async def stop_host(self) -> None:
        """Stop the sites and the host."""
        self._on_lost = _ignore
        await self._open().ask(lambda number: StopHost("", number))

    def _open(self) -> HostConnection:
        if self._connection is None:
            raise SessionClosedError("the session is not connected with a host")
        return self._connection

    def _host_lost(self, reason: str) -> None:
        homesite = "" if self._connection is None else self._connection.record.homesite
        self._on_lost(SiteLost("", homesite, reason, ()))


def _ignore(lost: SiteLost) -> None:
    """Nobody wants to hear of it any more."""
