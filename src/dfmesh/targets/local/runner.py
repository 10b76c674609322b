"""The client's side of target `local`."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import secrets
import shutil
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dfmesh.engine import CLIENT_PREFIX
from dfmesh.engine.answer_watch import ANSWER_SECONDS, ANSWER_SECONDS_VARIABLE, seconds_in
from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AnyMessage, SiteLost
from dfmesh.errors import SessionClosedError, SessionError
from dfmesh.targets import payloads
from dfmesh.targets.local.carrier import LocalCarrier, Receive
from dfmesh.targets.local.control import Introduce, LinkBroken
from dfmesh.targets.local.door import Door
from dfmesh.targets.local.heartbeats import SILENT_SECONDS
from dfmesh.targets.local.link import Link
from dfmesh.targets.local.process import SITE_MODULE
from dfmesh.targets.local.supervisor import Running, Supervisor
from dfmesh.targets.protocol import OnOutput

if TYPE_CHECKING:
    from dfmesh.config import FederationConfig


TRANSPORT_VARIABLE = "DFMESH_LOCAL_TRANSPORT"

SILENT_SECONDS_VARIABLE = "DFMESH_SILENT_SECONDS"
"""How many seconds the event loop of a site may stand still; 0 for ever. Without it: 30."""

LOG_LEVEL_VARIABLE = "DFMESH_LOG_LEVEL"
"""From which level on sites log, such as INFO, whatever their adapters set. Without it: WARNING, or what those set."""


class LocalFederationRunner:
    """Runs a federation as one process per site on this machine. See `targets.protocol.FederationRunner`."""

    def __init__(
        self,
        config: FederationConfig,
        homesite: str,
        *,
        transport: str | None = None,
        program: Sequence[str] = SITE_MODULE,
        on_output: OnOutput | None = None,
        silent_seconds: float | None = None,
    ) -> None:
        """Prepare; nothing is started.

        Args:
            config: The federation. Each site process reads its file again by itself.
            homesite: The site that the client talks to.
            transport: `unix` (sockets that are handed over, shared memory) or `tcp` (loopback ports). If None, what
                the environment variable DFMESH_LOCAL_TRANSPORT says, else the best that this system has.
            program: Python's arguments that say what to run as a site; for tests.
            on_output: Gets site and line of what sites print; None if nobody wants it.
            silent_seconds: How long the event loop of a site may stand still until the site is ended, or told of if
                its process works; 0 for ever. If None, what the environment variable DFMESH_SILENT_SECONDS says.

        Raises:
            SessionError: there is no such site, transport, or level for logging, or an environment variable for seconds
                is no number.
        """
        if homesite not in config.sites:
            raise SessionError(f"there is no site {homesite!r} to be the homesite; there are {', '.join(config.sites)}")
        self._config = config
        self._homesite = homesite
        self._program = program
        self._on_output = on_output
        self._log_level = _log_level()
        seconds_in(ANSWER_SECONDS_VARIABLE, ANSWER_SECONDS)  # Which sites read: who mistypes it hears of it here.
        default = seconds_in(SILENT_SECONDS_VARIABLE, SILENT_SECONDS)
        self._silent_seconds = default if silent_seconds is None else silent_seconds
        self._owner = os.getpid()
        self._name = f"{CLIENT_PREFIX}{secrets.token_hex(8)}"
        self._transport = transport or os.environ.get(TRANSPORT_VARIABLE) or _default_transport()
        if self._transport not in ("unix", "tcp"):
            raise SessionError(f"there is no transport {self._transport!r}; there are 'unix' and 'tcp'")
        self._carrier: LocalCarrier | None = None
        self._door: Door | None = None
        self._supervisor: Supervisor | None = None
        self._on_lost: Callable[[SiteLost], None] = _ignore

    async def start(self, on_message: Callable[[AnyMessage], None], on_lost: Callable[[SiteLost], None]) -> None:
        """Start the sites and connect to the homesite.

        Args:
            on_message: Gets each message that the homesite sends to this client, in order.
            on_lost: Told when the homesite is lost, and why. It is restarted; the jobs that this client had there
                are gone.

        Raises:
            SessionError: a site did not start; says which, and what it printed.
        """
        if self._supervisor is not None:
            raise SessionError("the federation has been started already")
        self._on_lost = on_lost
        by_port = self._transport == "tcp"
        self._carrier = LocalCarrier(self._name, [self._homesite], self._link_broken, share=not by_port)
        self._carrier.receive = _deliver_to(on_message)
        self._door = Door(self._carrier.connect, self._call_failed) if by_port else None
        self._supervisor = Supervisor(
            self._config.path,
            self._config.sites,
            self._homesite,
            self._name,
            introduce_client=self._introduced,
            on_homesite_lost=self._homesite_lost,
            call_by_port=by_port,
            program=self._program,
            on_output=self._on_output,
            log_level=self._log_level,
            silent_seconds=self._silent_seconds,
            pythons=interpreters(self._config),
            quotes_output=not self._config.has_residency,
        )
        atexit.register(self._at_exit)
        try:
            await self._supervisor.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop all sites and free everything. Idempotent; ends within seconds also when sites hang."""
        if self._supervisor is None or self._carrier is None:
            return
        self._on_lost = _ignore
        self._carrier.receive = _drop
        try:
            await self._supervisor.close()
        finally:
            self._supervisor.kill_now()
            self._carrier.close()
            if self._door is not None:
                self._door.close()
                self._door = None
            atexit.unregister(self._at_exit)

    def pack(self, value: Any) -> Payload:
        """As `Carrier.pack`."""
        return payloads.pack(value)

    def unpack(self, payload: Payload) -> Any:
        """As `Carrier.unpack`."""
        return payloads.unpack(payload)

    def send(self, message: AnyMessage) -> int:
        """Queue a message for the homesite and return its size in bytes."""
        return self._open_carrier().send(self._homesite, message)

    def send_at_once(self, message: AnyMessage, before: Callable[[], None]) -> bool:
        """As `DirectRunner.send_at_once`."""
        return self._carrier is not None and self._carrier.send_at_once(self._homesite, message, before)

    # For progress views and tests.

    @property
    def processes(self) -> dict[str, int]:
        """Site to process id, of those that run."""
        return {} if self._supervisor is None else self._supervisor.processes

    @property
    def standing_still(self) -> dict[str, float]:
        """As `Heartbeats.standing_still`."""
        return {} if self._supervisor is None else self._supervisor.standing_still

    def output(self, site: str) -> str:
        """The last 64 KiB that a site and its adapters printed."""
        return "" if self._supervisor is None else self._supervisor.output(site)

    def outbox_bytes(self) -> int:
        """Bytes for the homesite that are still on this side."""
        return self._open_carrier().outbox_bytes(self._homesite)

    async def bytes_received(self) -> dict[str, dict[str, int]]:
        """Receiver to sender to bytes of messages, counted by the receivers; the client is among them."""
        carrier = self._open_carrier()
        counts = {} if self._supervisor is None else await self._supervisor.bytes_received()
        return {**counts, self._name: carrier.bytes_received()}

    def _open_carrier(self) -> LocalCarrier:
        if self._carrier is None:
            raise SessionClosedError("the federation has not been started")
        return self._carrier

    def _introduced(self, introduction: Introduce, connection: socket.socket | None) -> None:
        if self._carrier is None:
            return
        if connection is not None:
            self._carrier.connect(introduction.peer, connection, introduction.generation)
        elif self._door is not None:
            self._door.call(introduction.peer, introduction.generation, introduction.ticket, introduction.port)

    def _call_failed(self, peer: str, generation: int, reason: str) -> None:
        if self._supervisor is not None:
            self._supervisor.suspect(None, LinkBroken(peer, generation, reason, to_blame=False))

    def _homesite_lost(self, reason: str, running: Running) -> None:
        if self._door is not None:
            self._door.forget(self._homesite)
        if self._carrier is not None:
            self._carrier.disconnect(self._homesite)
        self._on_lost(SiteLost("", self._homesite, reason, running))

    def _link_broken(self, link: Link, reason: str, to_blame: bool) -> None:
        if self._supervisor is not None:
            self._supervisor.suspect(None, LinkBroken(link.peer, link.generation, reason, to_blame))

    def _at_exit(self) -> None:
        if self._supervisor is not None and os.getpid() == self._owner:
            self._supervisor.kill_now()


