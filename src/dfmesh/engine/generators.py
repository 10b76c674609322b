"""The generators that the calls of one job have returned: asked for items, given up, closed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from functools import partial
from typing import Any, Protocol, runtime_checkable

from dfmesh import values
from dfmesh.engine.adapters import ThisCall
from dfmesh.engine.adapters.present_call import in_this_task
from dfmesh.engine.call_limits import Permit
from dfmesh.engine.call_plan import CallOutcome
from dfmesh.engine.call_work import TOO_LONG, CallTimeoutError, CallWork, give_back, ignore, over
from dfmesh.engine.live_inputs import LiveInputs
from dfmesh.engine.pulling import END, OpenStream, Pull
from dfmesh.engine.stubborn_calls import STOP_SECONDS
from dfmesh.engine.unstoppable_tasks import cancel_for_good
from dfmesh.engine.worker_thread import Done
from dfmesh.processes.forked_child import ending_in_children

Raise = Callable[[int, BaseException, float], None]
"""Gets call, exception and seconds when a generator has raised."""

UNWANTED = "nobody wants more of its stream"


class Generators:
    """Those of one job at one site."""

    def __init__(self, work: CallWork, inputs: LiveInputs, outcome: CallOutcome, raised: Raise) -> None:
        """Begin with none.

        Args:
            work: What goes on for the calls.
            inputs: What they are fed with.
            outcome: Gets told what happens.
            raised: Gets told of exceptions.
        """
        self._work = work
        self._inputs = inputs
        self._outcome = outcome
        self._raised = raised
        self._streams: dict[int, OpenStream] = {}

    def open(self, call: int, stream: OpenStream) -> None:
        """Take what a call has returned."""
        self._streams[call] = stream
        self._outcome.streams(call)

    def pull(self, call: int, count: int) -> None:
        """Let a generator produce its next items, at most `count`. Each is told of as soon as it is there."""
        stream = self._streams.get(call)
        if stream is None:
            return
        items = stream.items
        if isinstance(items, AsyncIterator):
            self._work.begin_task(call, self._next_async(call, stream, items, count))
            return
        pull = Pull(self, call, stream, items, count)
        self._work.begin(call, stream.limits, pull, pull.ended, stream.call)
        if stream.timeout is not None:
            self._work.loop.call_later(stream.timeout, self._watch, call, stream, pull, stream.timeout)

    def _watch(self, call: int, stream: OpenStream, pull: Pull, timeout: float) -> None:
        """Stop a generator whose next item takes too long."""
        work = self._work.working.get(call)
        goes_on = self._work.waits_for_turn(call) or getattr(work, "function", None) is pull
        if self._streams.get(call) is not stream or not goes_on:
            return  # It is done, or nobody wants it any more.
        left = pull.began + timeout - time.perf_counter()
        if left > 0:
            self._work.loop.call_later(min(left, timeout), self._watch, call, stream, pull, timeout)
            return
        pull.give_up()
        if self._streams.get(call) is not stream or work is None:
            return
        del self._streams[call], self._work.working[call]
        stream.dropped = True
        self._work.stop(work)
        self._inputs.end_consumed(call)
        self._raised(call, _too_slow(timeout), timeout)

    def drop(self, call: int) -> None:
        """Give up a generator; nothing is told about it any more."""
        self._inputs.forget(call)
        stream = self._streams.pop(call, None)
        if stream is None:
            return
        stream.dropped = True
        self._work.forget_turn(call)
        pulling = self._work.tasks.get(call)
        if pulling is not None:
            self._close_after(pulling, call, stream)
            cancel_for_good(pulling, stream.operation, UNWANTED)
        elif call not in self._work.working:  # Else it is closed when the item that is being made is there.
            self.close_stream(call, stream)

    def _close_after(self, pulling: asyncio.Task[None], call: int, stream: OpenStream) -> None:
        # Not by the task itself: one that is cancelled before it has begun never runs.
        pulling.add_done_callback(lambda _: self.close_stream(call, stream))

    def close_stream(self, call: int, stream: OpenStream) -> None:
        """Close a generator that waits at a `yield`; what it does then may take some time, but not for ever."""
        items = stream.items
        if isinstance(items, Generator):
            if stream.limits is None:
                self._close_generator(items, stream, None)
            else:
                permit = Permit(self._work, stream.limits)
                permit.ask(partial(self._close_generator, items, stream, permit))
        elif isinstance(items, _Closable):
            self._work.begin_closing(_close(items), stream.operation)

    def _close_generator(self, items: Generator[Any], stream: OpenStream, permit: Permit | None) -> None:
        done = ignore if permit is None else partial(give_back, permit, ignore)
        seen = ThisCall(stream.operation, stream.call.tell)
        threads = self._work.threads
        work = threads.submit(items.close, done, stream.operation, seen, permit)
        self._work.loop.call_later(STOP_SECONDS, threads.stop, work, "its stream was closed")

    def close(self) -> None:
        """Give up all; those that make an item are closed when it is there."""
        for call, stream in self._streams.items():
            if call in self._work.tasks:
                self._close_after(self._work.tasks[call], call, stream)
            elif call not in self._work.working:
                self.close_stream(call, stream)
        self._streams.clear()

    # Async generators

    async def _next_async(self, call: int, stream: OpenStream, items: AsyncIterator[Any], count: int) -> None:
        in_this_task.set(stream.call)
        self._work.in_tasks[call] = stream.call
        value: Any = END
        failure: BaseException | None = None
        started = time.perf_counter()
        try:
            for left in range(count - 1, -1, -1):
                permit = await self._item_permit(call, stream)
                started = time.perf_counter()
                value = values.take_over([await self._next_item(call, stream, items, permit)])
                if left == 0 or value is END or self._work.closed or self._streams.get(call) is not stream:
                    break
                self._outcome.items(call, [value], time.perf_counter() - started, more=True)
                value = END
        except asyncio.CancelledError as error:
            if self._work.closed:
                raise
            failure = error
        except BaseException as error:
            failure = error
        finally:
            self._work.in_tasks.pop(call, None)
        self._work.tasks.pop(call, None)  # The next pull may begin while this task winds up.
        self.pulled(call, stream, [value], failure, time.perf_counter() - started)

    async def _item_permit(self, call: int, stream: OpenStream) -> Permit | None:
        if stream.limits is None:
            return None
        permit = Permit(self._work, stream.limits)
        self._inputs.let_wait(call, permit)
        await permit.asked()
        return permit

    async def _next_item(self, call: int, stream: OpenStream, items: AsyncIterator[Any], permit: Permit | None) -> Any:
        """Give the next item of an async generator, or `END`."""
        if stream.timeout is None:
            try:
                return await ending_in_children(anext(items, END))
            finally:
                over(permit)
        task = self._work.apart(_next(items), stream.operation, permit)
        try:
            done, _ = await asyncio.wait({task}, timeout=stream.timeout)
        except asyncio.CancelledError:
            cancel_for_good(task, stream.operation, UNWANTED)
            raise
        if not done:
            cancel_for_good(task, stream.operation, TOO_LONG)
            stream.call.cancel(TOO_LONG, self._work.on_own_thread)
            self._inputs.end_consumed(call)
            raise _too_slow(stream.timeout)
        value, error = task.result()
        if error is not None:
            raise error
        return value

    # As ItemReceiver

    def hand_over(self, done: Done) -> None:
        """Call something on the event loop; from a thread."""
        self._work.threads.hand_over(done, None, 0.0)

    def produced(self, call: int, stream: OpenStream, given: list[Any], seconds: float) -> None:
        """A generator has produced items, and goes on with those that it was asked for."""
        if not self._work.closed and self._streams.get(call) is stream:
            self._outcome.items(call, given, seconds, more=True)

    def pulled(
        self, call: int, stream: OpenStream, given: list[Any], error: BaseException | None, seconds: float
    ) -> None:
        """A generator has done what it was asked for, the last items being these, or has ended, or raised."""
        self._work.working.pop(call, None)
        if self._work.closed or self._streams.get(call) is not stream:  # Dropped meanwhile.
            if isinstance(stream.items, Iterator):
                self.close_stream(call, stream)
            return
        ended = error is not None or given[-1] is END
        items = [item for item in given if item is not END]
        if items:
            self._outcome.items(call, items, seconds, more=ended)
        if not ended or self._streams.get(call) is not stream:
            return
        self._streams.pop(call, None)
        if error is not None:
            self._raised(call, error, 0.0 if items else seconds)
        else:
            self._inputs.forget(call)
            self._outcome.exhausted(call)


def is_stream(value: Any) -> bool:
    """Whether a value is a stream whoever returns it: nothing else could be done with one that has to be sent."""
    return type(value) not in values.UNCHANGING and isinstance(value, Iterator | AsyncIterator)


@runtime_checkable
class _Closable(Protocol):
    """An async generator, or the stream of one in another process."""

    async def aclose(self) -> None: ...


async def _close(stream: _Closable) -> None:
    with contextlib.suppress(Exception):  # Nobody waits for what a generator does when it is closed.
        await stream.aclose()


async def _next(items: AsyncIterator[Any]) -> Any:
    return await ending_in_children(anext(items, END))


def _too_slow(timeout: float) -> CallTimeoutError:
    return CallTimeoutError(f"its next item took longer than the timeout of {timeout} s")


__all__ = ["Generators", "is_stream"]
