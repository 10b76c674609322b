"""The process that is a site: `python -m dfmesh.targets.local.site_process FEDERATION SITE ARGUMENTS`.

Started by the supervisor in the client only; it cannot be of use to a person. All that the site does is in
`JobRunner`; here it is connected to its peers and to its supervisor.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if __name__ == "__main__":
    gc.disable()  # until all is loaded: what imports leave behind stays for good, and looking through it takes time

import msgspec

from dfmesh.engine import CLIENT_PREFIX, SUPERVISOR
from dfmesh.engine.heard_output import hear
from dfmesh.engine.messages import AnyMessage, SiteLost
from dfmesh.engine.stopping import hush_late_stops, let_sleep_be_stopped
from dfmesh.errors import DfmeshError
from dfmesh.processes import lifeline
from dfmesh.processes.forking import give_back_in_forks, keep_from_forks
from dfmesh.processes.output import leave, log_to_standard_error, write_lines
from dfmesh.targets.local.call_log import CallLog
from dfmesh.targets.local.carrier import LocalCarrier
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
from dfmesh.targets.local.link import Link
from dfmesh.targets.wire import Codec, WireError
from dfmesh.values import give_new_arrays

if TYPE_CHECKING:
    from dfmesh.targets.local.door import Door

_STOP_SECONDS = 0.4


class Runner(Protocol):
    """What this process needs of `engine.JobRunner`."""

    def receive(self, peer: str, message: AnyMessage) -> None:
        """Take a message."""
        ...

    def client_lost(self, peer: str) -> None:
        """Take note that a client is gone."""
        ...

    async def close(self) -> None:
        """Cancel everything."""
        ...


class RunnerFactory(Protocol):
    """Makes the runner of a site."""

    def __call__(
        self, federation: str, site: str, homesite: str, carrier: LocalCarrier, call_log: CallLog | None, /
    ) -> Runner:
        """Make it."""
        ...


class SiteProcess:
    """Connects the runner of a site to its peers and its supervisor."""

    def __init__(self, site: str, arguments: SiteArguments) -> None:
        """Prepare; must be called on the event loop."""
        self._site = site
        self._arguments = arguments
        self._carrier = LocalCarrier(site, arguments.peers, self._link_broken, share=not arguments.call_by_port)
        give_new_arrays(self._carrier.new_array, self._carrier.copy_of)
        self._runner: Runner | None = None
        self._control = Link(SUPERVISOR, Codec(AnyControl), self._handle, self._supervisor_gone)
        self._door = self._open_door() if arguments.call_by_port else None
        self._stopping: asyncio.Task[None] | None = None

    def _open_door(self) -> Door:
        from dfmesh.targets.local.door import Door

        return Door(self._carrier.connect, self._call_failed)

    def start(self, federation: str, make_runner: RunnerFactory) -> None:
        """Read the configuration, make the runner and say that we are ready."""
        calls = CallLog(self._arguments.calls)
        os.close(self._arguments.calls)
        self._runner = make_runner(federation, self._site, self._arguments.homesite, self._carrier, calls)
        self._carrier.receive = self._runner.receive
        if self._arguments.beat_seconds > 0:
            self._beat(calls)
        gc.freeze()  # what is loaded now stays for good: no collection has to look at it again
        gc.enable()
        self._control.attach(keep_from_forks(socket.socket(fileno=self._arguments.control)))
        self._control.send(Ready(0 if self._door is None else self._door.port))

    def _beat(self, calls: CallLog) -> None:
        calls.beat()
        asyncio.get_running_loop().call_later(self._arguments.beat_seconds, self._beat, calls)

    def stop(self) -> None:
        """Give the jobs a moment to be cancelled, then exit."""
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop())

    async def _stop(self) -> None:
        try:
            if self._runner is not None:
                await asyncio.wait_for(self._runner.close(), _STOP_SECONDS)
        finally:
            leave(0)

    def _handle(self, peer: str, message: Any) -> None:
        match message:
            case Introduce():
                self._connect(message)
            case Lost():
                self._note_loss(message)
            case Stop():
                self.stop()
            case AskTraffic():
                self._control.send(Traffic(self._carrier.bytes_received()))
            case _:
                raise WireError(f"a {type(message).__name__} message is not for a site")

    def _connect(self, introduction: Introduce) -> None:
        peer, generation = introduction.peer, introduction.generation
        descriptor = self._control.take_descriptor()
        if descriptor is not None:
            self._carrier.connect(peer, keep_from_forks(socket.socket(fileno=descriptor)), generation)
        elif self._door is None:
            raise WireError("a connection without a descriptor")
        elif introduction.port:
            self._door.call(peer, generation, introduction.ticket, introduction.port)
        else:
            self._door.expect(peer, generation, introduction.ticket)

    def _call_failed(self, peer: str, generation: int, reason: str) -> None:
        self._control.send(LinkBroken(peer, generation, reason, to_blame=False))

    def _note_loss(self, loss: Lost) -> None:
        if self._door is not None:
            self._door.forget(loss.site)
        self._carrier.disconnect(loss.site)
        if self._runner is not None:
            self._runner.receive(SUPERVISOR, SiteLost("", loss.site, loss.reason, loss.running))
        self._control.send(LossNoted(loss.number))

    def _link_broken(self, link: Link, reason: str, to_blame: bool) -> None:
        if link.peer.startswith(CLIENT_PREFIX):
            self._carrier.remove(link.peer)
            if self._runner is not None:
                self._runner.client_lost(link.peer)
        self._control.send(LinkBroken(link.peer, link.generation, reason, to_blame))

    def _supervisor_gone(self, link: Link, reason: str, to_blame: bool) -> None:
        lifeline.die()


def main(arguments: list[str], make_runner: Callable[[], RunnerFactory]) -> NoReturn:
    """Run a site until the supervisor ends it.

    Args:
        arguments: Path of the federation file, name of the site, `SiteArguments` as JSON.
        make_runner: Gives the factory; called late, so that what it imports does not delay the rest.
    """
    federation, site, rest = arguments
    parsed = msgspec.json.decode(rest, type=SiteArguments)
    lifeline.arm(parsed.lifeline)
    for descriptor in (parsed.control, parsed.calls):
        os.set_inheritable(descriptor, False)
    write_lines()
    log_to_standard_error(parsed.log_level)
    hear()
    let_sleep_be_stopped()
    hush_late_stops()
    sys.path[:] = [*parsed.path, *(entry for entry in sys.path if entry not in parsed.path)]
    loop = _new_loop()
    loop.call_soon(_start, loop, federation, site, parsed, make_runner)
    while True:
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            continue  # an adapter's coroutine called sys.exit: its task knows, and the other jobs go on


def _start(
    loop: asyncio.AbstractEventLoop,
    federation: str,
    site: str,
    arguments: SiteArguments,
    make_runner: Callable[[], RunnerFactory],
) -> None:
    try:
        lifeline.watch_starter(arguments.client, loop)
        process = SiteProcess(site, arguments)
        give_back_in_forks(signal.SIGTERM)
        loop.add_signal_handler(signal.SIGTERM, process.stop)
        process.start(federation, make_runner())
    except DfmeshError as error:
        sys.stderr.write(f"{error}\n")  # it says all; the supervisor shows it to the user
        leave(1)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        leave(1)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        loop = asyncio.new_event_loop()
    else:
        loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop


def _job_runner() -> RunnerFactory:
    from dfmesh.config import FederationConfig
    from dfmesh.engine import JobRunner
    from dfmesh.engine.adapters import SiteAdapters

    def make(federation: str, site: str, homesite: str, carrier: LocalCarrier, call_log: CallLog | None, /) -> Runner:
        adapters = SiteAdapters(FederationConfig.load(federation), site)
        runner: Runner = JobRunner(site, homesite, adapters, carrier, call_log)
        return runner

    return make


if __name__ == "__main__":
    main(sys.argv[1:], _job_runner)
