"""SiteCache: one file per value, whole or not at all, on a directory and on storages of fsspec."""

from __future__ import annotations

import asyncio
import os
import resource
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dfmesh import values
from dfmesh.engine.adapters import StoragePath
from dfmesh.engine.adapters.storage import storage_directory
from dfmesh.engine.site_cache import SiteCache
from dfmesh.engine.worker_thread import Done, Work
from dfmesh.engine.worker_threads import WorkerThreads

LIMIT = 20.0


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class WatchedThreads(WorkerThreads):
    """Know how many calls are under way."""

    under_way = 0

    def submit(self, function: Callable[[], Any], done: Done, operation: str = "", call: Any = None) -> Work:
        def ended(value: Any, error: BaseException | None, seconds: float) -> None:
            self.under_way -= 1
            done(value, error, seconds)

        self.under_way += 1
        return super().submit(function, ended, operation, call)


class Site:
    """One process of a site: a cache with its threads and clock."""

    def __init__(self, storage: Any, clock: Clock) -> None:
        self.threads = WatchedThreads(asyncio.get_running_loop())
        self.failing = False
        adapters: Any = SimpleNamespace(
            site_name="a", site=SimpleNamespace(cache_storage=lambda _name: self._at(storage))
        )
        self.cache = SiteCache(adapters, self.threads, clock)

    def _at(self, storage: Any) -> Any:
        if self.failing:
            raise OSError("the storage is gone")
        return storage

    def look(
        self, key: bytes, ttl: float | None = None, *, wait: bool = True, within: frozenset[str] | None = None
    ) -> asyncio.Future[tuple[str, Any]]:
        future = asyncio.get_running_loop().create_future()
        self.cache.look_up(
            key,
            ttl,
            wait=wait,
            found=lambda value: future.set_result(("found", value)),
            missed=lambda: future.set_result(("missed", None)),
            within=within,
        )
        return future

    async def written(self) -> None:
        """Wait until what was given to the threads so far has been done."""
        while self.threads.under_way:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.001)


Test = Callable[[Site, Clock, Any], Awaitable[None]]


