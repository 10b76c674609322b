"""The worker processes of a site: started on demand, kept warm, replaced when they die."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections import defaultdict
from functools import partial
from typing import Any

from dfmesh.engine.adapters import Raised, SiteAdapters
from dfmesh.engine.adapters.raised import RemoteRaised
from dfmesh.engine.call_lines import TakeLines
from dfmesh.engine.isolation import messages
from dfmesh.engine.isolation.channel import Undecoded
from dfmesh.engine.isolation.remote_call import RemoteCall, RemoteStream
from dfmesh.engine.isolation.worker_process import AdapterProcessError, WorkerProcess
from dfmesh.engine.live_input import LiveInput, StreamBrokenError
from dfmesh.engine.worker_threads import WorkerThreads

IDLE_SECONDS = 60.0
"""Time after which a worker ends that has nothing to do."""

LEAST_AT_ONCE = 4
"""Calls that run at the same time at least in a site without `capacity`; more on a machine with more cores."""

MOST_PROCESSES = 128
"""Worker processes of a site, with those that do not compute: their stream waits, or they wait for one."""

PROCESSES_OF_A_CALL = 3
"""Processes that a call of an idempotent operation may take down, one after the other."""

_CLOSE_SECONDS = 3.0

_log = logging.getLogger("dfmesh.engine")

_Key = tuple[str | None, str, str]


class WorkerProcesses:
    """Carries out calls of adapters with `isolation: process`. To be used on one event loop.

    Each adapter class (with the provider and the arguments of its constructor) has its own workers, so a worker makes
    its object once, as the site would, and uses it again.
    """

    def __init__(self, adapters: SiteAdapters, threads: WorkerThreads) -> None:
        """Start no process yet.

        Args:
            adapters: What the site offers.
            threads: Where an adapter is loaded here, if what it returns cannot be read otherwise.
        """
        self._adapters = adapters
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        at_once = adapters.capacity or max(LEAST_AT_ONCE, os.cpu_count() or 1)
        self._slots = asyncio.Semaphore(at_once)
        self._workers: dict[WorkerProcess, _Key] = {}
        self._idle: defaultdict[_Key, dict[WorkerProcess, asyncio.TimerHandle]] = defaultdict(dict)
        self._read_live: dict[tuple[str, str | None], frozenset[str]] = {}
        self._giving_up: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def processes(self) -> list[int]:
        """Ids of the processes that there are."""
        return [worker.pid for worker in self._workers]

    async def streams_into(self, operation: str, provider: str | None) -> frozenset[str]:
        """Tell which parameters the adapter of an operation reads as streams.

        Args:
            operation: Name of the operation.
            provider: Provider in the site; None for the site's own interface.

        Raises:
            RemoteRaised: the adapter cannot be loaded.
            AdapterProcessError: its process ended.
        """
        found = self._read_live.get((operation, provider))
        if found is not None:
            return found
        call = RemoteCall(self._take(operation, provider))
        try:
            word, value = await call.ask(messages.Load(operation, provider))
        except BaseException:
            self._give_up(call)
            raise
        loaded: frozenset[str] = self._result(call, word, value)
        self._read_live[operation, provider] = loaded
        return loaded

    async def call(
        self, operation: str, provider: str | None, arguments: dict[str, Any], said: TakeLines | None = None
    ) -> Any:
        """Carry out a call.

        Args:
            operation: Name of the operation.
            provider: Provider in the site; None for the site's own interface.
            arguments: By parameter name; a `LiveInput` is handed over item by item.
            said: Takes what the call prints and logs; None if nobody does.

        Returns:
            Its value; a `RemoteStream` if the adapter gave a generator.

        Raises:
            RemoteRaised: the adapter did.
            StreamBrokenError: a stream that it read broke.
            AdapterProcessError: its process ended, or there are too many.
            ValueDecodingError: it returned an instance of a class that the site does not know.
        """
        # A call that waits for a stream has no slot, so that what it waits for can have one.
        fed = any(type(item) is LiveInput for item in arguments.values())
        if fed:
            return await self._answered(operation, provider, arguments, said)
        async with self._slots:
            if self._adapters.is_idempotent(operation, provider):
                return await self._repeated(operation, provider, arguments, said)
            return await self._answered(operation, provider, arguments, said)

    async def _repeated(
        self, operation: str, provider: str | None, arguments: dict[str, Any], said: TakeLines | None
    ) -> Any:
        """Carry out a call that may run again, as when its site died, if its process ends before it answers."""
        for _ in range(PROCESSES_OF_A_CALL - 1):
            try:
                return await self._answered(operation, provider, arguments, said)
            except AdapterProcessError as error:
                if not error.during_call:
                    raise
                _log.warning("%s is called again, since it is idempotent: %s", operation, error)
        try:
            return await self._answered(operation, provider, arguments, said)
        except AdapterProcessError as error:
            if not error.during_call:
                raise
            count = f"; it was called again each time, and this was process {PROCESSES_OF_A_CALL}"
            raise AdapterProcessError(f"{error}{count}", during_call=True) from None

    async def _answered(
        self, operation: str, provider: str | None, arguments: dict[str, Any], said: TakeLines | None
    ) -> Any:
        call = RemoteCall(self._take(operation, provider), said)
        try:
            word, value = await call.start(operation, provider, arguments)
            if isinstance(value, Undecoded):
                value = await self._decoded(operation, provider, value)
        except BaseException:
            self._give_up(call)
            raise
        if isinstance(word, messages.Streams):
            return RemoteStream(call, partial(self._decoded, operation, provider), self._result, self._give_up)
        return self._result(call, word, value)

    async def _decoded(self, operation: str, provider: str | None, value: Undecoded) -> Any:
        """Decode a value after loading its adapter in the site, too: its modules may have classes to be known here.

        Raises:
            ValueDecodingError: as `values.unpack`.
        """
        loaded: asyncio.Future[None] = self._loop.create_future()

        def done(_value: Any, _error: BaseException | None, _seconds: float) -> None:
            if not loaded.done():
                loaded.set_result(None)

        self._threads.submit(lambda: self._adapters.find(operation, provider), done)
        await loaded
        return value.decode()

    def _result(self, call: RemoteCall, word: Any, value: Any) -> Any:
        """Make of an answer what it means; unless that is an item, the call is over and its worker free."""
        if isinstance(word, messages.Item):
            return value
        self._free(call)
        match word:
            case messages.Returned():
                return value
            case messages.Loaded(read_live=read_live):
                return frozenset(read_live)
            case messages.RaisedThere(kind, message, traceback, raised_at, caused_by):
                raise RemoteRaised(Raised(kind, message, traceback, raised_at, caused_by))
            case messages.Broken(failure=failure):
                raise StreamBrokenError(failure)
            case messages.Exhausted():
                raise StopAsyncIteration
            case _:
                raise AdapterProcessError(f"the process of its adapter answered {type(word).__name__}")

    # Workers

    def _take(self, operation: str, provider: str | None) -> WorkerProcess:
        key = self._key(operation, provider)
        idle = self._idle[key]
        while idle:
            worker, timer = idle.popitem()
            timer.cancel()
            if worker.alive:
                return worker
        if self._closed:
            raise AdapterProcessError("the site is being stopped")
        if len(self._workers) >= MOST_PROCESSES:
            raise AdapterProcessError(f"the site has {MOST_PROCESSES} processes for adapters, all of which are in use")
        worker = WorkerProcess(self._adapters.config.path, self._adapters.site_name, self._gone)
        self._workers[worker] = key
        return worker

    def _key(self, operation: str, provider: str | None) -> _Key:
        spec = self._adapters.config.adapter(self._adapters.site_name, operation, provider)
        return provider, spec.path, json.dumps(spec.constructor_args, sort_keys=True)

    def _free(self, call: RemoteCall) -> None:
        call.leave()
        worker = call.worker
        key = self._workers.get(worker)
        if key is not None and not self._closed:
            self._idle[key][worker] = self._loop.call_later(IDLE_SECONDS, self._expire, key, worker)

    def _expire(self, key: _Key, worker: WorkerProcess) -> None:
        if self._idle[key].pop(worker, None) is not None:
            worker.kill()

    def _give_up(self, call: RemoteCall) -> None:
        """Stop a call, and its worker if that does not listen."""
        task = self._loop.create_task(self._stop(call))
        self._giving_up.add(task)
        task.add_done_callback(self._giving_up.discard)

    async def _stop(self, call: RemoteCall) -> None:
        if not call.worker.alive:
            call.leave()
        elif await call.stop():
            self._free(call)
        else:
            await call.worker.terminate()

    def _gone(self, worker: WorkerProcess) -> None:
        key = self._workers.pop(worker)
        timer = self._idle[key].pop(worker, None)
        if timer is not None:
            timer.cancel()

    async def close(self) -> None:
        """End all workers at once."""
        self._closed = True
        workers = list(self._workers)
        for worker in workers:
            worker.kill()
        for idle in self._idle.values():
            for timer in idle.values():
                timer.cancel()
            idle.clear()
        if workers:
            endings = [self._loop.create_task(worker.ended()) for worker in workers]
            await asyncio.wait(endings, timeout=_CLOSE_SECONDS)
        for task in self._giving_up:
            task.cancel()
