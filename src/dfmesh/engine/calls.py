"""Carrying out calls: adapters of all kinds on the event loop or on worker threads, with retries and time-outs."""

from __future__ import annotations

import asyncio
import contextlib
import io
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from functools import partial
from typing import Any, Protocol

from dfmesh.engine.adapters import Adapter, AdapterKind, Raised, SiteAdapters, describe
from dfmesh.engine.live_input import LiveInput, StreamBrokenError
from dfmesh.engine.messages import Failure
from dfmesh.engine.tokens import StreamInput
from dfmesh.engine.worker_threads import Work, WorkerThreads
from dfmesh.errors import DfmeshError
from dfmesh.values import PickledObject

FIRST_BACKOFF = 0.1
"""Seconds before the first retry of a failed call; doubled for each further one."""


class CallOutcome(Protocol):
    """What happens to the calls of a job; called on the event loop."""

    def returned(self, call: int, value: Any, seconds: float) -> None:
        """The call has ended with a value."""
        ...

    def raised(self, call: int, raised: Raised, seconds: float) -> None:
        """The call, or its generator, has ended with an error."""
        ...

    def streams(self, call: int) -> None:
        """The call has returned a generator."""
        ...

    def broken(self, call: int, failure: Failure, seconds: float) -> None:
        """The call has ended with the error of a stream that it was fed with."""
        ...

    def taken(self, call: int, index: int, count: int) -> None:
        """The call has taken items of a stream that it is fed with."""
        ...

    def item(self, call: int, value: Any, seconds: float) -> None:
        """The generator has produced an item, after it was asked to."""
        ...

    def exhausted(self, call: int) -> None:
        """The generator has no more items."""
        ...


class CallPlan:
    """How the calls of one transition are made.

    Attributes:
        operation: Name of the operation.
        provider: Provider in the site; None for the site's own interface.
        retries: How often a failed call is tried again.
        timeout: Seconds one attempt may take.
        adapter: The adapter, once it was loaded.
        simple: One attempt of a plain function, without a limit: needs no task.
    """

    __slots__ = ("adapter", "operation", "provider", "retries", "simple", "timeout")

    def __init__(self, operation: str, provider: str | None, retries: int, timeout: float | None) -> None:
        self.operation = operation
        self.provider = provider
        self.retries = retries
        self.timeout = timeout
        self.adapter: Adapter | None = None
        self.simple = False

    def load(self, adapter: Adapter) -> Adapter:
        """Note the adapter."""
        self.adapter = adapter
        self.simple = adapter.kind is AdapterKind.FUNCTION and not self.retries and self.timeout is None
        return adapter


