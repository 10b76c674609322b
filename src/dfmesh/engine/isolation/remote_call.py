"""One call that a worker process carries out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from dfmesh.engine.call_lines import TakeLines
from dfmesh.engine.isolation import messages
from dfmesh.engine.isolation.channel import NO_VALUE, Undecoded
from dfmesh.engine.isolation.worker_process import AdapterProcessError, WorkerProcess
from dfmesh.engine.live_input import LiveInput, StreamBrokenError

FEED_WINDOW = 32
"""Items of a stream that are on their way to an adapter in another process, or wait for it there."""

STOP_SECONDS = 1.0
"""Time that a worker has to stop a call; then it is ended itself."""


class RemoteCall:
    """The conversation with a worker about one call."""

    def __init__(self, worker: WorkerProcess, said: TakeLines | None = None) -> None:
        """Begin it.

        Args:
            worker: Who carries it out.
            said: Takes what it prints and logs; None if nobody does.
        """
        self.worker = worker
        worker.listener = self
        self._said = said
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[tuple[Any, Any]] | None = None
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._windows: dict[int, asyncio.Semaphore] = {}
        self._feeding: list[asyncio.Task[None]] = []

    async def start(self, operation: str, provider: str | None, arguments: dict[str, Any]) -> tuple[Any, Any]:
        """Begin the call and wait for the first answer.

        Args:
            operation: Name of the operation.
            provider: Provider in the site.
            arguments: By parameter name; those that are a `LiveInput` are fed to the worker item by item.

        Returns:
            What the worker says, and the value that comes with it.
        """
        live = {name: item for name, item in arguments.items() if type(item) is LiveInput}
        numbers = {name: number for number, name in enumerate(live)}
        plain = {name: item for name, item in arguments.items() if name not in live}
        answer = self.ask(messages.Start(operation, provider, numbers), plain)
        for name, stream in live.items():
            self._windows[numbers[name]] = asyncio.Semaphore(FEED_WINDOW)
            self._feeding.append(self._loop.create_task(self._feed(numbers[name], stream)))
        return await answer

    def ask(self, word: Any, value: Any = NO_VALUE) -> asyncio.Future[tuple[Any, Any]]:
        """Say something that is answered, and give the answer to come."""
        self._answer = self._loop.create_future()
        if self.worker.alive:
            self.worker.send(word, value)
        else:
            self.failed(AdapterProcessError("the process of its adapter has ended"))
        return self._answer

    async def _feed(self, number: int, stream: LiveInput) -> None:
        window = self._windows[number]
        failure = None
        try:
            async for item in stream.iterate_async():
                await window.acquire()
                self.worker.send(messages.Feed(number), item)
        except StreamBrokenError as error:
            failure = error.failure
        self.worker.send(messages.FeedEnd(number, failure))

    def heard(self, word: Any, value: Any) -> None:
        """As `Listener.heard`."""
        if isinstance(word, messages.Taken):
            for _ in range(word.count):
                self._windows[word.stream].release()
        elif isinstance(word, messages.Said):
            if self._said is not None:
                self._said(word.lines, word.dropped)
        elif isinstance(word, messages.Stopped):
            if not self._stopped.done():
                self._stopped.set_result(None)
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result((word, value))

    def failed(self, error: AdapterProcessError) -> None:
        """As `Listener.failed`."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    def leave(self) -> None:
        """Take note that the call is over: the worker is free for another."""
        for task in self._feeding:
            task.cancel()
        if self.worker.listener is self:
            self.worker.listener = None

    async def stop(self) -> bool:
        """Have the call stopped; False if the worker does not manage that in time."""
        for task in self._feeding:
            task.cancel()
        self.worker.send(messages.Stop())
        await asyncio.wait([self._stopped], timeout=STOP_SECONDS)
        self.leave()
        return self._stopped.done()


class RemoteStream:
    """The items of a generator in another process: an async iterator that has to be closed or read to its end."""

    def __init__(
        self,
        call: RemoteCall,
        decoded: Callable[[Undecoded], Awaitable[Any]],
        result: Callable[[RemoteCall, Any, Any], Any],
        give_up: Callable[[RemoteCall], None],
    ) -> None:
        """Begin before the first item.

        Args:
            call: The call.
            decoded: Decodes an item that could not be decoded when it came, or raises.
            result: Makes an item of an answer, or raises if it is none; the call is over then.
            give_up: Stops the call.
        """
        self._call = call
        self._decoded = decoded
        self._result = result
        self._give_up = give_up
        self._over = False

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if self._over:
            raise StopAsyncIteration
        try:
            word, value = await self._call.ask(messages.Pull())
            if isinstance(value, Undecoded):
                value = await self._decoded(value)
        except BaseException:
            await self.aclose()
            raise
        self._over = not isinstance(word, messages.Item)
        return self._result(self._call, word, value)

    async def aclose(self) -> None:
        """Have the generator closed."""
        if not self._over:
            self._over = True
            self._give_up(self._call)
