"""A process in which adapters run: `python -m dfmesh.engine.isolation.worker ARGUMENTS`.

Started by a site only; it cannot be of use to a person. It carries out one call at a time, as the site itself would.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

from dfmesh import values
from dfmesh.config import FederationConfig
from dfmesh.engine.adapters import Adapter, Raised, SiteAdapters, describe, describe_own
from dfmesh.engine.call_lines import Whose
from dfmesh.engine.call_plan import CallOutcome, CallPlan
from dfmesh.engine.calls import Calls
from dfmesh.engine.heard_output import hear
from dfmesh.engine.isolation import messages
from dfmesh.engine.isolation.channel import Channel, Undecoded
from dfmesh.engine.message_parts import Failure, JobLine
from dfmesh.engine.stopping import hush_late_stops, let_sleep_be_stopped
from dfmesh.engine.tokens import StreamInput
from dfmesh.engine.worker_threads import WorkerThreads
from dfmesh.errors import DfmeshError, ValueDecodingError, ValueEncodingError
from dfmesh.processes import lifeline
from dfmesh.processes.forking import keep_from_forks
from dfmesh.processes.output import leave, log_to_standard_error, write_lines

_CALL = 0
"""The number of the one call that goes on."""

_UNKNOWN: Whose = ("", "", ())


class Worker(CallOutcome):
    """Carries out what a site asks for, and tells it what becomes of that."""

    def __init__(self, adapters: SiteAdapters, channel: Channel) -> None:
        self._adapters = adapters
        self._channel = channel
        self._threads = WorkerThreads(asyncio.get_running_loop())
        self._plans: dict[tuple[str, str | None], CallPlan] = {}
        self._calls = self._new_calls()

    def _new_calls(self) -> Calls:
        return Calls(self._adapters, self._threads, self)

    async def serve(self) -> None:
        """Answer until the site is gone."""
        while True:
            word, value = await self._channel.receive()
            match word:
                case messages.Load(operation=operation, provider=provider):
                    await self._tell_of(operation, provider)
                case messages.Start():
                    await self._start(word, value)
                case messages.Feed(stream=stream):
                    self._feed(stream, value)
                case messages.FeedEnd(stream=stream, failure=failure):
                    self._calls.feed_end(_CALL, stream, failure)
                case messages.Pull():
                    self._calls.pull(_CALL)
                case messages.Stop():
                    await self._stop()

    async def _load(self, operation: str, provider: str | None) -> CallPlan:
        """Load an adapter, on a thread; raises what that raises."""
        plan = self._plans.get((operation, provider))
        if plan is None:
            loaded: asyncio.Future[Adapter] = asyncio.get_running_loop().create_future()

            def done(adapter: Any, error: BaseException | None, _seconds: float) -> None:
                if error is None:
                    loaded.set_result(adapter)
                else:
                    loaded.set_exception(error)

            self._threads.submit(lambda: self._adapters.find(operation, provider), done)
            plan = CallPlan(operation, provider, 0, None)
            plan.load(await loaded)
            self._plans[operation, provider] = plan
        return plan

    async def _tell_of(self, operation: str, provider: str | None) -> None:
        try:
            adapter = (await self._load(operation, provider)).adapter
        except DfmeshError as error:
            self._raise(describe(error, self._adapters.own_code))
            return
        if adapter is not None:
            parameters = [*self._adapters.config.operations[operation].parameters, *adapter.spec.exposed]
            names = [parameter.name for parameter in parameters if adapter.streams_into(parameter.name)]
            self._channel.send(messages.Loaded(tuple(names)))

    async def _start(self, word: messages.Start, arguments: Any) -> None:
        try:
            plan = await self._load(word.operation, word.provider)
            if isinstance(arguments, Undecoded):
                arguments = arguments.decode()  # Now that the modules of the adapter are there.
        except DfmeshError as error:
            self._raise(describe(error, self._adapters.own_code))
            return
        streams = {name: StreamInput(number, name) for name, number in word.streams.items()}
        self._calls.start(_CALL, plan, {**arguments, **streams}, tuple(word.streams.values()))

    def _feed(self, stream: int, value: Any) -> None:
        try:
            value = value.decode() if isinstance(value, Undecoded) else value
        except ValueDecodingError as error:
            site = self._adapters.site_name
            self._calls.feed_end(_CALL, stream, Failure(site, "decode", "", (), "", type(error).__name__, str(error)))
        else:
            self._calls.feed(_CALL, stream, value)

    async def _stop(self) -> None:
        calls, self._calls = self._calls, self._new_calls()
        calls.close()
        await calls.ended()
        self._channel.send(messages.Stopped())

    def _raise(self, raised: Raised) -> None:
        self._calls.flush_lines()
        self._channel.send(
            messages.RaisedThere(raised.kind, raised.message, raised.traceback, raised.raised_at, raised.caused_by)
        )

    # What happens to the call

    def returned(self, call: int, value: Any, seconds: float) -> None:
        """As `CallOutcome.returned`."""
        self._calls.flush_lines()
        try:
            self._channel.send(messages.Returned(), values.private_copy(value))
        except ValueEncodingError as error:
            self._raise(describe_own(error))

    def raised(self, call: int, raised: Raised, seconds: float) -> None:
        """As `CallOutcome.raised`."""
        self._raise(raised)

    def streams(self, call: int) -> None:
        """As `CallOutcome.streams`."""
        self._channel.send(messages.Streams())

    def broken(self, call: int, failure: Failure, seconds: float) -> None:
        """As `CallOutcome.broken`."""
        self._calls.flush_lines()
        self._channel.send(messages.Broken(failure))

    def taken(self, call: int, index: int, count: int) -> None:
        """As `CallOutcome.taken`."""
        self._channel.send(messages.Taken(index, count))

    def all_returned(self, calls: Sequence[int], given: list[Any], seconds: list[float]) -> None:
        """As `CallOutcome.all_returned`."""
        for call, value, duration in zip(calls, given, seconds, strict=True):
            self.returned(call, value, duration)

    def items(self, call: int, given: list[Any], seconds: float, *, more: bool) -> None:
        """As `CallOutcome.items`; they are asked for one by one."""
        try:
            for value in given:
                self._channel.send(messages.Item(), values.private_copy(value))
        except ValueEncodingError as error:
            self._calls.drop(_CALL)
            self._raise(describe_own(error))

    def whose(self, call: int) -> Whose | None:
        """As `CallOutcome.whose`; the site knows."""
        return _UNKNOWN

    def said(self, lines: tuple[JobLine, ...], dropped: int) -> None:
        """As `CallOutcome.said`."""
        self._channel.send(messages.Said(lines, dropped))

    def exhausted(self, call: int) -> None:
        """As `CallOutcome.exhausted`."""
        self._calls.flush_lines()
        self._channel.send(messages.Exhausted())


async def _serve(arguments: messages.WorkerArguments) -> None:
    try:
        adapters = SiteAdapters(FederationConfig.load(arguments.federation), arguments.site)
        worker = Worker(adapters, Channel(keep_from_forks(socket.socket(fileno=arguments.connection))))
        await worker.serve()
    except EOFError:
        leave(0)
    except DfmeshError as error:
        sys.stderr.write(f"{error}\n")
        leave(1)
    except Exception:
        sys.excepthook(*sys.exc_info())
        leave(1)


def main(text: str) -> NoReturn:
    """Work until the site ends us, or is gone.

    Args:
        text: `WorkerArguments` as JSON.
    """
    arguments = msgspec.json.decode(text, type=messages.WorkerArguments)
    lifeline.arm(arguments.lifeline)
    os.set_inheritable(arguments.connection, False)
    write_lines()
    log_to_standard_error(arguments.log_level)
    hear()
    sys.path[:] = [*arguments.path, *(entry for entry in sys.path if entry not in arguments.path)]
    let_sleep_be_stopped()
    hush_late_stops()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    lifeline.watch_starter(arguments.starter, loop)
    serving = loop.create_task(_serve(arguments))
    while True:
        try:
            loop.run_until_complete(serving)
        except (SystemExit, KeyboardInterrupt):
            continue  # an adapter's coroutine called sys.exit: its task knows, and we go on


if __name__ == "__main__":
    main(sys.argv[1])