@pytest.fixture(params=["directory", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "directory":
        (tmp_path / "values").mkdir()
        return tmp_path / "values"
    place = storage_directory("memory", {}, f"/{secrets.token_hex(6)}")
    place.mkdir(parents=True, exist_ok=True)
    return place


def run(storage: Any, test: Test) -> None:
    async def main() -> None:
        clock = Clock()
        site = Site(storage, clock)
        try:
            await asyncio.wait_for(test(site, clock, storage), LIMIT)
        finally:
            site.threads.close()

    asyncio.run(main())


def test_what_is_stored_is_found_also_by_another_process(storage: Any) -> None:
    async def test(site: Site, clock: Clock, storage: Any) -> None:
        assert await site.look(b"k") == ("missed", None)
        site.cache.store(b"k", {"a": (1, None)})
        await site.written()
        other = Site(storage, clock)
        assert await other.look(b"k") == ("found", {"a": (1, None)})
        assert await other.look(b"other") == ("missed", None)
        other.threads.close()

    run(storage, test)


def test_none_is_a_value(storage: Any) -> None:
    async def test(site: Site, _clock: Clock, _storage: Any) -> None:
        await site.look(b"k")
        site.cache.store(b"k", None)
        await site.written()
        assert await site.look(b"k") == ("found", None)

    run(storage, test)


def test_age(storage: Any) -> None:
    async def test(site: Site, clock: Clock, _storage: Any) -> None:
        await site.look(b"k")
        site.cache.store(b"k", 1)
        await site.written()
        clock.now += 60
        assert await site.look(b"k", 60.0) == ("found", 1)
        assert await site.look(b"k", None) == ("found", 1)
        clock.now += 0.5
        assert await site.look(b"k", 60.0) == ("missed", None)
        site.cache.store(b"k", 2)
        await site.written()
        assert await site.look(b"k", 60.0) == ("found", 2)

    run(storage, test)


def test_one_computes_and_the_others_wait(storage: Any) -> None:
    async def test(site: Site, _clock: Clock, _storage: Any) -> None:
        first = site.look(b"k")
        others = [site.look(b"k") for _ in range(3)]
        impatient = site.look(b"k", wait=False)
        assert await first == ("missed", None)
        assert await impatient == ("missed", None)
        assert not any(other.done() for other in others)
        site.cache.store(b"k", 5)
        assert await asyncio.gather(*others) == [("found", 5)] * 3

    run(storage, test)


def test_when_one_gives_up_the_next_one_computes(storage: Any) -> None:
    async def test(site: Site, _clock: Clock, _storage: Any) -> None:
        looks = [site.look(b"k") for _ in range(4)]
        assert await looks[0] == ("missed", None)
        for look in looks[1:]:
            site.cache.release(b"k")
            assert await look == ("missed", None)
        site.cache.release(b"k")
        assert await site.look(b"k") == ("missed", None)

    run(storage, test)


def test_a_failing_storage_is_one_that_has_nothing(storage: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def test(site: Site, _clock: Clock, _storage: Any) -> None:
        site.failing = True
        first, second = site.look(b"k"), site.look(b"k")
        assert await first == ("missed", None)
        site.cache.store(b"k", 5)
        assert await second == ("found", 5)
        await site.written()
        site.failing = False
        assert await site.look(b"k") == ("missed", None)

    run(storage, test)
    assert "cannot be read" in caplog.text
    assert "cannot be written" in caplog.text


def one_bit(data: bytes) -> bytes:
    return data[:90] + bytes([data[90] ^ 1]) + data[91:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "garbage": lambda _: b"\x00garbage",
    "cut": lambda data: data[:-7],
    "one bit": one_bit,
    "of an older dfmesh": lambda _: values.to_bytes((b"k", 1000.0, 5)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_computed_again(storage: Any, damage: Callable[[bytes], bytes]) -> None:
    async def test(site: Site, _clock: Clock, storage: Any) -> None:
        await site.look(b"k")
        site.cache.store(b"k", list(range(100)))
        await site.written()
        (entry,) = list(storage.iterdir())
        entry.write_bytes(damage(entry.read_bytes()))
        assert await site.look(b"k") == ("missed", None)
        site.cache.store(b"k", 6)
        await site.written()
        assert await site.look(b"k") == ("found", 6)

    run(storage, test)


def test_a_value_that_cannot_be_stored_is_given_to_those_who_wait(storage: Any) -> None:
    async def test(site: Site, _clock: Clock, storage: Any) -> None:
        first, second = site.look(b"k"), site.look(b"k")
        await first
        value = object()
        site.cache.store(b"k", value)
        assert await second == ("found", value)
        await site.written()
        assert list(storage.iterdir()) == []

    run(storage, test)


@contextmanager
def no_space_left(storage: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every write break off in the middle."""
    write = StoragePath.write_bytes

    def broken(path: Any, data: bytes) -> None:
        write(path, data[: len(data) // 2])
        raise OSError("no space left")

    if isinstance(storage, StoragePath):
        with monkeypatch.context() as patch:
            patch.setattr(StoragePath, "write_bytes", broken)
            yield
        return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_that_breaks_off_leaves_no_entry(storage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(site: Site, _clock: Clock, storage: Any) -> None:
        await site.look(b"k")
        with no_space_left(storage, monkeypatch):
            site.cache.store(b"k", bytes(2_000_000))
            await site.written()
        assert not [entry for entry in storage.iterdir() if str(entry).endswith(".dfmesh")]
        assert not list(storage.iterdir()), "a draft is left"
        assert await site.look(b"k") == ("missed", None)

    run(storage, test)


def test_two_processes_that_write_at_once_leave_one_whole_entry(storage: Any) -> None:
    async def test(site: Site, clock: Clock, storage: Any) -> None:
        others = [Site(storage, clock) for _ in range(3)]
        for other in others:
            await other.look(b"k")
        for number, other in enumerate(others):
            other.cache.store(b"k", [number] * 10_000)
        for other in others:
            await other.written()
            other.threads.close()
        kind, value = await site.look(b"k")
        assert kind == "found"
        assert value in [[number] * 10_000 for number in range(3)]
        assert len(list(storage.iterdir())) == 1

    run(storage, test)


def test_entries_are_for_the_owner_of_the_process_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        storage = storage_directory("file", {}, str(tmp_path / "cache" / "values"))

        async def test(site: Site, _clock: Clock, _storage: Any) -> None:
            await site.look(b"k")
            site.cache.store(b"k", 1)
            await site.written()

        run(storage, test)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "cache").rglob("*")}
    assert modes.pop("values") == 0o700
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert list(modes.values()) == [0o600]


def test_a_value_under_a_rule_is_found_by_those_who_keep_it(storage: Any) -> None:
    async def test(site: Site, _clock: Clock, _storage: Any) -> None:
        def look(*sites: str) -> asyncio.Future[tuple[str, Any]]:
            return site.look(b"k", within=frozenset(sites) if sites else None)

        first, keeping, careless, next_careless = look("a"), look("a"), look(), look()
        assert await first == ("missed", None)
        site.cache.store(b"k", 1, frozenset({"a", "b"}))
        assert await keeping == ("found", 1)
        assert await careless == ("missed", None), "it computes the value for itself"
        site.cache.store(b"k", 2)
        assert await next_careless == ("found", 2)
        await site.written()
        site.cache.store(b"k", 3, frozenset({"a", "b"}))
        await site.written()
        assert [(await look(*sites))[0] for sites in (("a", "b"), ("a", "c"))] == ["found", "missed"]
        site.cache.release(b"k")
        assert await look() == ("missed", None)

    run(storage, test)
