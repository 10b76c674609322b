"""Carrying out calls: adapters of all kinds on the event loop or on worker threads, with retries and time-outs."""

from __future__ import annotations

import asyncio
import contextlib
import io
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dfmesh import values
from dfmesh.engine.adapters import Adapter, AdapterKind, SiteAdapters, ThisCall, describe
from dfmesh.engine.adapters.present_call import in_this_task
from dfmesh.engine.adapters.raised import RemoteRaised
from dfmesh.engine.call_limits import CallLimits, Limits, Permit
from dfmesh.engine.call_lines import CallLines
from dfmesh.engine.call_plan import ASYNC, CallOutcome, CallPlan
from dfmesh.engine.live_input import LiveInput, StreamBrokenError
from dfmesh.engine.messages import Failure
from dfmesh.engine.pulling import END, OpenStream, Pull
from dfmesh.engine.tokens import StreamInput
from dfmesh.engine.unstoppable_tasks import cancel_for_good
from dfmesh.engine.worker_thread import Done, Ended, Work
from dfmesh.engine.worker_threads import STOP_SECONDS, WorkerThreads
from dfmesh.errors import DfmeshError
from dfmesh.processes.forked_child import ending_in_children
from dfmesh.values import PickledObject

if TYPE_CHECKING:
    from dfmesh.engine.isolation import WorkerProcesses

FIRST_BACKOFF = 0.1
"""Seconds before the first retry of a failed call; doubled for each further one."""


