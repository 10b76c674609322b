"""The host itself: one per federation, for its own user only, and unharmed by what clients do."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest
from up_host import FEDERATION, UpHost, holding, one, open_gate, wait_for

from dfmesh import Federation, JobError, Pipeline, SessionError, Yield
from dfmesh.session.host import Host
from dfmesh.targets.up.directories import check_name, host_name, runtime_directory
from dfmesh.targets.up.host_record import HostRecord, find_host, record_path, running_hosts, socket_address, socket_path
from dfmesh.targets.up.messages import AttachJob, ListJobs, make_codec
from dfmesh.targets.up.peer import peer_of_this_user
from dfmesh.targets.wire import to_bytes

Start = Callable[..., UpHost]


@contextmanager
def raw_client(host: UpHost) -> Iterator[socket.socket]:
    """A client that says whatever a test likes."""
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection,
        socket_address(socket_path(host.record["name"])) as address,
    ):
        connection.connect(address)
        connection.settimeout(30)
        yield connection


def is_closed(connection: socket.socket) -> bool:
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


def test_two_hosts_need_two_names(start_host: Start, federation: Federation) -> None:
    first = start_host()
    with pytest.raises(AssertionError, match="is up already"):
        start_host()
    with Host() as host:
        assert host.record.name == first.record["name"] == host_name(federation.config.path)
    second = start_host("--name", "second", "--homesite", "a")
    with pytest.raises(SessionError, match="several federations are up"):
        Host()
    with federation.session(target="up") as session:  # The one without a name of its own.
        assert session.homesite == "app"
    assert find_host(federation.config.path).name == first.record["name"]
    with federation.session(target="up:second") as session:
        assert session.homesite == "a"
        assert session.run(one(federation), x=2)["doubled"] == [4]
    second.stop()
    with federation.session(target="up") as session:
        assert session.jobs() == []
    with pytest.raises(SessionError, match="no host called 'second'"):
        federation.session(target="up:second").connect()


def test_a_killed_host_leaves_nothing_that_is_in_the_way(start_host: Start, federation: Federation) -> None:
    host = start_host()
    host.kill()
    assert socket_path(host.record["name"]).exists()
    assert running_hosts() == []
    with pytest.raises(SessionError, match="is not up; start it with `dfmesh up"):
        federation.session(target="up").connect()
    start_host()
    with federation.session(target="up") as session:
        assert session.run(one(federation), x=2)["doubled"] == [4]


def test_the_file_must_be_what_the_host_has_loaded(start_host: Start, place: Path) -> None:
    start_host()
    (place / "up.dfm.yaml").write_text(FEDERATION + "# changed\n", "utf-8")
    with pytest.raises(SessionError, match=r"is not what the host .* has loaded; start it again: `dfmesh down"):
        Federation.load(place / "up.dfm.yaml").session(target="up").connect()
    (place / "up.dfm.yaml").write_text(FEDERATION, "utf-8")
    with Federation.load(place / "up.dfm.yaml").session(target="up") as session:
        assert session.jobs() == []


def test_another_version_of_dfmesh_is_told(
    start_host: Start, federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_host()
    monkeypatch.setattr("dfmesh.targets.up.runner.__version__", "9.9")
    with pytest.raises(SessionError, match=r"runs dfmesh .*, this is 9.9; stop it with its own `dfmesh down"):
        federation.session(target="up").connect()


def test_who_sends_garbage_is_dropped_without_harm(start_host: Start, federation: Federation, tmp_path: Path) -> None:
    host = start_host()
    codec = make_codec()
    with federation.session(target="up") as session:
        job = session.submit(holding(federation, tmp_path), n=2)
        for garbage in (
            b"GET / HTTP/1.1\r\n\r\n" + bytes(100),
            os.urandom(4096),
            b"\xff\xff\xff\xff\x00",
            b"\x03\x00\x00\x00\x00abc",
            to_bytes(codec, ListJobs("", 1))[:-1] + b"\xc1",
        ):
            with raw_client(host) as connection:
                connection.sendall(garbage)
                connection.shutdown(socket.SHUT_WR)
                assert is_closed(connection)
        open_gate(tmp_path)
        assert job.result(timeout=30)["number"] == [0, 1]


def test_who_does_not_read_costs_no_memory(start_host: Start, federation: Federation) -> None:
    host = start_host()
    size = 4_000_000
    with Pipeline() as pipeline:
        for number in range(20):
            Yield(federation.ops.up.Blob(size=size), place=f"blob-{number}")
    with federation.session(target="up") as session:
        job = session.submit(pipeline)
        job.result(timeout=60)
        before = host.process.memory_info().rss
        codec = make_codec()
        with raw_client(host) as connection:
            for number in range(1, 11):
                connection.sendall(to_bytes(codec, AttachJob(job.id, number)))
            wait_for(lambda: len(connection.recv(2**20, socket.MSG_PEEK)) > 100_000)
            assert session.run(one(federation), x=2)["doubled"] == [4]
            assert host.process.memory_info().rss - before < 32 * 2**20
            for number in range(1, 2**20):
                try:
                    connection.setblocking(False)
                    connection.send(to_bytes(codec, ListJobs("", number)))
                except BlockingIOError:
                    break
        assert session.run(one(federation), x=2)["doubled"] == [4]
        assert host.process.memory_info().rss - before < 160 * 2**20


def test_a_full_disk_ends_a_job_but_not_the_host(start_host: Start, federation: Federation) -> None:
    host = start_host()
    host.process.rlimit(psutil.RLIMIT_FSIZE, (100_000, 100_000))
    with Pipeline() as pipeline:
        Yield("small", place="small")
        Yield(federation.ops.up.Blob(size=1_000_000), place="blob")
    with federation.session(target="up") as session:
        job = session.submit(pipeline)
        with pytest.raises(JobError, match=r"JournalBroken: the journal .* cannot be written: File too.*--forget"):
            job.result(timeout=30)
        attached = session.attach(job.id)
        assert attached.wait(30)
        assert attached.status == "failed"
        listed = next(entry for entry in session.jobs() if entry.id == job.id)
        assert listed.results == len(attached.partial_result()["small"]) + len(attached.partial_result()["blob"])
        assert session.run(one(federation), x=2)["doubled"] == [4]


def test_only_processes_of_the_same_user_are_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer_of_this_user(ours.fileno()) == os.getpid()
        monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
        assert peer_of_this_user(ours.fileno()) is None


def test_the_directory_of_sockets_is_its_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    directory = runtime_directory()
    assert directory.stat().st_mode & 0o777 == 0o700
    directory.chmod(0o755)
    with pytest.raises(SessionError, match="is not a directory of yours alone"):
        runtime_directory()
    directory.rmdir()
    directory.symlink_to(tmp_path)
    with pytest.raises(SessionError, match="is not a directory of yours alone"):
        runtime_directory()


def test_without_a_runtime_directory_there_is_one_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert runtime_directory() == tmp_path / f"dfmesh-{os.getuid()}"


def test_names_of_hosts(tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(tmp_path / "weather.dfm.yaml")
    assert host_name(link) == host_name(tmp_path / "weather.dfm.yaml")
    assert host_name(tmp_path / "weather.dfm.yaml").startswith("weather-")
    assert host_name(tmp_path / "..x y.yaml") != host_name(tmp_path / "a" / "..x y.yaml")
    assert check_name("night-2") == "night-2"
    for name in ("", "../x", "a/b", "x" * 60, ".hidden", "a b"):
        with pytest.raises(SessionError, match="cannot be the name of a host"):
            check_name(name)


def test_a_record_of_somebody_else_is_no_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    record_path("broken").write_text("{", "utf-8")
    record = HostRecord("gone", "/x", "x", "a", ("a",), "", "1", 1, 0.0)
    record_path("gone").write_bytes(msgspec.json.encode(record))
    record_path("other").write_bytes(msgspec.json.encode(record))
    assert running_hosts() == []
    with pytest.raises(SessionError, match="no federation is up; start one with `dfmesh up FILE`"):
        Host()