def interpreters(config: FederationConfig) -> dict[str, str]:
    """Give site to interpreter, of the sites that are not to run in ours.

    A relative path in the federation file is relative to its directory; a name without `/` is looked for on PATH.

    Raises:
        SessionError: there is no such interpreter.
    """
    chosen = {}
    for name, site in config.sites.items():
        if site is not None and site.python is not None:
            python = os.path.expanduser(site.python)
            chosen[name] = os.path.join(config.path.parent, python) if os.sep in python else python
            if shutil.which(chosen[name]) is None:
                raise SessionError(
                    f"site {name!r} cannot be started: there is no interpreter {site.python!r} "
                    f"({site.location}: python)"
                )
    return chosen


def _deliver_to(on_message: Callable[[AnyMessage], None]) -> Receive:
    """Make what hands messages over; if it fails on one, the others that came with it still arrive."""
    loop = asyncio.get_running_loop()

    def deliver(peer: str, message: AnyMessage) -> None:
        try:
            on_message(message)
        except BaseException as error:  # Whatever it is, it must not stay in the middle of a batch of messages.
            text = f"a {type(message).__name__} message was not taken"
            loop.call_exception_handler({"message": text, "exception": error})

    return deliver


def _log_level() -> str:
    level = os.environ.get(LOG_LEVEL_VARIABLE, "").upper()
    known = logging.getLevelNamesMapping()
    if level and level not in known:
        raise SessionError(f"{LOG_LEVEL_VARIABLE}={level!r} is no level; there are {', '.join(known)}")
    return level


def _default_transport() -> str:
    return "unix" if hasattr(socket, "AF_UNIX") and hasattr(socket.socket, "sendmsg") else "tcp"


def _ignore(lost: SiteLost) -> None:
    """Nobody wants to hear of it any more."""


def _drop(peer: str, message: AnyMessage) -> None:
    """Nobody wants to have it any more."""
