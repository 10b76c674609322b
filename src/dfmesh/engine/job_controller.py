"""JobController: one job at one site. Feeds its NetRunner and carries out what that says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dfmesh import values
from dfmesh.engine import events, messages
from dfmesh.engine.adapters import Raised
from dfmesh.engine.call_log import CallLog
from dfmesh.engine.call_plan import CallPlan
from dfmesh.engine.calls import Calls
from dfmesh.engine.carrier import Carrier, saturation
from dfmesh.engine.events import Event, Instruction
from dfmesh.engine.job_outbox import JobOutbox, Soon
from dfmesh.engine.kept_calls import Kept, OnceCalls
from dfmesh.engine.messages import AnyMessage, Failure, Payload, SiteReport, SpeedReport, TallyReport
from dfmesh.engine.net_runner import NetRunner
from dfmesh.engine.site_cache import Cache
from dfmesh.engine.statistics import Statistics
from dfmesh.engine.tokens import SKIPPED, Failed, StreamInput, Token
from dfmesh.errors import ValueDecodingError, ValueEncodingError
from dfmesh.netir import Call, Frame, NetIR, Reduce


@dataclass(frozen=True, slots=True)
class SiteServices:
    """What a site has for all its jobs.

    Attributes:
        carrier: Sends messages.
        call_log: Notes the calls that go on.
        cache: The site's cache.
        make_calls: Makes what carries out the calls of a job.
        soon: Defers a function to the end of the current turn of the event loop.
        broken: Ends a job that cannot go on, through a fault of the engine; None to raise what happened.
        lag: Gives how many results of calls there were so far, and the seconds that they waited for the event loop.
    """

    carrier: Carrier
    call_log: CallLog
    cache: Cache
    make_calls: Callable[[JobController], Calls]
    soon: Soon
    broken: Callable[[str, Exception], None] | None = None
    lag: Callable[[], tuple[int, float]] = lambda: (0, 0.0)


_BETWEEN_SITES = (
    messages.TokenPackage,
    messages.TokenPackages,
    messages.IterationsDone,
    messages.ScopeEnded,
    messages.StreamPackage,
    messages.StreamCredit,
)
"""Messages that are counted, so that somebody can tell when none is under way."""


class JobController:
    """One job at one site.

    Attributes:
        job: Its id.
        homesite: Where reports and results go.
    """

    def __init__(self, job: str, net: NetIR, services: SiteServices, once: OnceCalls | None = None) -> None:
        """Get ready to run the site's part of a job.

        Args:
            job: Id of the job.
            net: What to run.
            services: What the site has for its jobs.
            once: Calls that must not run again if the job is begun again; None if it will not be.

        Raises:
            ValueDecodingError: a constant of the net is not a value.
        """
        self.job = job
        self.site = net.site
        self.homesite = net.homesite
        self._runner = NetRunner(net)
        self._transitions = self._runner.wired.transitions
        # Sender and depth of the frames of what comes along each route.
        self._expected = self._runner.wired.senders()
        self._carrier = services.carrier
        self._saturated_before = saturation(services.carrier)
        self._lag = services.lag
        self._lag_before = services.lag()
        self._call_log = services.call_log
        self._cache = services.cache
        self._calls = services.make_calls(self)
        self._soon = services.soon
        self._broken = services.broken
        self._plans = [_plan(transition.ir.action) for transition in self._transitions]
        self._statistics = [Statistics() for _ in self._transitions]
        self._outbox = JobOutbox(job, self._runner.wired, services, self._statistics, self._outbox_flushed)
        self._slots: dict[int, int] = {}
        self._received: dict[str, int] = {}
        self._missed: dict[int, bytes] = {}
        # Look-ups that wait for a value which somebody else computes, perhaps with what a lost site was to send.
        self._waiting_lookups: set[int] = set()
        self._lost: set[str] = set()
        # Streams that ended early, since an item could not be read; what still comes of them is dropped.
        self._broken_streams: set[tuple[int, Frame]] = set()
        self._once = once
        self._on_left: Callable[[], None] | None = None
        self._closed = False
        self._watched = False
        self._idle_told: tuple[dict[str, int], dict[str, int], int] | None = None
        self._instruction_handlers = self._handlers()

    # Messages from other sites

    def receive(self, peer: str, message: AnyMessage) -> None:
        """Take in a message about this job. One that is not that peer's to send is dropped."""
        if self._out_of_place(peer, message):
            return
        if isinstance(message, _BETWEEN_SITES):
            self._received[peer] = self._received.get(peer, 0) + 1
        match message:
            case messages.TokenPackage():
                self.handle(events.TokenArrived(message.route, message.frame, self._token_of(message)))
            case messages.TokenPackages():
                self._tokens_arrived(message)
            case messages.IterationsDone(scope=scope, frames=frames):
                self.handle(events.IterationsDone(scope, frames, peer))
            case messages.ScopeEnded(scope=scope, frame=frame, count=count, failure=failure):
                self.handle(events.ScopeEnded(scope, frame, count, failure))
            case messages.StreamPackage():
                self._stream_arrived(message)
            case messages.StreamCredit(route=route, frame=frame, count=count, unwanted=unwanted):
                self.handle(events.StreamCreditArrived(route, frame, count, unwanted))
            case messages.OpenFrame(frame=frame, parameters=parameters):
                given = {name: self._unpacked(payload, frame) for name, payload in parameters.items()}
                self.handle(events.FrameOpened(frame, given))
            case messages.ReportProgress():
                # Not counted: what a job sends must not depend on who watches it.
                self._carrier.send(peer, messages.Progress(self.job, (self.report(),)))
            case messages.WatchIdle(lost=lost):
                self._watched = True
                for failure in lost:
                    self._lose(failure)
                self._tell_idle()
            case messages.FrameFinished(frame=frame):
                if self._once is not None:
                    self._once.forget(frame[0])

    def _out_of_place(self, peer: str, message: AnyMessage) -> bool:
        match message:
            case messages.TokenPackage(route=route, frame=frame):
                return self._expected.get(route) != (peer, len(frame))
            case messages.TokenPackages(route=route, frames=frames):
                return any(self._expected.get(route) != (peer, depth) for depth in set(map(len, frames)))
            case messages.StreamPackage(route=route, frame=frame):
                return self._expected.get(route) != (peer, len(frame)) or peer in self._lost
            case messages.IterationsDone(scope=number):
                scope = self._runner.wired.scopes.get(number)
                return scope is None or scope.head_site != self.site or peer not in scope.participants
            case messages.ScopeEnded(scope=number, frame=frame):
                scope = self._runner.wired.scopes.get(number)
                return scope is None or scope.head_site != peer or scope.depth != len(frame) + 1
            case messages.StreamCredit():
                return False
            case _:
                return peer != self.homesite

    def _lose(self, failure: Failure) -> None:
        if failure.site not in self._lost:
            self._lost.add(failure.site)
            self.handle(events.SiteGone(failure))

    def _stream_arrived(self, package: messages.StreamPackage) -> None:
        route, frame = package.route, package.frame
        if (route, frame) in self._broken_streams:
            if package.payload is None:
                self._broken_streams.discard((route, frame))
            return
        if package.payload is None:
            self.handle(events.StreamEndArrived(route, frame, package.failure))
            return
        items = self._unpacked(package.payload, frame, package.count)
        if isinstance(items, Failed):
            self._broken_streams.add((route, frame))
            self.handle(events.StreamEndArrived(route, frame, items.failure))
        else:
            self.handle(events.StreamItemsArrived(route, frame, items if package.count else [items]))

    def _tokens_arrived(self, package: messages.TokenPackages) -> None:
        route, frames = package.route, package.frames
        if not frames:
            return
        tokens = self._unpacked(package.payload, frames[0], len(frames))
        if isinstance(tokens, Failed):
            for frame in frames:
                self.handle(events.TokenArrived(route, frame, tokens))
        else:
            self.handle(events.TokensArrived(route, frames, tokens))

    def _token_of(self, package: messages.TokenPackage) -> Token:
        if package.payload is not None:
            return self._unpacked(package.payload, package.frame)
        if package.failure is not None:
            return Failed(package.failure)
        return SKIPPED if package.skipped else None

    def _unpacked(self, payload: Payload, frame: Frame, count: int = 0) -> Token:
        """Give the value of a payload, or the list of so many values, or how that failed."""
        try:
            value = self._carrier.unpack(payload)
            if count and (type(value) is not list or len(value) != count):
                raise ValueDecodingError(f"what arrived is no list of {count} values")
            return value
        except ValueDecodingError as error:
            failure = Failure(self.site, "decode", "", frame, "", type(error).__name__, str(error))
            self._outbox.report_failure(failure)
            return Failed(failure)

    # The runner

    def handle(self, event: Event) -> None:
        """Feed an event to the runner and carry out the instructions."""
        if self._on_left is not None:
            self._leave_when_done()
            return
        carry_out = self._instruction_handlers
        try:
            for instruction in self._runner.handle(event):
                carry_out[type(instruction)](instruction)
        except Exception as error:  # Also from a call's end, where nobody else would end the job.
            if self._broken is None:
                raise
            self._broken(self.job, error)
            return
        self._outbox.event_over()
        if self._watched:
            self._tell_idle()

    def _handlers(self) -> dict[type[Instruction], Callable[[Any], Any]]:
        calls, cache = self._calls, self._cache
        return {
            **self._outbox.handlers(),
            events.StartCall: self._start_call,
            events.StartCalls: self._start_calls,
            events.PullStream: lambda i: calls.pull(i.call, i.count),
            events.CloseStream: self._close_stream,
            events.FeedItem: lambda i: calls.feed(i.call, i.input, values.private_copy(i.value)),
            events.FeedEnd: lambda i: calls.feed_end(i.call, i.input, i.failure),
            events.LookUpKey: self._look_up,
            events.StoreValue: lambda i: cache.store(self._missed.pop(i.call), i.value),
            events.ReleaseKey: lambda i: cache.release(self._missed.pop(i.call)),
        }

    def _outbox_flushed(self) -> None:
        if self._watched:
            self._tell_idle()

    def _tell_idle(self) -> None:
        """Tell the homesite that nothing goes on here, if that is so and it does not know it."""
        if self._runner.active > len(self._waiting_lookups) or self._outbox.iterations:
            return
        state = (dict(self._outbox.sent), dict(self._received), len(self._lost))
        if state != self._idle_told:
            self._idle_told = state
            self._outbox.send(self.homesite, messages.SiteIdle(self.job, *state))

    def _look_up(self, instruction: events.LookUpKey) -> None:
        call, key, ttl, wait = instruction.call, instruction.key, instruction.ttl, instruction.wait

        # Answers are taken in later: they may come at once, or while another look-up's value is being stored, in the
        # middle of instructions that are still to be carried out in their order.
        def found(value: Any) -> None:
            self._waiting_lookups.discard(call)
            self._soon(lambda: self._found(call, value))

        def missed() -> None:
            self._waiting_lookups.discard(call)
            self._soon(lambda: self._miss(call, key))

        if self._cache.look_up(key, ttl, wait=wait, found=found, missed=missed):
            self._waiting_lookups.add(call)

    def _found(self, call: int, value: Any) -> None:
        if not self._closed:
            self.handle(events.KeyFound(call, values.private_copy(value)))

    def _miss(self, call: int, key: bytes) -> None:
        if self._closed:
            self._cache.release(key)
        else:
            self._missed[call] = key
            self.handle(events.KeyMissed(call))

    # Calls

    def _start_call(self, instruction: events.StartCall) -> None:
        position = instruction.transition
        plan = self._plans[position]
        if plan is None:
            raise TypeError(f"{self._transitions[position].ir.name} makes no calls")
        self._statistics[position].started(instruction.call)
        if self._once is not None and position in self._once.positions and self._is_kept(self._once, instruction):
            return
        transition = self._transitions[position].ir.id
        self._slots[instruction.call] = self._call_log.started(self.job, transition, instruction.frame)
        fed = instruction.fed
        # What an adapter does to its arguments must not reach the others at this site who have the same values.
        arguments = {
            name: item if fed and type(item) is StreamInput else values.private_copy(item)
            for name, item in instruction.arguments.items()
        }
        self._calls.start(instruction.call, plan, arguments, fed)

    def _start_calls(self, instruction: events.StartCalls) -> None:
        position, first, frames = instruction.transition, instruction.first, instruction.frames
        plan = self._plans[position]
        if plan is None:
            raise TypeError(f"{self._transitions[position].ir.name} makes no calls")
        if self._once is not None and position in self._once.positions:
            for call, (frame, arguments) in enumerate(zip(frames, instruction.arguments, strict=True), first):
                self._start_call(events.StartCall(call, position, frame, arguments))
            return
        self._statistics[position].all_started(first, len(frames))
        slots = self._call_log.all_started(self.job, self._transitions[position].ir.id, frames)
        self._slots.update(zip(range(first, first + len(frames)), slots, strict=True))
        self._calls.start_all(first, plan, _private(instruction.arguments))

    def _is_kept(self, once: OnceCalls, instruction: events.StartCall) -> bool:
        """Give what the call gave in an earlier attempt, if it was made there and must not run again."""
        call = instruction.call
        kept = once.begin(call, instruction.transition, instruction.frame, fed=bool(instruction.fed))
        if kept is not None:
            self._soon(lambda: self._give_kept(call, kept))
        return kept is not None

    def _give_kept(self, call: int, kept: Kept) -> None:
        if self._closed or self._on_left is not None:
            return
        self._statistics_of(call).ended(call, 0.0, failed=kept.failure is not None)
        if kept.failure is None:
            self.handle(events.CallReturned(call, kept.value))
        else:
            self.handle(events.CallRaised(call, kept.failure, passed_on=kept.passed_on))

    def _keep(self, call: int, kept: Kept) -> None:
        if self._once is not None:
            self._once.ended(call, kept)

    def _call_over(self, call: int, seconds: float, *, failed: bool) -> None:
        self._call_log.ended(self._slots.pop(call))
        self._statistics_of(call).ended(call, seconds, failed=failed)

    def _statistics_of(self, call: int) -> Statistics:
        return self._statistics[self._runner.calls[call][0].position]

    def returned(self, call: int, value: Any, seconds: float) -> None:
        """A call has ended with a value. One that cannot be sent is an error here, wherever it would have gone."""
        try:
            value = values.private_copy(value)  # The adapter may keep the original, and change it later.
        except ValueEncodingError as error:
            self.raised(call, Raised(type(error).__name__, str(error)), seconds)
            return
        self._statistics_of(call).returned(value)
        self._call_over(call, seconds, failed=False)
        self._keep(call, Kept(value))
        self.handle(events.CallReturned(call, value))

    def all_returned(self, calls: list[int], given: list[Any], seconds: list[float]) -> None:
        """Calls have ended with values."""
        start, running = 0, self._runner.calls
        while start < len(calls) and not self._closed:
            transition = running[calls[start]][0]
            stop = start + 1
            while stop < len(calls) and running[calls[stop]][0] is transition:
                stop += 1
            if transition.reduces or stop - start == 1:
                for call, value, duration in zip(
                    calls[start:stop], given[start:stop], seconds[start:stop], strict=True
                ):
                    self.returned(call, value, duration)
            else:
                self._alike_returned(transition.position, calls[start:stop], given[start:stop], seconds[start:stop])
            start = stop

    def _alike_returned(self, position: int, calls: list[int], given: list[Any], seconds: list[float]) -> None:
        """Calls of one transition have ended with values."""
        if self._once is not None or not values.is_unchanging(given):
            for call, value, duration in zip(calls, given, seconds, strict=True):
                self.returned(call, value, duration)
            return
        self._statistics[position].all_returned(calls, given, seconds)
        self._call_log.all_ended(list(map(self._slots.pop, calls)))
        self.handle(events.CallsReturned(calls, given))

    def raised(self, call: int, raised: Raised, seconds: float) -> None:
        """A call has ended with an error."""
        self._call_over(call, seconds, failed=True)
        transition, frame = self._runner.calls[call]
        ir = transition.ir
        failure = Failure(
            self.site,
            ir.name,
            ir.node,
            frame,
            ir.location,
            raised.kind,
            raised.message,
            raised.traceback,
            raised.raised_at,
            raised.caused_by,
        )
        self._keep(call, Kept(None, failure))
        self.handle(events.CallRaised(call, failure))

    def broken(self, call: int, failure: Failure, seconds: float) -> None:
        """A call has ended with the error of a stream that it was fed with."""
        self._call_over(call, seconds, failed=True)
        self._keep(call, Kept(None, failure, passed_on=True))
        self.handle(events.CallRaised(call, failure, passed_on=True))

    def taken(self, call: int, index: int, count: int) -> None:
        """A call has taken items of a stream that it is fed with."""
        self.handle(events.FedItemsTaken(call, index, count))

    def streams(self, call: int) -> None:
        """A call has returned a generator."""
        if self._once is not None:
            self._once.streams(call)
        self.handle(events.StreamOpened(call))

    def items(self, call: int, given: list[Any], seconds: float, *, more: bool) -> None:
        """A generator has produced items; if `more`, it goes on with those that it was asked for."""
        items: list[Any] = []
        refused: ValueEncodingError | None = None
        for item in given:
            try:
                items.append(values.private_copy(item))
            except ValueEncodingError as error:
                refused = error
                break
        if items:
            self._statistics_of(call).items(items, seconds)
            self.handle(events.StreamItems(call, items, more or refused is not None))
        if refused is not None and call in self._runner.calls:
            self._calls.drop(call)
            self.raised(call, Raised(type(refused).__name__, str(refused)), 0.0)

    def exhausted(self, call: int) -> None:
        """A generator has no more items."""
        self._call_over(call, 0.0, failed=False)
        self.handle(events.StreamEnded(call))

    def _close_stream(self, instruction: events.CloseStream) -> None:
        self._calls.drop(instruction.call)
        self._soon(lambda: self._stream_closed(instruction.call))

    def _stream_closed(self, call: int) -> None:
        if not self._closed:
            self.exhausted(call)

    # Reports and the end

    def report(self) -> SiteReport:
        """Say how far this site is."""
        operations = [
            statistics.report(transition.ir, self._runner.waiting(transition))
            for transition, statistics, plan in zip(self._transitions, self._statistics, self._plans, strict=True)
            if plan is not None
        ]
        sends = [
            send
            for transition, statistics in zip(self._transitions, self._statistics, strict=True)
            for send in statistics.sends(transition.ir)
        ]
        tallies = [TallyReport(item.ir.id, item.fired, item.counted) for item in self._transitions if item.fired]
        return SiteReport(
            self.site,
            tuple(operations),
            dict(self._outbox.bytes_sent),
            tuple(sends),
            tuple(tallies),
            self._speeds(),
            self._mean_lag(),
        )

    def _mean_lag(self) -> float:
        (results, seconds), (results_before, seconds_before) = self._lag(), self._lag_before
        return (seconds - seconds_before) / (results - results_before) if results > results_before else 0.0

    def _speeds(self) -> tuple[SpeedReport, ...]:
        speeds = []
        for peer, (size, seconds) in saturation(self._carrier).items():
            size_before, seconds_before = self._saturated_before.get(peer, (0, 0.0))
            if seconds > seconds_before:
                speeds.append(SpeedReport(peer, size - size_before, seconds - seconds_before))
        return tuple(speeds)

    @property
    def unrepeatable(self) -> tuple[Failure, ...]:
        """Why the job cannot be begun again; empty if it can."""
        return () if self._once is None else self._once.unrepeatable

    def leave(self, on_left: Callable[[], None]) -> None:
        """End this attempt: let the calls end that must not run again, and do nothing more.

        Args:
            on_left: Called, perhaps at once, when the controller may be closed.
        """
        self._on_left = on_left
        self._leave_when_done()

    def _leave_when_done(self) -> None:
        if self._on_left is not None and (self._once is None or self._once.leave()):
            self._on_left()

    def close(self) -> None:
        """Give up what goes on."""
        self._closed = True
        self._calls.close()
        for key in self._missed.values():
            self._cache.release(key)
        self._missed.clear()
        for slot in self._slots.values():
            self._call_log.ended(slot)
        self._slots.clear()


def _private(arguments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copy arguments, since what an adapter does to them must not reach others at this site with the same values."""
    if values.is_unchanging(chain.from_iterable(map(dict.values, arguments))):
        return arguments
    return [{name: values.private_copy(item) for name, item in given.items()} for given in arguments]


def _plan(action: Any) -> CallPlan | None:
    if isinstance(action, Call | Reduce):
        return CallPlan(action.operation, action.provider, action.retries, action.timeout)
    return None