class Calls:
    """The calls of one job at one site."""

    def __init__(self, adapters: SiteAdapters, threads: WorkerThreads, outcome: CallOutcome) -> None:
        self._adapters = adapters
        self._threads = threads
        self._outcome = outcome
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._streams: dict[int, Iterator[Any] | AsyncIterator[Any]] = {}
        self._live: dict[int, dict[int, LiveInput]] = {}
        self._limited_tasks: set[asyncio.Task[tuple[Any, BaseException | None]]] = set()
        self._working: dict[int, Work] = {}
        self._closed = False

    def start(self, call: int, plan: CallPlan, arguments: dict[str, Any], fed: tuple[int, ...] = ()) -> None:
        """Begin a call.

        Args:
            call: Its number.
            plan: How it is made.
            arguments: By parameter name; a `StreamInput` stands for a stream that `feed` feeds.
            fed: Inputs that are such streams.
        """
        if fed:
            self._live[call] = {index: self._live_input(call, index) for index in fed}
        adapter = plan.adapter
        if fed or adapter is None or not plan.simple:
            task = asyncio.get_running_loop().create_task(self._attempts(call, plan, arguments))
            self._tasks[call] = task
            task.add_done_callback(lambda _: self._tasks.pop(call, None))
            return
        try:
            function = adapter.bind(self._unpickled(arguments))
        except Exception as error:
            self._raised(call, error, 0.0)
            return
        self._working[call] = self._threads.submit(function, partial(self._ended, call))

    def _unpickled(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Put the objects in place of pickled arguments, if the site's owner allows that.

        Raises:
            PickleRefusedError: the owner does not.
        """
        if not any(type(item) is PickledObject for item in arguments.values()):
            return arguments
        if not self._adapters.accepts_pickle:
            site = self._adapters.site_name
            raise PickleRefusedError(
                f"site {site!r} takes no pickled objects; its owner could set accepts_pickle: true"
            )
        return {name: item.load() if type(item) is PickledObject else item for name, item in arguments.items()}

    def _live_input(self, call: int, index: int) -> LiveInput:
        def taken(count: int) -> None:
            if not self._closed:
                self._outcome.taken(call, index, count)

        return LiveInput(taken, self._threads.waiting)

    def feed(self, call: int, index: int, value: Any) -> None:
        """Give an item of a stream to a call."""
        if call in self._live:
            self._live[call][index].put(value)

    def feed_end(self, call: int, index: int, failure: Failure | None) -> None:
        """Tell a call that a stream has no more items."""
        if call in self._live:
            self._live[call][index].end(failure)

    def pull(self, call: int) -> None:
        """Let a generator produce its next item."""
        stream = self._streams.get(call)
        if isinstance(stream, AsyncIterator):
            self._tasks[call] = task = asyncio.get_running_loop().create_task(self._next_async(call, stream))
            task.add_done_callback(lambda _: self._tasks.pop(call, None))
        elif stream is not None:
            self._working[call] = self._threads.submit(lambda: next(stream, _END), partial(self._next, call))

    def drop(self, call: int) -> None:
        """Give up a generator; nothing is told about it any more."""
        self._live.pop(call, None)
        stream = self._streams.pop(call, None)
        if isinstance(stream, Generator):
            self._threads.submit(stream.close, _ignore)
        elif isinstance(stream, AsyncGenerator):
            pulling = self._tasks.pop(call, None)
            if pulling is not None:
                pulling.cancel()  # That closes it.
            else:
                self._tasks[call] = task = asyncio.get_running_loop().create_task(_close(stream))
                task.add_done_callback(lambda _: self._tasks.pop(call, None))

    def close(self) -> None:
        """Give up all calls; nothing is told about them any more."""
        self._closed = True
        for stream_input in [item for items in self._live.values() for item in items.values()]:
            stream_input.end(Failure("", "", "", (), "", "Cancelled", "the job has ended"))
        for work in self._working.values():
            self._threads.abandon(work)
        self._working.clear()
        for task in [*self._tasks.values(), *self._limited_tasks]:
            task.cancel()
        for stream in self._streams.values():
            if isinstance(stream, Generator):
                self._threads.submit(stream.close, _ignore)
        self._streams.clear()

    async def _attempts(self, call: int, plan: CallPlan, arguments: dict[str, Any]) -> None:
        backoff = FIRST_BACKOFF
        for attempt in range(plan.retries + 1):
            started = time.perf_counter()
            try:
                value = await self._limited(plan, await self._with_streams(call, plan, arguments))
            except asyncio.CancelledError as error:
                if self._closed:
                    raise
                failure: BaseException = error  # The adapter cancelled itself.
            except BaseException as error:
                failure = error
            else:
                self._ended(call, value, None, time.perf_counter() - started)
                return
            if attempt == plan.retries or self._cannot_repeat(call, failure):
                self._ended(call, None, failure, time.perf_counter() - started)
            else:
                await asyncio.sleep(backoff)
                backoff *= 2

    async def _with_streams(self, call: int, plan: CallPlan, arguments: dict[str, Any]) -> dict[str, Any]:
        """Put what the adapter takes in place of the streams: iterators, or lists once they are complete."""
        live = self._live.get(call)
        if live is None:
            return arguments
        adapter = await self._adapter(plan)
        ready = dict(arguments)
        for name, item in arguments.items():
            if type(item) is not StreamInput:
                continue
            stream = live[item.index]
            if not adapter.streams_into(name):
                ready[name] = await stream.gather()
            elif adapter.kind in (AdapterKind.COROUTINE, AdapterKind.ASYNC_GENERATOR):
                ready[name] = stream.iterate_async()
            else:
                ready[name] = stream.iterate()
        return ready

    def _cannot_repeat(self, call: int, failure: BaseException) -> bool:
        consumed = any(stream.consumed for stream in self._live.get(call, {}).values())
        return consumed or isinstance(failure, StreamBrokenError)

    async def _adapter(self, plan: CallPlan) -> Adapter:
        if plan.adapter is not None:
            return plan.adapter
        return plan.load(await self._on_thread(lambda: self._adapters.find(plan.operation, plan.provider)))

    async def _limited(self, plan: CallPlan, arguments: dict[str, Any]) -> Any:
        if plan.timeout is None:
            return await self._attempt(plan, arguments)
        # A task of its own: an adapter that does not listen to its cancellation must not hold up the time-out.
        task = asyncio.get_running_loop().create_task(self._captured(plan, arguments))
        self._limited_tasks.add(task)
        task.add_done_callback(self._limited_tasks.discard)
        done, _ = await asyncio.wait({task}, timeout=plan.timeout)
        if not done:
            task.cancel()
            raise CallTimeoutError(f"the call took longer than its timeout of {plan.timeout} s")
        value, error = task.result()
        if error is not None:
            raise error
        return value

    async def _captured(self, plan: CallPlan, arguments: dict[str, Any]) -> tuple[Any, BaseException | None]:
        try:
            return await self._attempt(plan, arguments), None
        except BaseException as error:  # SystemExit would end the event loop if it left a task.
            return None, error

    async def _attempt(self, plan: CallPlan, arguments: dict[str, Any]) -> Any:
        adapter = await self._adapter(plan)
        function = adapter.bind(self._unpickled(arguments))
        kind = adapter.kind
        if kind is AdapterKind.COROUTINE:
            return await function()
        result = function() if kind is AdapterKind.ASYNC_GENERATOR else await self._on_thread(function)
        if kind in _STREAMING and not isinstance(result, Iterator | AsyncIterator):
            return iter(result)  # Annotated as an iterator, and an iterable came.
        return result

    def _on_thread(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()

        def done(value: Any, error: BaseException | None, _seconds: float) -> None:
            if future.done():
                return
            if isinstance(error, StopIteration | SystemExit | KeyboardInterrupt):
                error = _Escaped(error)  # These cannot be set on a future, or would end the loop.
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        work = self._threads.submit(function, done)
        future.add_done_callback(lambda ended: self._threads.abandon(work) if ended.cancelled() else None)
        return future

    def _ended(self, call: int, value: Any, error: BaseException | None, seconds: float) -> None:
        self._working.pop(call, None)
        if self._closed:
            return
        if error is not None:
            self._raised(call, error, seconds)
        elif isinstance(value, _STREAMS) and not isinstance(value, io.IOBase):  # An open file is no stream of lines.
            self._streams[call] = value
            self._outcome.streams(call)
        else:
            self._live.pop(call, None)
            self._outcome.returned(call, value, seconds)

    def _raised(self, call: int, error: BaseException, seconds: float) -> None:
        self._live.pop(call, None)
        if isinstance(error, StreamBrokenError):
            self._outcome.broken(call, error.failure, seconds)
            return
        if isinstance(error, _Escaped):
            error = error.error
        self._outcome.raised(call, describe(error, self._adapters.own_code), seconds)

    async def _next_async(self, call: int, stream: AsyncIterator[Any]) -> None:
        started = time.perf_counter()
        value: Any = _END
        failure: BaseException | None = None
        try:
            value = await anext(stream, _END)
        except asyncio.CancelledError as error:
            if self._closed:
                raise
            failure = error
        except BaseException as error:
            failure = error
        self._tasks.pop(call, None)  # The next pull may begin while this task winds up.
        self._next(call, value, failure, time.perf_counter() - started)

    def _next(self, call: int, value: Any, error: BaseException | None, seconds: float) -> None:
        self._working.pop(call, None)
        if self._closed:
            return
        stream = self._streams.get(call)
        if stream is None:  # Dropped meanwhile.
            return
        if error is not None:
            self._streams.pop(call, None)
            self._raised(call, error, seconds)
        elif value is _END:
            self._streams.pop(call, None)
            self._live.pop(call, None)
            self._outcome.exhausted(call)
        else:
            self._outcome.item(call, value, seconds)


class PickleRefusedError(DfmeshError):
    """A pickled object was given to an adapter of a site that takes none."""


class CallTimeoutError(DfmeshError):
    """A call took longer than its `timeout`."""


class _Escaped(Exception):  # noqa: N818 - a wrapper, not an error of its own
    def __init__(self, error: BaseException) -> None:
        self.error = error


_END: Any = object()

_STREAMING = (AdapterKind.GENERATOR, AdapterKind.ASYNC_GENERATOR)

_STREAMS = (Iterator, AsyncIterator)
"""Values that are streams whoever returns them: nothing else could be done with one that has to be sent."""


async def _close(stream: AsyncGenerator[Any, None]) -> None:
    with contextlib.suppress(Exception):  # Nobody waits for what a generator does when it is closed.
        await stream.aclose()


def _ignore(_value: Any, _error: BaseException | None, _seconds: float) -> None:
    return