class Calls:
    """The calls of one job at one site.

    Attributes:
        lines: What they print and log.
    """

    def __init__(
        self,
        adapters: SiteAdapters,
        threads: WorkerThreads,
        outcome: CallOutcome,
        processes: Callable[[], WorkerProcesses] | None = None,
        limits: CallLimits | None = None,
    ) -> None:
        """Make no call yet.

        Args:
            adapters: What the site offers.
            threads: Where adapters run that block.
            outcome: Gets told what happens.
            processes: Gives where adapters run that are to have processes of their own; None to run them here as well.
            limits: How many calls may compute at the same time; None for any number.
        """
        self._adapters = adapters
        self._limits = limits
        self._threads = threads
        self._processes = processes
        self._outcome = outcome
        self._loop = asyncio.get_running_loop()
        self.lines = CallLines(self._loop, outcome.whose, outcome.said)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._streams: dict[int, OpenStream] = {}
        self._live: dict[int, dict[int, LiveInput]] = {}
        self._limited_tasks: dict[asyncio.Task[tuple[Any, BaseException | None]], str] = {}
        self._working: dict[int, Work] = {}
        # Of calls whose next piece of work waits until it may compute.
        self._permits: dict[int, Permit] = {}
        # What async adapters see of their calls.
        self._in_tasks: dict[int, ThisCall] = {}
        self._stopped: list[Work] = []
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
        adapter = self._loaded(plan)
        if fed or adapter is None or not plan.simple:
            self._begin_task(call, self._attempts(call, plan, arguments))
            return
        try:
            function = adapter.bind(self._unpickled(arguments))
        except Exception as error:
            self._raised(call, error, 0.0)
            return
        if plan.limits is None:
            self._working[call] = self._threads.submit(function, Ended(self, call, plan), plan.operation)
        else:
            ended, seen = Ended(self, call, plan), self._this_call(call, plan)
            self._begin_permitted(call, plan.limits, function, ended, seen)

    def _begin_permitted(
        self, call: int, limits: Limits, function: Callable[[], Any], done: Done, seen: ThisCall
    ) -> None:
        """Run a function of a call on a thread as soon as it may compute."""
        permit = self._permits[call] = Permit(self, limits)

        def begin() -> None:
            del self._permits[call]
            over = partial(_give_back, permit, done)
            self._working[call] = self._threads.submit(function, over, seen.operation, seen, permit)

        permit.ask(begin)

    def start_all(self, first: int, plan: CallPlan, arguments: list[dict[str, Any]]) -> None:
        """Begin several calls.

        Args:
            first: Number of the first one; the others follow it.
            plan: How they are made.
            arguments: Of each, by parameter name.
        """
        functions = self._bound(first, plan, arguments)
        if functions is None:
            for call, given in enumerate(arguments, first):
                self.start(call, plan, given)
            return
        work = self._threads.submit_all(functions, plan.operation)
        self._working.update(zip(range(first, first + len(work)), work, strict=True))

    def _bound(
        self, first: int, plan: CallPlan, arguments: list[dict[str, Any]]
    ) -> list[tuple[Callable[[], Any], Done]] | None:
        """Give what to run for several calls; None if they are to be begun one by one."""
        adapter = self._loaded(plan)
        if adapter is None or not plan.simple or plan.limits is not None:
            return None
        if PickledObject in set(map(type, chain.from_iterable(map(dict.values, arguments)))):
            return None
        try:
            functions = adapter.bind_all(arguments)
        except Exception:
            return None
        return [(function, Ended(self, call, plan)) for call, function in enumerate(functions, first)]

    def _begin_task(self, call: int, work: Coroutine[Any, Any, None]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            if self._tasks.get(call) is task:  # Else the next pull has begun already.
                del self._tasks[call]

        self._tasks[call] = task = self._loop.create_task(work)
        task.add_done_callback(ended)

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

    def pull(self, call: int, count: int = 1) -> None:
        """Let a generator produce its next items, at most `count`. Each is told of as soon as it is there."""
        stream = self._streams.get(call)
        if stream is None:
            return
        items = stream.items
        if isinstance(items, AsyncIterator):
            self._begin_task(call, self._next_async(call, stream, items, count))
        else:
            pull = Pull(self, call, stream, items, count)
            if stream.limits is None:
                self._working[call] = self._threads.submit(pull, pull.ended, stream.operation, stream.call)
            else:
                self._begin_permitted(call, stream.limits, pull, pull.ended, stream.call)
            if stream.timeout is not None:
                self._loop.call_later(stream.timeout, self._watch, call, stream, pull, stream.timeout)

    def _watch(self, call: int, stream: OpenStream, pull: Pull, timeout: float) -> None:
        """Stop a generator whose next item takes too long."""
        work = self._working.get(call)
        if self._streams.get(call) is not stream or (
            call not in self._permits and getattr(work, "function", None) is not pull
        ):
            return  # It is done, or nobody wants it any more.
        left = pull.began + timeout - time.perf_counter()
        if left > 0:
            self._loop.call_later(min(left, timeout), self._watch, call, stream, pull, timeout)
            return
        pull.give_up()
        if self._streams.get(call) is not stream or work is None:
            return
        del self._streams[call], self._working[call]
        stream.dropped = True
        self._stop(work)
        self._end_consumed(call)
        self._raised(call, _too_slow(timeout), timeout)

    def _end_consumed(self, call: int) -> None:
        """End the streams that a stopped call has begun to read: its thread may wait for an item."""
        for stream in self._live.get(call, {}).values():
            if stream.consumed:
                stream.end(_ENDED)

    def drop(self, call: int) -> None:
        """Give up a generator; nothing is told about it any more."""
        self._live.pop(call, None)
        stream = self._streams.pop(call, None)
        if stream is None:
            return
        stream.dropped = True
        self._forget_turn(call)
        pulling = self._tasks.pop(call, None)
        if pulling is not None:
            cancel_for_good(pulling, stream.operation, _UNWANTED)
        elif call not in self._working:  # Else it is closed when the item that is being made is there.
            self._close_stream(call, stream)

    def _close_stream(self, call: int, stream: OpenStream) -> None:
        """Close a generator that waits at a `yield`; what it does then may take some time, but not for ever."""
        items = stream.items
        if isinstance(items, Generator):
            if stream.limits is None:
                self._close_generator(items, stream, None)
            else:
                permit = Permit(self, stream.limits)
                permit.ask(partial(self._close_generator, items, stream, permit))
        elif isinstance(items, _Closable):
            self._begin_task(call, _close(items))

    def _close_generator(self, items: Generator[Any], stream: OpenStream, permit: Permit | None) -> None:
        over = _ignore if permit is None else partial(_give_back, permit, _ignore)
        seen = ThisCall(stream.operation, stream.call.tell)
        work = self._threads.submit(items.close, over, stream.operation, seen, permit)
        self._loop.call_later(STOP_SECONDS, self._threads.stop, work, "its stream was closed")

    def _forget_turn(self, call: int) -> None:
        permit = self._permits.pop(call, None)
        if permit is not None:
            permit.give_back()

    def say(self, call: int, source: str, logger: str, text: str) -> None:
        """A call prints or logs; on any thread."""
        self.lines.say(call, source, logger, text)

    def flush_lines(self) -> None:
        """Send what calls have said; none goes on."""
        self.lines.flush(unfinished=True)

    def _this_call(self, call: int, plan: CallPlan) -> ThisCall:
        return ThisCall(plan.operation, partial(self.lines.say, call))

    def close(self) -> None:
        """Give up all calls, and stop those that go on; nothing is told about them any more."""
        self.lines.close()
        self._closed = True
        for stream_input in [item for items in self._live.values() for item in items.values()]:
            stream_input.end(_ENDED)
        for waiting in list(self._permits):
            self._forget_turn(waiting)
        for work in self._working.values():
            self._stop(work)
        for call, task in self._tasks.items():
            cancel_for_good(task, self._in_tasks[call].operation if call in self._in_tasks else "", _JOB_ENDED)
        for limited, operation in self._limited_tasks.items():
            cancel_for_good(limited, operation, _JOB_ENDED)
        for seen in self._in_tasks.values():
            seen.cancel(_JOB_ENDED, self._on_own_thread)
        for call, stream in self._streams.items():
            if call not in self._working and call not in self._tasks:
                self._close_stream(call, stream)
        self._streams.clear()
        self._working.clear()

    def _stop(self, work: Work) -> None:
        self._threads.stop(work, _JOB_ENDED if self._closed else _TOO_LONG)
        if self._closed:
            self._stopped.append(work)

    async def ended(self) -> None:
        """Wait, after `close`, until nothing goes on any more, which may take for ever."""
        while tasks := [*self._tasks.values(), *self._limited_tasks]:
            await asyncio.wait(tasks)
        for work in self._stopped:
            await self._threads.end_of(work)

    def _on_own_thread(self, function: Callable[[], None]) -> None:
        self._threads.submit(function, _ignore)

    async def _attempts(self, call: int, plan: CallPlan, arguments: dict[str, Any]) -> None:
        backoff = FIRST_BACKOFF
        for attempt in range(plan.retries + 1):
            started = time.perf_counter()
            try:
                if self._processes_for(plan) is None:
                    await self._adapter(plan)
                given = await self._with_streams(call, plan, arguments)
                permit = await self._permit(call, plan)
                started = time.perf_counter()  # What it had to wait for is not what it costs.
                value = await self._limited(call, plan, given, permit)
            except asyncio.CancelledError as error:
                if self._closed:
                    raise
                failure: BaseException = error  # The adapter cancelled itself.
            except BaseException as error:
                failure = error
            else:
                self.call_ended(call, plan, value, None, time.perf_counter() - started)
                return
            if attempt == plan.retries or self._cannot_repeat(call, failure):
                self.call_ended(call, plan, None, failure, time.perf_counter() - started, calls=attempt + 1)
            else:
                await asyncio.sleep(backoff)
                backoff *= 2

    async def _with_streams(self, call: int, plan: CallPlan, arguments: dict[str, Any]) -> dict[str, Any]:
        """Put what the adapter takes in place of the streams: iterators, or lists once they are complete."""
        live = self._live.get(call)
        if live is None:
            return arguments
        is_async = False
        processes = self._processes_for(plan)
        if processes is None:
            adapter = await self._adapter(plan)
            read_live = {name for name in arguments if adapter.streams_into(name)}
            is_async = adapter.kind in ASYNC
        else:
            read_live = {*await processes.streams_into(plan.operation, plan.provider)}
        ready = dict(arguments)
        for name, item in arguments.items():
            if type(item) is not StreamInput:
                continue
            stream = live[item.index]
            if name not in read_live:
                ready[name] = await stream.gather()
            elif processes is not None:
                ready[name] = stream
            elif is_async:
                ready[name] = stream.iterate_async()
            else:
                ready[name] = stream.iterate()
        return ready

    def _processes_for(self, plan: CallPlan) -> WorkerProcesses | None:
        if self._processes is None or not self._adapters.isolated(plan.operation, plan.provider):
            return None
        return self._processes()

    async def _permit(self, call: int, plan: CallPlan) -> Permit | None:
        """Wait until a call may compute, and give its permit for that; None if it needs none."""
        live = self._live.get(call, {})
        if plan.adapter is None and self._limits is not None:
            spec = self._adapters.isolated(plan.operation, plan.provider)
            # What waits for items in another process does not say so, and must not keep others from making them.
            plan.limits = None if spec is None else self._limits.of(spec, blocks=True)
            if live:
                return None
        if plan.limits is None:
            return None
        permit = Permit(self, plan.limits)
        for stream in live.values():
            stream.permit = permit
        await permit.asked()
        return permit

    def _loaded(self, plan: CallPlan) -> Adapter | None:
        """Give the adapter if it runs here and this job, or an earlier one, has loaded it."""
        if plan.adapter is None:
            adapter = self._adapters.loaded(plan.operation, plan.provider)
            if adapter is not None and self._processes_for(plan) is None:
                plan.load(adapter, self._limits)
        return plan.adapter

    def _cannot_repeat(self, call: int, failure: BaseException) -> bool:
        consumed = any(stream.consumed for stream in self._live.get(call, {}).values())
        return consumed or isinstance(failure, StreamBrokenError)

    async def _adapter(self, plan: CallPlan) -> Adapter:
        if plan.adapter is not None:
            return plan.adapter
        # Loading serves all calls: it is not stopped with the one that needed it first.
        started = time.perf_counter()
        found = await self._on_thread(lambda: self._adapters.find(plan.operation, plan.provider), "")
        plan.loading = plan.loading or time.perf_counter() - started
        return plan.load(found, self._limits)

    async def _limited(self, call: int, plan: CallPlan, arguments: dict[str, Any], permit: Permit | None) -> Any:
        attempt = self._attempt(call, plan, arguments, permit)
        if plan.timeout is None:
            try:
                return await attempt
            finally:
                _over(permit)
        task = self._apart(attempt, plan.operation, permit)
        done, _ = await asyncio.wait({task}, timeout=plan.timeout)
        if not done:
            cancel_for_good(task, plan.operation, _TOO_LONG)
            if call in self._in_tasks:
                self._in_tasks.pop(call).cancel(_TOO_LONG, self._on_own_thread)
            self._end_consumed(call)
            raise CallTimeoutError(f"the call took longer than its timeout of {plan.timeout} s")
        value, error = task.result()
        if error is not None:
            raise error
        return value

    def _apart(
        self, work: Coroutine[Any, Any, Any], operation: str, permit: Permit | None
    ) -> asyncio.Task[tuple[Any, BaseException | None]]:
        """Begin a task of its own: an adapter that does not listen to its cancellation must not hold up a time-out."""
        task = self._loop.create_task(_captured(work))
        self._limited_tasks[task] = operation

        def ended(task: asyncio.Task[tuple[Any, BaseException | None]]) -> None:
            self._limited_tasks.pop(task, None)
            work.close()  # It never began if the task was cancelled at once.
            _over(permit)

        task.add_done_callback(ended)
        return task

    async def _attempt(self, call: int, plan: CallPlan, arguments: dict[str, Any], permit: Permit | None) -> Any:
        processes = self._processes_for(plan)
        if processes is not None:
            said = partial(self.lines.add, call)
            return await processes.call(plan.operation, plan.provider, arguments, said)
        adapter = await self._adapter(plan)
        function = adapter.bind(self._unpickled(arguments))
        kind = adapter.kind
        if kind in ASYNC:
            self._in_tasks[call] = seen = self._this_call(call, plan)
            in_this_task.set(seen)
        if kind is AdapterKind.COROUTINE:
            return values.take_over([await ending_in_children(function())])
        if kind is AdapterKind.ASYNC_GENERATOR:
            result = function()
        else:
            result = await self._on_thread(function, plan.operation, self._this_call(call, plan), permit)
        if kind in _STREAMING and not isinstance(result, Iterator | AsyncIterator):
            return iter(
                result.value if isinstance(result, values.Private) else result
            )  # Annotated as an iterator, and an iterable came.
        return result

    def _on_thread(
        self,
        function: Callable[[], Any],
        operation: str,
        seen: ThisCall | None = None,
        permit: Permit | None = None,
    ) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        if permit is not None:
            permit.lent = True

        def done(value: Any, error: BaseException | None, _seconds: float) -> None:
            if permit is not None:
                permit.give_back()
            if future.done():
                return
            if isinstance(error, StopIteration | SystemExit | KeyboardInterrupt):
                error = _Escaped(error)  # These cannot be set on a future, or would end the loop.
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        work = self._threads.submit(function, done, operation, seen, permit)

        def ended(future: asyncio.Future[Any]) -> None:
            if future.cancelled():
                self._stop(work)

        future.add_done_callback(ended)
        return future

    def call_ended(
        self, call: int, plan: CallPlan, value: Any, error: BaseException | None, seconds: float, calls: int = 1
    ) -> None:
        """A call has ended with a value, or with an exception, which `calls` calls have raised."""
        self._working.pop(call, None)
        seen = self._in_tasks.pop(call, None)
        if self._closed:
            if isinstance(value, _STREAMS):
                self._close_stream(call, self._open_stream(call, plan, value, seen))
            return
        if error is not None:
            self._raised(call, error, seconds, calls)
        elif isinstance(value, _STREAMS) and not isinstance(value, io.IOBase):  # An open file is no stream of lines.
            self._streams[call] = self._open_stream(call, plan, value, seen)
            self._outcome.streams(call)
        else:
            self._live.pop(call, None)
            self._outcome.returned(call, value, seconds)

    def _open_stream(
        self, call: int, plan: CallPlan, items: Iterator[Any] | AsyncIterator[Any], seen: ThisCall | None
    ) -> OpenStream:
        # As in `_permit`: in another process it may wait for items without saying so.
        limits = None if plan.adapter is None and call in self._live else plan.limits
        return OpenStream(items, seen or self._this_call(call, plan), limits, plan.timeout)

    def calls_ended(self, ends: list[Ended], given: list[Any], seconds: list[float]) -> None:
        """Calls have ended with values."""
        if self._closed or self._live or self._in_tasks or not values.is_unchanging(given):
            for end, value, duration in zip(ends, given, seconds, strict=True):
                end(value, None, duration)
            return
        calls = [end.call for end in ends]
        for call in calls:
            self._working.pop(call, None)
        self._outcome.all_returned(calls, given, seconds)

    def _raised(self, call: int, error: BaseException, seconds: float, calls: int = 1) -> None:
        self._live.pop(call, None)
        if isinstance(error, StreamBrokenError):
            self._outcome.broken(call, error.failure, seconds)
            return
        if isinstance(error, RemoteRaised):
            self._outcome.raised(call, error.raised.after_calls(calls), seconds)
            return
        if isinstance(error, _Escaped):
            error = error.error
        self._outcome.raised(call, describe(error, self._adapters.own_code).after_calls(calls), seconds)

    async def _next_async(self, call: int, stream: OpenStream, items: AsyncIterator[Any], count: int) -> None:
        in_this_task.set(stream.call)
        self._in_tasks[call] = stream.call
        value: Any = END
        failure: BaseException | None = None
        try:
            for left in range(count - 1, -1, -1):
                permit = await self._item_permit(call, stream)
                started = time.perf_counter()
                value = values.take_over([await self._next_item(call, stream, items, permit)])
                if left == 0 or value is END or self._closed or self._streams.get(call) is not stream:
                    break
                self._outcome.items(call, [value], time.perf_counter() - started, more=True)
                value = END
        except asyncio.CancelledError as error:
            if self._closed:
                raise
            failure = error
        except BaseException as error:
            failure = error
        finally:
            self._in_tasks.pop(call, None)
        self._tasks.pop(call, None)  # The next pull may begin while this task winds up.
        self.pulled(call, stream, [value], failure, time.perf_counter() - started)

    async def _item_permit(self, call: int, stream: OpenStream) -> Permit | None:
        if stream.limits is None:
            return None
        permit = Permit(self, stream.limits)
        for live in self._live.get(call, {}).values():
            live.permit = permit
        await permit.asked()
        return permit

    async def _next_item(self, call: int, stream: OpenStream, items: AsyncIterator[Any], permit: Permit | None) -> Any:
        """Give the next item of an async generator, or `END`."""
        if stream.timeout is None:
            try:
                return await ending_in_children(anext(items, END))
            finally:
                _over(permit)
        task = self._apart(_next(items), stream.operation, permit)
        try:
            done, _ = await asyncio.wait({task}, timeout=stream.timeout)
        except asyncio.CancelledError:
            cancel_for_good(task, stream.operation, _UNWANTED)
            raise
        if not done:
            cancel_for_good(task, stream.operation, _TOO_LONG)
            stream.call.cancel(_TOO_LONG, self._on_own_thread)
            self._end_consumed(call)
            raise _too_slow(stream.timeout)
        value, error = task.result()
        if error is not None:
            raise error
        return value

    def hand_over(self, done: Done) -> None:
        """Call something on the event loop; from a thread."""
        self._threads.hand_over(done, None, 0.0)

    def produced(self, call: int, stream: OpenStream, given: list[Any], seconds: float) -> None:
        """A generator has produced items, and goes on with those that it was asked for."""
        if not self._closed and self._streams.get(call) is stream:
            self._outcome.items(call, given, seconds, more=True)

    def pulled(
        self, call: int, stream: OpenStream, given: list[Any], error: BaseException | None, seconds: float
    ) -> None:
        """A generator has done what it was asked for, the last items being these, or has ended, or raised."""
        self._working.pop(call, None)
        if self._closed or self._streams.get(call) is not stream:  # Dropped meanwhile.
            self._close_stream(call, stream)
            return
        over = error is not None or given[-1] is END
        items = [item for item in given if item is not END]
        if items:
            self._outcome.items(call, items, seconds, more=over)
        if not over or self._streams.get(call) is not stream:
            return
        self._streams.pop(call, None)
        if error is not None:
            self._raised(call, error, 0.0 if items else seconds)
        else:
            self._live.pop(call, None)
            self._outcome.exhausted(call)


class PickleRefusedError(DfmeshError):
    """A pickled object was given to an adapter of a site that takes none."""


class CallTimeoutError(DfmeshError):
    """A call took longer than its `timeout`."""


class _Escaped(Exception):  # noqa: N818 - a wrapper, not an error of its own
    def __init__(self, error: BaseException) -> None:
        self.error = error


_JOB_ENDED = "its job has ended"
_TOO_LONG = "it took longer than its timeout"
_UNWANTED = "nobody wants more of its stream"
_ENDED = Failure("", "", "", (), "", "Cancelled", "the call has ended")

_STREAMING = (AdapterKind.GENERATOR, AdapterKind.ASYNC_GENERATOR)

_STREAMS = (Iterator, AsyncIterator)
"""Values that are streams whoever returns them: nothing else could be done with one that has to be sent."""


@runtime_checkable
class _Closable(Protocol):
    """An async generator, or the stream of one in another process."""

    async def aclose(self) -> None: ...


async def _close(stream: _Closable) -> None:
    with contextlib.suppress(Exception):  # Nobody waits for what a generator does when it is closed.
        await stream.aclose()


async def _next(items: AsyncIterator[Any]) -> Any:
    return await ending_in_children(anext(items, END))


async def _captured(work: Coroutine[Any, Any, Any]) -> tuple[Any, BaseException | None]:
    try:
        return await work, None
    except BaseException as error:  # SystemExit would end the event loop if it left a task.
        return None, error


def _give_back(permit: Permit, done: Done, value: Any, error: BaseException | None, seconds: float) -> None:
    permit.give_back()
    done(value, error, seconds)


def _over(permit: Permit | None) -> None:
    """Give back a permit at the end of a call, unless its code goes on, on a thread."""
    if permit is not None and not permit.lent:
        permit.give_back()


def _too_slow(timeout: float) -> CallTimeoutError:
    return CallTimeoutError(f"its next item took longer than the timeout of {timeout} s")


def _ignore(_value: Any, _error: BaseException | None, _seconds: float) -> None:
    return
