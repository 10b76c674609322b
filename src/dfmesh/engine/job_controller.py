"""JobController: one job at one site. Feeds its NetRunner and carries out what that says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import msgspec

from dfmesh import values
from dfmesh.engine import events, messages
from dfmesh.engine.adapters import Raised
from dfmesh.engine.call_lines import Whose
from dfmesh.engine.call_log import CallLog
from dfmesh.engine.calls import Calls
from dfmesh.engine.carrier import Carrier, gauge
from dfmesh.engine.events import Event, Instruction
from dfmesh.engine.held_messages import LoadModules
from dfmesh.engine.job_arrivals import JobArrivals
from dfmesh.engine.job_outbox import JobOutbox, Soon
from dfmesh.engine.kept_calls import Kept, OnceCalls
from dfmesh.engine.messages import AnyMessage, Failure, SiteReport, TallyReport
from dfmesh.engine.prepared_nets import PreparedNet
from dfmesh.engine.pressure import Pressure
from dfmesh.engine.residency import check_told
from dfmesh.engine.site_cache import Cache
from dfmesh.engine.site_speed import SiteSpeed
from dfmesh.engine.statistics import Statistics
from dfmesh.engine.tokens import StreamInput
from dfmesh.errors import ValueEncodingError
from dfmesh.netir import NOTHING_BOUND, BoundValues, NetIR, Sites

Later = Callable[[float, Callable[[], None]], Any]
"""Calls a function after some seconds."""


class SiteServices(msgspec.Struct, frozen=True):
    """What a site has for all its jobs.

    Attributes:
        carrier: Sends messages.
        call_log: Notes the calls that go on.
        cache: The site's cache.
        make_calls: Makes what carries out the calls of a job.
        soon: Defers a function to the end of the current turn of the event loop.
        broken: Ends a job that cannot go on, through a fault of the engine; None to raise what happened.
        later: Calls a function after some seconds; None where nothing is put off.
        lag: Gives how many results of calls there were so far, and the seconds that they waited for the event loop.
        load: Imports the modules of adapters, which may register classes of values; None where all are loaded.
        bound_values: Follows what rules of residency bind in a net.
    """

    carrier: Carrier
    call_log: CallLog
    cache: Cache
    make_calls: Callable[[JobController], Calls]
    soon: Soon
    broken: Callable[[str, Exception], None] | None = None
    lag: Callable[[], tuple[int, float]] = lambda: (0, 0.0)
    later: Later | None = None
    bound_values: Callable[[NetIR], BoundValues] = lambda _: NOTHING_BOUND
    load: LoadModules | None = None


LITTLE_SENT = 256 * 1024
"""Bytes that no connection has trouble to take. How fast one took more shows only when it has, at the job's end."""


