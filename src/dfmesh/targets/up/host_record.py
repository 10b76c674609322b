"""Which hosts there are: each leaves a record beside its socket."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from dfmesh.errors import SessionError
from dfmesh.targets.up.directories import host_name, runtime_directory

_LONGEST_ADDRESS = 100
"""Bytes of a socket's path that every system takes."""


class HostRecord(msgspec.Struct, frozen=True):
    """What everybody may know of a running host.

    Attributes:
        name: Its name.
        federation: Path of the federation file, without links.
        title: Name of the federation.
        homesite: Site to which its clients talk.
        sites: All sites.
        digest: Digest of the files that the federation was read from.
        version: Version of dfmesh that it runs.
        pid: Process id.
        started: When it was ready, in seconds since 1970.
    """

    name: str
    federation: str
    title: str
    homesite: str
    sites: tuple[str, ...]
    digest: str
    version: str
    pid: int
    started: float

    @property
    def socket_path(self) -> Path:
        """Where it listens."""
        return socket_path(self.name)


def socket_path(name: str) -> Path:
    """Give the path of the socket of a host."""
    return runtime_directory() / f"{name}.sock"


def record_path(name: str) -> Path:
    """Give the path of the record of a host."""
    return runtime_directory() / f"{name}.json"


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """Give what to bind or connect to for a socket's path, which may be longer than an address can be.

    Raises:
        SessionError: it is too long for this system.
    """
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
        yield os.fspath(path)
        return
    if not os.path.isdir("/proc/self/fd"):
        raise SessionError(f"{path} is too long for the path of a socket; set XDG_RUNTIME_DIR to a shorter one")
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def running_hosts() -> list[HostRecord]:
    """List the hosts that run, by name.

    Raises:
        SessionError: the directory of sockets cannot be used.
    """
    found = []
    for path in sorted(runtime_directory().glob("*.json")):
        with contextlib.suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
            record = msgspec.json.decode(path.read_bytes(), type=HostRecord)
            if record.name == path.stem and _answers(record.socket_path):
                found.append(record)
    return found


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, socket_address(path) as address:
        return connection.connect_ex(address) == 0


def find_host(wanted: str | os.PathLike[str] | None = None, name: str | None = None) -> HostRecord:
    """Find a running host.

    Args:
        wanted: The federation file, or the name of the host; None for the only one that runs.
        name: Name of the host, where `wanted` is a file of which several run; else it is the one without a name of
            its own.

    Raises:
        SessionError: there is none, or there are several; says what to do.
    """
    running = running_hosts()
    if wanted is None and name is None:
        return _only(running)
    if name is None and wanted is not None:
        matching = [host for host in running if host.federation == os.path.realpath(wanted)]
        matching = matching or [host for host in running if host.name == os.fspath(wanted)]
        if len(matching) > 1:
            default = host_name(Path(wanted))
            matching = [host for host in matching if host.name == default] or matching
    else:
        matching = [host for host in running if host.name == name]
    if not matching:
        raise SessionError(_none_runs(wanted, name, running))
    if len(matching) > 1:
        names = ", ".join(host.name for host in matching)
        raise SessionError(f"several hosts run {os.fspath(wanted or '')}: {names}; say which by its name")
    return matching[0]


def _only(running: list[HostRecord]) -> HostRecord:
    if len(running) == 1:
        return running[0]
    if not running:
        raise SessionError("no federation is up; start one with `dfmesh up FILE`")
    listed = "".join(f"\n  {host.name}  {host.federation}" for host in running)
    raise SessionError(f"several federations are up; name the file of one, or its name:{listed}")


def _none_runs(wanted: str | os.PathLike[str] | None, name: str | None, running: list[HostRecord]) -> str:
    others = f" (up are: {', '.join(host.name for host in running)})" if running else ""
    if name is None and wanted is not None and os.path.isfile(wanted):
        return f"{os.fspath(wanted)} is not up{others}; start it with `dfmesh up {os.fspath(wanted)}`"
    called = name or os.fspath(wanted or "")
    return f"there is no host called {called!r}{others}; start one with `dfmesh up FILE`"
