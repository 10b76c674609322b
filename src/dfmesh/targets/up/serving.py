"""Running a host until it is stopped: its lock, its socket, its record, its signals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

import msgspec

from dfmesh import __version__
from dfmesh.config import FederationConfig
from dfmesh.errors import SessionError
from dfmesh.targets.protocol import OnOutput
from dfmesh.targets.up.directories import state_directory
from dfmesh.targets.up.host import Host
from dfmesh.targets.up.host_lock import HostLock
from dfmesh.targets.up.host_record import HostRecord, record_path, socket_address, socket_path

_BACKLOG = 128
_MOST_FILES = 65536


@dataclass(frozen=True)
class Serving:
    """What a host is to do.

    Attributes:
        config: The federation.
        homesite: Site to which clients talk.
        name: Name of the host.
        on_ready: Called when all sites have started and clients can come, with the host's record and how many jobs of
            an earlier host go on.
        on_output: Gets what sites print; None if nobody wants it, beside the log.
    """

    config: FederationConfig
    homesite: str
    name: str
    on_ready: Callable[[HostRecord, int], None]
    on_output: OnOutput | None = None


def serve(serving: Serving) -> None:
    """Run a host until it gets SIGINT, SIGTERM or SIGHUP, or a client asks for its end.

    Raises:
        SessionError: it is up already, or a site did not start; says which, and what it printed.
    """
    lock = HostLock(serving.name)
    try:
        _allow_many_files()
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(_serve(serving))
    finally:
        lock.release()


async def _serve(serving: Serving) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stopped.set)
    host = Host(
        serving.config, serving.homesite, state_directory(serving.name), stopped.set, on_output=serving.on_output
    )
    try:
        resumed = await _unless_stopped(host.start(), stopped)
        if resumed is None:
            return
        record = _record(serving)
        server = await _listen(host, record)
        try:
            _publish(record)
            serving.on_ready(record, resumed)
            await stopped.wait()
        finally:
            server.close()
    finally:
        await host.close()


async def _unless_stopped(starting: Coroutine[None, None, int], stopped: asyncio.Event) -> int | None:
    """Wait for the start of the sites, which the user may give up."""
    start = asyncio.ensure_future(starting)
    stop = asyncio.ensure_future(stopped.wait())
    await asyncio.wait((start, stop), return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if start.done():
        return start.result()
    start.cancel()
    with contextlib.suppress(asyncio.CancelledError, SessionError):
        await start
    return None


def _record(serving: Serving) -> HostRecord:
    config = serving.config
    return HostRecord(
        name=serving.name,
        federation=os.path.realpath(config.path),
        title=config.name,
        homesite=serving.homesite,
        sites=tuple(config.sites),
        digest=config.digest,
        version=__version__,
        pid=os.getpid(),
        started=time.time(),
    )


async def _listen(host: Host, record: HostRecord) -> asyncio.Server:
    """Open the host's socket."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(socket_path(record.name)) as address:
            listener.bind(address)
        greeting = msgspec.json.encode(record)
        return await asyncio.get_running_loop().create_unix_server(
            lambda: host.welcome(greeting).channel, sock=listener, backlog=_BACKLOG
        )
    except OSError as error:
        listener.close()
        raise SessionError(f"cannot listen on {socket_path(record.name)}: {error}") from error


def _publish(record: HostRecord) -> None:
    path = record_path(record.name)
    draft = path.with_suffix(".part")
    draft.write_bytes(msgspec.json.encode(record))
    os.replace(draft, path)


def _allow_many_files() -> None:
    """Each job and each client has some files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if wanted > soft:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