class JobController:
    """One job at one site.

    Attributes:
        job: Its id.
        homesite: Where reports and results go.
        prepared: What it runs.
        told_last: Whether the last report has been sent.
        on_last: Called soon after that; None if nobody wants to know.
    """

    def __init__(self, job: str, prepared: PreparedNet, services: SiteServices, once: OnceCalls | None = None) -> None:
        """Get ready to run the site's part of a job.

        Args:
            job: Id of the job.
            prepared: What to run; nobody else's until the controller is closed.
            services: What the site has for its jobs.
            once: Calls that must not run again if the job is begun again; None if it will not be.
        """
        self.job = job
        self.prepared = prepared
        self.site = prepared.net.site
        self.homesite = prepared.net.homesite
        self._runner = prepared.runner
        self._transitions = self._runner.wired.transitions
        self._carrier = services.carrier
        self._site_speed = SiteSpeed(services.carrier, services.lag)
        self._call_log = services.call_log
        self._cache = services.cache
        self._calls = services.make_calls(self)
        self._soon = services.soon
        self._broken = services.broken
        self._plans = prepared.plans
        self._statistics = [Statistics() for _ in self._transitions]
        self._outbox = JobOutbox(job, self._runner.wired, services, self._statistics, self._outbox_flushed)
        self._pressure = Pressure(gauge(services.carrier), self._outbox.bytes_sent.keys(), self._begin)
        self._slots: dict[int, int] = {}
        report_failure = self._outbox.report_failure
        self._arrivals = JobArrivals(self._runner.wired, prepared.senders, services.carrier, report_failure)
        self._arrivals.may_learn = services.load is not None
        self._missed: dict[int, bytes] = {}
        # Where the values of missed keys may be, by call; those that may be anywhere are left out.
        self._missed_within: dict[int, Sites] = {}
        # Look-ups that wait for a value which somebody else computes, perhaps with what a lost site was to send.
        self._waiting_lookups: set[int] = set()
        self._once = once
        self._on_left: Callable[[], None] | None = None
        self._closed = False
        self._watched = False
        self._opened = 0
        self._closing = False
        self.told_last = False
        self.on_last: Callable[[], None] | None = None
        self._idle_told: tuple[dict[str, int], dict[str, int], int] | None = None

    # Messages from other sites

    def receive(self, peer: str, message: AnyMessage) -> None:
        """Take in a message about this job. One that is not that peer's to send is dropped."""
        arrivals = self._arrivals
        if arrivals.out_of_place(peer, message):
            return
        happened = arrivals.events_of(peer, message)
        if happened is None:
            self._from_homesite(message)
            return
        for event in happened:
            self.handle(event)

    def knows_all(self) -> None:
        """Take note that nothing more will be loaded for the values that arrive."""
        self._arrivals.may_learn = False

    def _from_homesite(self, message: AnyMessage) -> None:
        match message:
            case messages.OpenFrame():
                opened = self._arrivals.frame_opened(message)
                self._opened += 1
                if message.last:
                    self._closing = self._outbox.holds_reports = True
                self.handle(opened)
            case messages.CloseParameters():
                self._closing = self._outbox.holds_reports = True
                self._tell_last()
            case messages.RouteResidency(route=route, sites=sites):
                check_told(self.prepared.net, route, sites)
            case messages.HoldJob(held=held):
                self._pressure.stop(held)
            case messages.ReportProgress():
                # Not counted: what a job sends must not depend on who watches it.
                self._carrier.send(self.homesite, messages.Progress(self.job, (self.report(),)))
            case messages.WatchIdle(lost=lost):
                self._watched = True
                for failure in lost:
                    self._lose(failure)
                self._tell_idle()
            case messages.FrameFinished(frame=frame):
                if self._once is not None:
                    self._once.forget(frame[0])

    def _lose(self, failure: Failure) -> None:
        if failure.site not in self._arrivals.lost:
            self._arrivals.lost.add(failure.site)
            self.handle(events.SiteGone(failure))

    # The runner

    def handle(self, event: Event) -> None:
        """Feed an event to the runner and carry out the instructions."""
        if self._on_left is not None:
            self._leave_when_done()
            return
        send = self._outbox.carry_out
        try:
            for instruction in self._runner.handle(event):
                own = _OWN_INSTRUCTIONS.get(type(instruction))
                if own is None:
                    send(instruction)
                else:
                    own(self, instruction)
        except Exception as error:  # Also from a call's end, where nobody else would end the job.
            if self._broken is None:
                raise
            self._broken(self.job, error)
            return
        self._outbox.event_over()
        if self._watched:
            self._tell_idle()
        if self._closing:
            self._tell_last()

    def _tell_last(self) -> None:
        """Send the last report as soon as all of the last parameter set is done, so that the end has not to wait."""
        outbox = self._outbox
        if self._opened > outbox.reported or self._runner.calls or self._runner.streams.relaying:
            outbox.send_held()
            return
        self._closing = outbox.holds_reports = False
        outbox.flush()
        if sum(outbox.bytes_sent.values()) > LITTLE_SENT:
            outbox.send_held()
            return
        self._calls.flush_lines()
        self.told_last = True
        self._carrier.send(
            self.homesite, messages.Progress(self.job, (self.report(),), last=True, frames=outbox.take_held())
        )
        if self.on_last is not None:
            self._soon(self.on_last)

    def _outbox_flushed(self) -> None:
        if self._watched:
            self._tell_idle()

    def _tell_idle(self) -> None:
        """Tell the homesite that nothing goes on here, if that is so and it does not know it."""
        if self._runner.active > len(self._waiting_lookups) or self._outbox.iterations:
            return
        state = (dict(self._outbox.sent), dict(self._arrivals.received), len(self._arrivals.lost))
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

        within = self._within(call)
        if self._cache.look_up(key, ttl, wait=wait, found=found, missed=missed, within=within):
            self._waiting_lookups.add(call)

    def _within(self, call: int) -> Sites | None:
        """Give where, by the rules that the plan was checked with, what a look-up gives may be; None for anywhere."""
        within = self.prepared.bound.transitions.get(self._runner.calls[call][0].ir.id)
        if within is not None:
            self._missed_within[call] = within
        return within

    def _store(self, instruction: events.StoreValue) -> None:
        call = instruction.call
        self._cache.store(self._missed.pop(call), instruction.value, self._missed_within.pop(call, None))

    def _release(self, instruction: events.ReleaseKey) -> None:
        self._missed_within.pop(instruction.call, None)
        self._cache.release(self._missed.pop(instruction.call))

    def _found(self, call: int, value: Any) -> None:
        self._missed_within.pop(call, None)
        if not self._closed:
            self.handle(events.KeyFound(call, values.private_copy(value)))

    def _miss(self, call: int, key: bytes) -> None:
        if self._closed:
            self._cache.release(key)
        else:
            self._missed[call] = key
            self.handle(events.KeyMissed(call))

    # Calls

    def _begin(self, instruction: Instruction) -> None:
        """Carry out an instruction that was held back."""
        try:
            match instruction:
                case events.StartCall():
                    self._start_call(instruction)
                case events.StartCalls():
                    self._start_calls(instruction)
                case events.PullStream(call=call, count=count) if call in self._runner.calls:
                    self._calls.pull(call, count)
        except Exception as error:
            if self._broken is None:
                raise
            self._broken(self.job, error)

    def _begin_call(self, instruction: events.StartCall) -> None:
        # One that takes a stream makes room where that comes from.
        if instruction.fed or not self._pressure.hold(instruction):
            self._start_call(instruction)

    def _begin_calls(self, instruction: events.StartCalls) -> None:
        if not self._pressure.hold(instruction):
            self._start_calls(instruction)

    def _pull(self, instruction: events.PullStream) -> None:
        if not self._pressure.hold(instruction):
            self._calls.pull(instruction.call, instruction.count)

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

    def whose(self, call: int) -> Whose | None:
        """As `CallOutcome.whose`."""
        found = self._runner.calls.get(call)
        if found is None:
            return None
        ir = found[0].ir
        return ir.name, ir.node, found[1]

    def said(self, lines: tuple[messages.JobLine, ...], dropped: int) -> None:
        """Calls have printed or logged lines."""
        self._outbox.send(self.homesite, messages.JobLines(self.job, self.site, lines, dropped))

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
        transitions, waiting = self._transitions, self._runner.waiting
        each = list(zip(transitions, self._statistics, self._plans, strict=True))
        return SiteReport(
            self.site,
            tuple(
                counted.report(item.ir, waiting(item), plan.loading) for item, counted, plan in each if plan is not None
            ),
            dict(self._outbox.bytes_sent),
            tuple(send for item, counted, _ in each for send in counted.sends(item.ir)),
            tuple(TallyReport(item.ir.id, item.fired, item.counted) for item in transitions if item.fired),
            self._site_speed.connections(),
            self._site_speed.mean_lag(),
        )

    @property
    def leaves_nothing(self) -> bool:
        """Whether, once it is closed, nobody will look at what it ran any more."""
        return self.told_last and not self._watched

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
        self._pressure.drop()
        self._leave_when_done()

    def _leave_when_done(self) -> None:
        if self._on_left is not None and (self._once is None or self._once.leave()):
            self._on_left()

    def close(self) -> None:
        """Give up what goes on."""
        self._closed = True
        self._pressure.drop()
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


_OWN_INSTRUCTIONS: dict[type[Instruction], Callable[[JobController, Any], Any]] = {
    events.StartCall: JobController._begin_call,
    events.StartCalls: JobController._begin_calls,
    events.PullStream: JobController._pull,
    events.CloseStream: JobController._close_stream,
    events.FeedItem: lambda it, i: it._calls.feed(i.call, i.input, values.private_copy(i.value)),
    events.FeedEnd: lambda it, i: it._calls.feed_end(i.call, i.input, i.failure),
    events.LookUpKey: JobController._look_up,
    events.StoreValue: JobController._store,
    events.ReleaseKey: JobController._release,
}
"""The instructions that do not just send something."""
