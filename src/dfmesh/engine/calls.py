"""Carrying out calls: adapters of all kinds on the event loop or on worker threads, with retries and time-outs."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from dfmesh import values
from dfmesh.engine.adapters import Adapter, AdapterKind, SiteAdapters, ThisCall, describe
from dfmesh.engine.adapters.present_call import in_this_task
from dfmesh.engine.adapters.raised import RemoteRaised
from dfmesh.engine.call_limits import CallLimits, Permit
from dfmesh.engine.call_lines import CallLines
from dfmesh.engine.call_plan import ASYNC, BRIEF, NOBODY, CallOutcome, CallPlan
from dfmesh.engine.call_run import CallRun
from dfmesh.engine.call_work import TOO_LONG, CallTimeoutError, CallWork, EscapedError, over
from dfmesh.engine.failed_iterations import with_failed_iteration
from dfmesh.engine.generators import Generators, is_stream
from dfmesh.engine.live_input import StreamBrokenError
from dfmesh.engine.live_inputs import LiveInputs
from dfmesh.engine.message_parts import Failure
from dfmesh.engine.pulling import OpenStream
from dfmesh.engine.tokens import StreamInput
from dfmesh.engine.unstoppable_tasks import cancel_for_good
from dfmesh.engine.worker_thread import Done, Ended, Work
from dfmesh.engine.worker_threads import WorkerThreads
from dfmesh.errors import DfmeshError
from dfmesh.processes.forked_child import ending_in_children
from dfmesh.values import PickledObject

if TYPE_CHECKING:
    from dfmesh.engine.isolation import WorkerProcesses

FIRST_BACKOFF = 0.1
"""Seconds before the first retry of a failed call; doubled for each further one."""


_MAKING_LINES = threading.RLock()  # A finaliser that prints may run while it is held.


class Calls:
    """The calls of one job at one site."""

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
        self._work = CallWork(threads)
        self._inputs = LiveInputs(self._taken, threads.waiting)
        self._made_generators: Generators | None = None  # Made when the first call returns one.
        self._made_lines: CallLines | None = None  # Made when a call says something.

    def start(self, call: int, plan: CallPlan, arguments: dict[str, Any], fed: tuple[int, ...] = ()) -> None:
        """Begin a call.

        Args:
            call: Its number.
            plan: How it is made.
            arguments: By parameter name; a `StreamInput` stands for a stream that `feed` feeds.
            fed: Inputs that are such streams.
        """
        if fed:
            self._inputs.open(call, fed)
        adapter = self._loaded(plan)
        if fed or adapter is None or not plan.simple:
            self._work.begin_task(call, self._attempts(call, plan, arguments))
            return
        try:
            function = adapter.bind(self._unpickled(arguments))
        except Exception as error:
            self._raised(call, error, 0.0, given=arguments)
            return
        self._begin(call, plan, function)

    def _begin(self, call: int, plan: CallPlan, function: Callable[[], Any]) -> None:
        """Have a function run on a thread for a call, as soon as it may compute."""
        if plan.limits is None:
            self._work.working[call] = self._threads.submit(function, Ended(self, call, plan), plan.operation)
        else:
            ended, seen = Ended(self, call, plan), self._this_call(call, plan)
            self._work.begin(call, plan.limits, function, ended, seen)

    def start_all(self, first: int, plan: CallPlan, arguments: list[dict[str, Any]]) -> None:
        """Begin several calls.

        Args:
            first: Number of the first one; the others follow it.
            plan: How they are made.
            arguments: Of each, by parameter name.
        """
        adapter = self._loaded(plan)
        keywords = None if adapter is None else self._bound(plan, adapter, arguments)
        if adapter is None or keywords is None:
            for call, given in enumerate(arguments, first):
                self.start(call, plan, given)
        elif plan.brief:
            self._work.begin_run(CallRun(self, plan, first, adapter.call, keywords), plan.limits)
        elif plan.limits is not None:
            for call, given in enumerate(keywords, first):
                self._begin(call, plan, partial(adapter.call, **given))
        else:
            functions: list[tuple[Callable[[], Any], Done]] = [
                (partial(adapter.call, **given), Ended(self, call, plan)) for call, given in enumerate(keywords, first)
            ]
            work = self._threads.submit_all(functions, plan.operation)
            self._work.working.update(zip(range(first, first + len(work)), work, strict=True))

    def _bound(self, plan: CallPlan, adapter: Adapter, arguments: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
        """Give the keywords of several calls; None if they are to be begun one by one."""
        if not plan.simple:
            return None
        if PickledObject in set(map(type, chain.from_iterable(map(dict.values, arguments)))):
            return None
        try:
            return adapter.bind_all(arguments)
        except Exception:
            return None

    def _unpickled(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Put the objects in place of pickled arguments, if the site's owner allows that.

        Raises:
            PickleRefusedError: the owner does not.
        """
        if PickledObject not in map(type, arguments.values()):
            return arguments
        if not self._adapters.accepts_pickle:
            site = self._adapters.site_name
            raise PickleRefusedError(
                f"site {site!r} takes no pickled objects; its owner could set accepts_pickle: true"
            )
        return {name: item.load() if type(item) is PickledObject else item for name, item in arguments.items()}

    def feed(self, call: int, index: int, value: Any) -> None:
        """Give an item of a stream to a call."""
        self._inputs.put(call, index, value)

    def feed_end(self, call: int, index: int, failure: Failure | None) -> None:
        """Tell a call that a stream has no more items."""
        self._inputs.end(call, index, failure)

    def _taken(self, call: int, index: int, count: int) -> None:
        if not self._work.closed:
            self._outcome.taken(call, index, count)

    @property
    def _generators(self) -> Generators:
        if self._made_generators is None:
            self._made_generators = Generators(self._work, self._inputs, self._outcome, self._raised)
        return self._made_generators

    def pull(self, call: int, count: int = 1) -> None:
        """Let a generator produce its next items, at most `count`. Each is told of as soon as it is there."""
        self._generators.pull(call, count)

    def drop(self, call: int) -> None:
        """Give up a generator; nothing is told about it any more."""
        self._generators.drop(call)

    def say(self, call: int, source: str, logger: str, text: str) -> None:
        """A call prints or logs; on any thread."""
        self.lines.say(call, source, logger, text)

    @property
    def lines(self) -> CallLines:
        """What calls print and log; on any thread."""
        if self._made_lines is None:
            with _MAKING_LINES:
                if self._made_lines is None:
                    outcome = self._outcome
                    self._made_lines = CallLines(self._work.loop, outcome.whose, outcome.said)
        return self._made_lines

    def flush_lines(self, *, unfinished: bool = True) -> None:
        """Send what calls have said, and of those that go on what has not come to the end of a line, if asked to."""
        if self._made_lines is not None:
            self._made_lines.flush(unfinished=unfinished)

    def _this_call(self, call: int, plan: CallPlan) -> ThisCall:
        return ThisCall(plan.operation, partial(self.say, call))

    def close(self) -> None:
        """Give up all calls, and stop those that go on; nothing is told about them any more."""
        if self._made_lines is not None:
            self._made_lines.close()
        self._inputs.close()
        self._work.close()
        if self._made_generators is not None:
            self._made_generators.close()
        self._work.working.clear()
        self._work.runs.clear()
        self._outcome = NOBODY  # Else we and who made us would wait for the garbage collector.

    async def ended(self) -> None:
        """Wait, after `close`, until nothing goes on any more, which may take for ever."""
        await self._work.ended()

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
                if self._work.closed:
                    raise
                failure: BaseException = error  # The adapter cancelled itself.
            except BaseException as error:
                failure = error
            else:
                self.call_ended(call, plan, value, None, time.perf_counter() - started)
                return
            if attempt == plan.retries or self._cannot_repeat(call, failure):
                seconds = time.perf_counter() - started
                self.call_ended(call, plan, None, failure, seconds, arguments, calls=attempt + 1)
            else:
                await asyncio.sleep(backoff)
                backoff *= 2

    async def _with_streams(self, call: int, plan: CallPlan, arguments: dict[str, Any]) -> dict[str, Any]:
        """Put what the adapter takes in place of the streams: iterators, or lists once they are complete."""
        if call not in self._inputs:
            return arguments
        live = self._inputs.of(call)
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
        if plan.adapter is None and self._limits is not None:
            spec = self._adapters.isolated(plan.operation, plan.provider)
            # What waits for items in another process does not say so, and must not keep others from making them.
            plan.limits = None if spec is None else self._limits.of(spec, blocks=True)
            if call in self._inputs:
                return None
        if plan.limits is None:
            return None
        permit = Permit(self._work, plan.limits)
        self._inputs.let_wait(call, permit)
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
        return self._inputs.is_consumed(call) or isinstance(failure, StreamBrokenError)

    async def _adapter(self, plan: CallPlan) -> Adapter:
        if plan.adapter is not None:
            return plan.adapter
        # Loading serves all calls: it is not stopped with the one that needed it first.
        started = time.perf_counter()
        found = await self._work.on_thread(lambda: self._adapters.find(plan.operation, plan.provider), "")
        plan.loading = plan.loading or time.perf_counter() - started
        return plan.load(found, self._limits)

    async def _limited(self, call: int, plan: CallPlan, arguments: dict[str, Any], permit: Permit | None) -> Any:
        attempt = self._attempt(call, plan, arguments, permit)
        if plan.timeout is None:
            try:
                return await attempt
            finally:
                over(permit)
        task = self._work.apart(attempt, plan.operation, permit)
        done, _ = await asyncio.wait({task}, timeout=plan.timeout)
        if not done:
            cancel_for_good(task, plan.operation, TOO_LONG)
            if call in self._work.in_tasks:
                self._work.in_tasks.pop(call).cancel(TOO_LONG, self._work.on_own_thread)
            self._inputs.end_consumed(call)
            raise CallTimeoutError(f"the call took longer than its timeout of {plan.timeout} s")
        value, error = task.result()
        if error is not None:
            raise error
        return value

    async def _attempt(self, call: int, plan: CallPlan, arguments: dict[str, Any], permit: Permit | None) -> Any:
        processes = self._processes_for(plan)
        if processes is not None:
            said = partial(self.lines.add, call)
            return await processes.call(plan.operation, plan.provider, arguments, said)
        adapter = await self._adapter(plan)
        function = adapter.bind(self._unpickled(arguments))
        kind = adapter.kind
        if kind in ASYNC:
            self._work.in_tasks[call] = seen = self._this_call(call, plan)
            in_this_task.set(seen)
        if kind is AdapterKind.COROUTINE:
            return values.take_over([await ending_in_children(function())])
        if kind is AdapterKind.ASYNC_GENERATOR:
            result = function()
        else:
            result = await self._work.on_thread(function, plan.operation, self._this_call(call, plan), permit)
        if kind in _STREAMING and not isinstance(result, Iterator | AsyncIterator):
            # Annotated as an iterator, and an iterable came.
            return iter(result.value if isinstance(result, values.Private) else result)
        return result

    def call_ended(
        self,
        call: int,
        plan: CallPlan,
        value: Any,
        error: BaseException | None,
        seconds: float,
        given: Mapping[str, Any] | None = None,
        calls: int = 1,
    ) -> None:
        """A call has ended with a value, or with an exception, which `calls` calls have raised."""
        work = self._work.working.pop(call, None)
        seen = self._work.in_tasks.pop(call, None)
        if self._work.closed:
            if is_stream(value):
                self._generators.close_stream(call, self._open_stream(call, plan, value, seen))
            return
        if error is not None:
            if given is None and work is not None and isinstance(work.function, partial):
                given = work.function.keywords
            self._raised(call, error, seconds, calls, given)
        elif is_stream(value) and not isinstance(value, io.IOBase):  # An open file is no stream of lines.
            self._generators.open(call, self._open_stream(call, plan, value, seen))
        else:
            plan.brief = seconds < BRIEF
            self._inputs.forget(call)
            self._outcome.returned(call, value, seconds)

    def _open_stream(
        self, call: int, plan: CallPlan, items: Iterator[Any] | AsyncIterator[Any], seen: ThisCall | None
    ) -> OpenStream:
        # As in `_permit`: in another process it may wait for items without saying so.
        limits = None if plan.adapter is None and call in self._inputs else plan.limits
        return OpenStream(items, seen or self._this_call(call, plan), limits, plan.timeout)

    def calls_ended(self, ends: list[Ended], given: list[Any], seconds: list[float]) -> None:
        """Calls have ended with values."""
        if self._work.closed or self._inputs or self._work.in_tasks or not values.are_settled(given):
            for end, value, duration in zip(ends, given, seconds, strict=True):
                end(value, None, duration)
            return
        ends[0].plan.brief = sum(seconds) < BRIEF * len(seconds)
        calls = [end.call for end in ends]
        for call in calls:
            self._work.working.pop(call, None)
        self._outcome.all_returned(calls, given, seconds)

    def run_ended(self, run: CallRun, first: int, given: list[Any], seconds: list[float]) -> None:
        """Calls of a run have ended with values."""
        if self._work.closed:
            return
        if self._inputs or self._work.in_tasks or not values.are_settled(given):
            for call, (value, duration) in enumerate(zip(given, seconds, strict=True), first):
                self.call_ended(call, run.plan, value, None, duration)
            return
        run.plan.brief = sum(seconds) < BRIEF * len(seconds)
        self._outcome.all_returned(range(first, first + len(given)), given, seconds)

    def run_split(self, run: CallRun, works: dict[int, Work]) -> None:
        """Calls of a run go on as works of their own: one of it blocks."""
        run.plan.brief = False
        if run.permit is None:
            self._work.working.update(works)
        else:
            for call, work in works.items():
                self._begin(call, run.plan, work.function)

    def run_over(self, run: CallRun) -> None:
        """A run is no longer to be stopped."""
        self._work.run_over(run)

    def _raised(
        self, call: int, error: BaseException, seconds: float, calls: int = 1, given: Mapping[str, Any] | None = None
    ) -> None:
        self._inputs.forget(call)
        if isinstance(error, StreamBrokenError):
            self._outcome.broken(call, error.failure, seconds)
            return
        if isinstance(error, EscapedError):
            error = error.error
        if isinstance(error, RemoteRaised):
            raised = error.raised
        else:
            raised = with_failed_iteration(describe(error, self._adapters.own_code), given or {})
        self._outcome.raised(call, raised.after_calls(calls), seconds)


class PickleRefusedError(DfmeshError):
    """A pickled object was given to an adapter of a site that takes none."""

    shows_no_value = True


_STREAMING = (AdapterKind.GENERATOR, AdapterKind.ASYNC_GENERATOR)


__all__ = ["FIRST_BACKOFF", "Calls", "PickleRefusedError"]
