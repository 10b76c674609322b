"""Starts the site processes of a federation, introduces them to each other, and restarts those that die.

Every two of them get a connection of their own, made here and handed to both, so nobody has to find, trust or retry
anything. When one dies, each survivor is told, answers, and only then meets the next life of it; the homesite is
told last. So nothing that belongs to a job started after a loss can reach a site that has not heard of the loss.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dfmesh.errors import SessionError
from dfmesh.netir import Frame
from dfmesh.processes.starting import import_path
from dfmesh.targets.local.call_log import clear_table, read_table
from dfmesh.targets.local.control import (
    AnyControl,
    AskTraffic,
    Introduce,
    LinkBroken,
    LossNoted,
    Lost,
    Ready,
    SiteArguments,
    Stop,
    Traffic,
)
from dfmesh.targets.local.door import TICKET_SIZE
from dfmesh.targets.local.heartbeats import SILENT_SECONDS, Heartbeats, beat_seconds
from dfmesh.targets.local.link import Link
from dfmesh.targets.local.members import Client, Member, Site
from dfmesh.targets.local.process import SITE_MODULE, SiteProcess
from dfmesh.targets.protocol import OnOutput
from dfmesh.targets.wire import Codec, WireError

_START_SECONDS = 60.0
_STEADY_SECONDS = 10.0  # who lived longer is restarted at once
_FIRST_DELAY = 0.1
_LONGEST_DELAY = 5.0
_HOMESITE_WAITS = 1.0
_DYING_SECONDS = 1.0

Running = tuple[tuple[str, int, Frame], ...]


class Supervisor:
    """All site processes of one client. All calls are made on the event loop."""

    def __init__(
        self,
        federation: Path,
        sites: Iterable[str],
        homesite: str,
        client: str,
        *,
        introduce_client: Callable[[Introduce, socket.socket | None], None],
        on_homesite_lost: Callable[[str, Running], None],
        call_by_port: bool = False,
        program: Sequence[str] = SITE_MODULE,
        on_output: OnOutput | None = None,
        log_level: str = "",
        silent_seconds: float = SILENT_SECONDS,
        pythons: Mapping[str, str] | None = None,
        quotes_output: bool = True,
    ) -> None:
        """Prepare.

        Args:
            federation: The federation file.
            sites: Names of all sites.
            homesite: The one that the client talks to.
            client: Name of the client as a peer.
            introduce_client: Gets what a site gets to be connected: here to the homesite.
            on_homesite_lost: Gets reason and calls going on when the homesite died.
            call_by_port: Whether peers are called on loopback ports, instead of getting sockets handed over.
            program: Python's arguments that say what to run as a site.
            on_output: Gets site and line of what sites print; None if nobody wants it.
            log_level: From which level on sites log to what they print; empty to leave that to their adapters.
            silent_seconds: How long the event loop of a site may stand still; 0 for as long as it will.
            pythons: Site to the interpreter that is to run it; our own runs the others.
            quotes_output: Whether jobs may be told what a site printed last before it died.
        """
        self._federation = federation
        self._sites = {name: Site(name) for name in sites}
        self._homesite = homesite
        self._client = Client(client, introduce_client)
        self._on_homesite_lost = on_homesite_lost
        self._call_by_port = call_by_port
        self._program = program
        self._on_output = on_output
        self._log_level = log_level
        self._silent_seconds = silent_seconds
        self._heartbeats = Heartbeats(self._sites.values(), silent_seconds, self._end, self._say_of)
        self._pythons = pythons or {}
        self._quotes_output = quotes_output
        self._codec = Codec(AnyControl)
        self._loop = asyncio.get_running_loop()
        self._linked: set[frozenset[str]] = set()
        self._losses = itertools.count()
        self._untold: dict[int, Lost] = {}  # the homesite hears of these last
        self._unnoted: dict[int, tuple[str, set[str]]] = {}  # loss -> the site that died, who has not answered
        self._started: asyncio.Future[None] | None = None
        self._all_ended: asyncio.Future[None] | None = None
        self._closing = False

    @property
    def processes(self) -> dict[str, int]:
        """Site to process id, of those that run."""
        return {site.name: site.process.pid for site in self._sites.values() if site.process is not None}

    @property
    def standing_still(self) -> dict[str, float]:
        """As `Heartbeats.standing_still`."""
        return self._heartbeats.standing_still

    def output(self, name: str) -> str:
        """The last that a site and its adapters printed."""
        return self._sites[name].output

    async def start(self) -> None:
        """Start all sites at once and wait until they are ready.

        Raises:
            SessionError: one did not start; all others are stopped again.
        """
        self._started = self._loop.create_future()
        timer = self._loop.call_later(_START_SECONDS, self._start_failed, "it did not get ready in time")
        try:
            for site in self._sites.values():
                self._spawn(site)
            await self._started
            self._heartbeats.start()
        except BaseException:
            await self.close()
            raise
        finally:
            timer.cancel()
            self._started = None

    async def close(self) -> None:
        """Stop all sites: ask, then SIGTERM, then SIGKILL. Idempotent."""
        self._closing = True
        self._heartbeats.stop()
        for site in self._sites.values():
            site.say(Stop())
        for patience, insist in ((0.6, SiteProcess.terminate), (0.2, SiteProcess.kill), (5.0, SiteProcess.kill)):
            if await self._wait_for_end(patience):
                break
            for site in self._sites.values():
                if site.process is not None:
                    insist(site.process)
        self._release()

    def kill_now(self) -> None:
        """End all sites without the event loop, which is gone or will not run again."""
        self._closing = True
        for site in self._sites.values():
            if site.process is not None:
                site.process.kill()
        for site in self._sites.values():
            if site.process is not None:
                site.process.kill_and_wait()

    async def bytes_received(self) -> dict[str, dict[str, int]]:
        """Ask each site for peer to bytes of the messages that arrived there."""
        asked = {site.name: self._ask_traffic(site) for site in self._sites.values() if site.ready}
        return {name: await answer for name, answer in asked.items()}

    def _ask_traffic(self, site: Site) -> asyncio.Future[dict[str, int]]:
        if site.traffic is None:
            site.traffic = self._loop.create_future()
            site.say(AskTraffic())
        return site.traffic

    async def _wait_for_end(self, seconds: float) -> bool:
        if not self.processes:
            return True
        self._all_ended = self._loop.create_future()
        await asyncio.wait([self._all_ended], timeout=seconds)
        self._all_ended = None
        return not self.processes

    def _release(self) -> None:
        for site in self._sites.values():
            if site.calls >= 0:
                os.close(site.calls)
                site.calls = -1

    # A site's life.

    def _spawn(self, site: Site) -> None:
        if self._closing:
            return
        site.generation += 1
        site.ready = False
        site.verdict = ""
        site.started_at = self._loop.time()
        clear_table(site.calls)
        peers = tuple(name for name in self._sites if name != site.name)
        python = self._pythons.get(site.name)
        arguments = SiteArguments(
            self._homesite,
            peers,
            os.getpid(),
            -1,
            self._call_by_port,
            -1,
            site.calls,
            import_path(python),
            self._log_level,
            beat_seconds(self._silent_seconds),
        )
        on_line = None if self._on_output is None else partial(self._on_output, site.name)
        process = SiteProcess(
            self._federation,
            site.name,
            arguments,
            lambda process: self._exited(site, process),
            self._program,
            on_line,
            python,
        )
        site.process = process
        generation = site.generation
        site.control = Link(
            site.name,
            self._codec,
            lambda _, message: self._handle(site, message),
            lambda _, reason, to_blame: self.suspect(None, LinkBroken(site.name, generation, reason, to_blame)),
        )
        site.control.attach(process.control)

    def _exited(self, site: Site, process: SiteProcess) -> None:
        if site.control is not None:
            site.control.detach()  # hears what it still said
        reason = site.verdict or process.reason(quote=self._quotes_output or not site.ready)
        was_ready = site.ready
        site.end_life()
        self._linked = {pair for pair in self._linked if site.name not in pair}
        if self._closing:
            if self._all_ended is not None and not self._all_ended.done() and not self.processes:
                self._all_ended.set_result(None)
        elif self._started is not None:
            self._start_failed(f"site {site.name!r} did not start: {reason}")
        else:
            self._lost(site, reason if was_ready else f"does not start: {reason}")

    def _start_failed(self, reason: str) -> None:
        if self._started is not None and not self._started.done():
            late = [site.name for site in self._sites.values() if not site.ready]
            self._started.set_exception(SessionError(f"{reason} (not ready: {', '.join(late)})"))

    def _lost(self, site: Site, reason: str) -> None:
        running = read_table(site.calls)
        for name in list(self._unnoted):
            self._answered(name, site.name)
        if site.name == self._homesite:
            self._untold.clear()
            self._on_homesite_lost(reason, running)
        self._tell(site.name, reason, running)
        self._introduce()  # some may have waited for what it did not say
        if self._loop.time() - site.started_at > _STEADY_SECONDS:
            site.deaths = 0
        delay = min(_FIRST_DELAY * 2 ** (site.deaths - 1), _LONGEST_DELAY) if site.deaths else 0.0
        site.deaths += 1
        self._loop.call_later(delay, self._respawn, site)

    def _respawn(self, site: Site) -> None:
        try:
            self._spawn(site)
        except SessionError as error:
            self._lost(site, str(error))

    def suspect(self, accuser: Site | None, broken: LinkBroken) -> None:
        """A connection of a site broke. It is dying, or has to: messages may be lost.

        Args:
            accuser: The site that says so; None if it is we.
            broken: What it says.
        """
        accused = self._sites.get(broken.peer)
        if accused is None:
            return
        life = None if accuser is None else accuser.generation
        delay = 0.0 if broken.to_blame else _DYING_SECONDS  # who is dying shall die of its own reason
        self._loop.call_later(delay, self._convict, accused, broken, accuser, life)

    def _convict(self, accused: Site, broken: LinkBroken, accuser: Site | None, life: int | None) -> None:
        if accused.process is None or accused.generation != broken.generation or self._closing:
            return  # it is dead already
        if accuser is not None and (accuser.generation != life or accuser.process is None or accuser.verdict):
            return  # it was the accuser who died
        witness = "the client" if accuser is None else accuser.name
        accused.verdict = f"ended by dfmesh: {witness} says {broken.reason}"
        accused.process.kill()

    def _end(self, site: Site, reason: str) -> None:
        """End a site that hangs."""
        if site.process is not None and not site.verdict:
            site.verdict = f"ended by dfmesh: {reason}"
            site.process.kill()

    def _say_of(self, site: Site, text: str) -> None:
        """Say something of a site where it says things itself."""
        if self._on_output is not None:
            self._on_output(site.name, f"dfmesh: {text}")

    # Who knows what.

    def _tell(self, name: str, reason: str, running: Running) -> None:
        """Tell the survivors of a loss, the homesite after the others."""
        number = next(self._losses)
        loss = Lost(number, name, reason, running)
        audience = {site.name for site in self._sites.values() if site.ready}
        self._unnoted[number] = (name, audience)
        for other in audience - {self._homesite}:
            self._sites[other].say(loss)
        if self._homesite in audience:
            self._untold[number] = loss
            self._loop.call_later(_HOMESITE_WAITS, self._tell_homesite, number)
        self._answered(number, "")

    def _tell_homesite(self, number: int) -> None:
        loss = self._untold.pop(number, None)
        if loss is not None:
            self._sites[self._homesite].say(loss)

    def _answered(self, number: int, name: str) -> None:
        """Take note that a site knows of a loss, or is gone itself."""
        if number not in self._unnoted:
            return
        waiting = self._unnoted[number][1]
        waiting.discard(name)
        if waiting == {self._homesite}:
            self._tell_homesite(number)
        elif not waiting:
            del self._unnoted[number]

    def _handle(self, site: Site, message: Any) -> None:
        match message:
            case Ready():
                site.ready, site.port = True, message.port
                if site.process is not None:
                    site.process.show_output()
                if self._started is not None and all(other.ready for other in self._sites.values()):
                    self._started.set_result(None)
            case LossNoted():
                self._answered(message.number, site.name)
            case LinkBroken():
                self.suspect(site, message)
            case Traffic():
                site.answer_traffic(message.received)
            case _:
                raise WireError(f"a {type(message).__name__} message is not for the supervisor")
        self._introduce()

    def _introduce(self) -> None:
        """Connect every two that are ready and have no unsettled loss between them."""
        unsettled = {frozenset((dead, other)) for dead, others in self._unnoted.values() for other in others}
        # A homesite that died meanwhile was not told of the loss. It must not begin a job with the next life of a site
        # while another one still takes the last life for it.
        unsettled |= {frozenset((dead, self._homesite)) for dead, others in self._unnoted.values() if others}
        ready = [site for site in self._sites.values() if site.ready]
        for first, second in itertools.combinations(ready, 2):
            pair = frozenset((first.name, second.name))
            if pair not in self._linked and pair not in unsettled:
                self._connect(first, second)
        home = self._sites[self._homesite]
        if home.ready and frozenset((home.name, self._client.name)) not in self._linked:
            self._connect(self._client, home)

    def _connect(self, caller: Member, called: Member) -> None:
        self._linked.add(frozenset((caller.name, called.name)))
        if self._call_by_port:
            ticket = secrets.token_bytes(TICKET_SIZE)
            called.introduce(Introduce(caller.name, caller.generation, ticket), None)
            caller.introduce(Introduce(called.name, called.generation, ticket, called.port), None)
        else:
            ours, theirs = socket.socketpair()
            called.introduce(Introduce(caller.name, caller.generation), theirs)
            caller.introduce(Introduce(called.name, called.generation), ours)
