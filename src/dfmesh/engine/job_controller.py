"""JobController: one job at one site. Feeds its NetRunner and carries out what that says."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from dfmesh.engine import events, messages
from dfmesh.engine.call_log import CallLog
from dfmesh.engine.calls import Calls
from dfmesh.engine.carrier import Carrier
from dfmesh.engine.events import Event, Instruction
from dfmesh.engine.held_messages import LoadModules
from dfmesh.engine.job_arrivals import JobArrivals
from dfmesh.engine.job_calls import JobCalls
from dfmesh.engine.job_look_ups import JobLookUps
from dfmesh.engine.job_outbox import JobOutbox, Soon
from dfmesh.engine.kept_calls import OnceCalls
from dfmesh.engine.message_parts import Failure, OperationReport, SendReport, SiteReport, TallyReport
from dfmesh.engine.messages import AnyMessage
from dfmesh.engine.prepared_nets import PreparedNet
from dfmesh.engine.residency import check_told
from dfmesh.engine.site_cache import Cache
from dfmesh.engine.site_speed import SiteSpeed
from dfmesh.engine.statistics import Statistics
from dfmesh.netir import NOTHING_BOUND, BoundValues, NetIR

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
        now: Gives the time, in seconds since 1970.
        bound_values: Follows what rules of residency bind in a net.
    """

    carrier: Carrier
    call_log: CallLog
    cache: Cache
    make_calls: Callable[[JobCalls], Calls]
    soon: Soon
    broken: Callable[[str, Exception], None] | None = None
    lag: Callable[[], tuple[int, float]] = lambda: (0, 0.0)
    later: Later | None = None
    bound_values: Callable[[NetIR], BoundValues] = lambda _: NOTHING_BOUND
    load: LoadModules | None = None
    now: Callable[[], float] = time.time


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
        self._soon = services.soon
        self._broken = services.broken
        self._statistics = [Statistics() for _ in self._transitions]
        self._outbox = JobOutbox(
            job, self._runner.wired, services, self._statistics, self._outbox_flushed, self._flush_lines
        )
        self._calls = JobCalls(job, prepared, services, once, self._outbox, self._statistics, self.handle)
        self._look_ups = JobLookUps(prepared, services, self.handle)
        report_failure = self._outbox.failures.tell
        self._arrivals = JobArrivals(self._runner.wired, prepared.senders, services.carrier, report_failure)
        self._arrivals.may_learn = services.load is not None
        self._once = once
        self._handling = False
        self._behind: deque[Event] = deque()
        self._on_left: Callable[[], None] | None = None
        self._watched = False
        self._opened = 0
        self._closing = False
        self.told_last = False
        self.on_last: Callable[[], None] | None = None
        self._idle_told: tuple[dict[str, int], dict[str, int], int] | None = None

    # Messages from other sites

    def receive(self, peer: str, message: AnyMessage) -> None:
        """Take in a message about this job. One that is not that peer's to send is dropped."""
        if type(message) is messages.OpenFrame and peer == self.homesite:
            self._open_frame(message)
            return
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

    def _open_frame(self, message: messages.OpenFrame) -> None:
        opened = self._arrivals.frame_opened(message)
        self._opened += 1
        if message.last:
            self._closing = self._outbox.holds_reports = True
        self.handle(opened)

    def _from_homesite(self, message: AnyMessage) -> None:
        match message:
            case messages.CloseParameters():
                self._closing = self._outbox.holds_reports = True
                self._tell_last()
            case messages.RouteResidency(route=route, sites=sites):
                check_told(self.prepared.net, route, sites)
            case messages.HoldJob(held=held):
                self._calls.hold(held)
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
        """Feed an event to the runner and carry out the instructions.

        An instruction can lead to an event at once, such as a call that refuses its arguments. Its turn comes when all
        instructions before it are carried out: what they send must not come behind what says that all was sent.
        """
        if self._handling:
            self._behind.append(event)
            return
        self._handling = True
        try:
            self._take_in(event)
            while self._behind:
                self._take_in(self._behind.popleft())
        finally:
            self._handling = False

    def _take_in(self, event: Event) -> None:
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
            self._behind.clear()
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
        outbox.failures.tell_further()
        self.told_last = True
        self._carrier.send(
            self.homesite, messages.Progress(self.job, (self.report(),), last=True, frames=outbox.take_held())
        )
        if self.on_last is not None:
            self._soon(self.on_last)

    def _flush_lines(self) -> None:
        self._calls.flush_lines(unfinished=False)

    def _outbox_flushed(self) -> None:
        if self._watched:
            self._tell_idle()

    def _tell_idle(self) -> None:
        """Tell the homesite that nothing goes on here, if that is so and it does not know it."""
        if self._runner.active > self._look_ups.waiting or self._outbox.iterations:
            return
        state = (dict(self._outbox.sent), dict(self._arrivals.received), len(self._arrivals.lost))
        if state != self._idle_told:
            self._idle_told = state
            self._outbox.send(self.homesite, messages.SiteIdle(self.job, *state))

    # Reports and the end

    def report(self) -> SiteReport:
        """Say how far this site is."""
        operations: list[OperationReport] = []
        sends: list[SendReport] = []
        tallies: list[TallyReport] = []
        waiting = self._runner.waiting
        for item, counted, plan in zip(self._transitions, self._statistics, self.prepared.plans, strict=True):
            if plan is not None:
                operations.append(counted.report(item.ir, waiting(item), plan.loading))
            counted.add_sends(item.ir, sends)
            if item.fired:
                tallies.append(TallyReport(item.ir.id, item.fired, item.counted))
        return SiteReport(
            self.site,
            tuple(operations),
            dict(self._outbox.bytes_sent),
            tuple(sends),
            tuple(tallies),
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
        self._calls.leave()
        self._leave_when_done()

    def _leave_when_done(self) -> None:
        if self._on_left is not None and (self._once is None or self._once.leave()):
            self._on_left()

    def close(self) -> None:
        """Give up what goes on."""
        self._calls.close()
        if self._on_left is None:
            self._outbox.failures.tell_further()
        self._outbox.close()
        self._look_ups.close()


_OWN_INSTRUCTIONS: dict[type[Instruction], Callable[[JobController, Any], Any]] = {
    events.StartCall: lambda it, i: it._calls.begin_call(i),
    events.StartCalls: lambda it, i: it._calls.begin_calls(i),
    events.PullStream: lambda it, i: it._calls.pull(i),
    events.CloseStream: lambda it, i: it._calls.close_stream(i),
    events.PauseLoops: lambda it, i: it._calls.pause_loops(i),
    events.FeedItem: lambda it, i: it._calls.feed(i),
    events.FeedEnd: lambda it, i: it._calls.feed_end(i),
    events.LookUpKey: lambda it, i: it._look_ups.look_up(i),
    events.StoreValue: lambda it, i: it._look_ups.store(i),
    events.ReleaseKey: lambda it, i: it._look_ups.release(i),
}
"""The instructions that do not just send something."""
