"""JobCalls: the calls of one job at one site, from the instruction to what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from dfmesh import values
from dfmesh.engine import events, messages
from dfmesh.engine.adapters import Raised, describe_own
from dfmesh.engine.call_lines import Whose
from dfmesh.engine.call_plan import CallOutcome, CallPlan
from dfmesh.engine.carrier import gauge
from dfmesh.engine.events import Event, Instruction
from dfmesh.engine.job_outbox import JobOutbox
from dfmesh.engine.kept_calls import Kept, OnceCalls
from dfmesh.engine.message_parts import Failure, JobLine
from dfmesh.engine.noted_calls import NotedCalls
from dfmesh.engine.prepared_nets import PreparedNet
from dfmesh.engine.pressure import Pressure
from dfmesh.engine.statistics import Statistics
from dfmesh.engine.tokens import StreamInput
from dfmesh.errors import ValueEncodingError

if TYPE_CHECKING:
    from dfmesh.engine.job_controller import SiteServices


class JobCalls(CallOutcome):
    """Carries out the instructions of one NetRunner that make calls, and hears what becomes of these."""

    def __init__(
        self,
        job: str,
        prepared: PreparedNet,
        services: SiteServices,
        once: OnceCalls | None,
        outbox: JobOutbox,
        statistics: list[Statistics],
        handle: Callable[[Event], None],
    ) -> None:
        """Make no call yet.

        Args:
            job: Id of the job.
            prepared: What it runs.
            services: What the site has for its jobs.
            once: Calls that must not run again if the job is begun again; None if it will not be.
            outbox: Sends what calls print; what waits there holds calls back.
            statistics: Of each transition.
            handle: Gets what becomes of calls.
        """
        self._job = job
        self._site = prepared.net.site
        self._homesite = prepared.net.homesite
        self._runner = prepared.runner
        self._transitions = self._runner.wired.transitions
        self._plans = prepared.plans
        self._once = once
        self._outbox = outbox
        self._statistics = statistics
        self._handle = handle
        self._soon = services.soon
        self._broken = services.broken
        self._noted = NotedCalls(job, services.call_log)
        self._pressure = Pressure(gauge(services.carrier), outbox.bytes_sent.keys(), self._carry_out)
        # Statements of which the client was told that what they print stays here.
        self._silent_told: set[str] = set()
        self._leaving = False
        self._closed = False
        self._calls = services.make_calls(self)

    # Instructions

    def hold(self, held: bool) -> None:
        """Begin nothing, or no longer, whatever waits for the own peers."""
        self._pressure.stop(held)

    def _carry_out(self, instruction: Instruction) -> None:
        """Carry out an instruction that was held back."""
        try:
            match instruction:
                case events.StartCall():
                    self._start_call(instruction)
                case events.StartCalls():
                    self._start_calls(instruction)
                case events.PullStream(call=call, count=count) if call in self._runner.calls:
                    self._calls.pull(call, count)
                case events.PauseLoops():
                    self._resume_loops()
        except Exception as error:
            if self._broken is None:
                raise
            self._broken(self._job, error)

    def begin_call(self, instruction: events.StartCall) -> None:
        """Begin a call, now or when there is room for what it makes."""
        # One that takes a stream makes room where that comes from.
        if instruction.fed or not self._pressure.hold(instruction):
            self._start_call(instruction)

    def begin_calls(self, instruction: events.StartCalls) -> None:
        """Begin several calls, as `begin_call`."""
        if not self._pressure.hold(instruction):
            self._start_calls(instruction)

    def pull(self, instruction: events.PullStream) -> None:
        """Ask a generator for items, as `begin_call`."""
        if not self._pressure.hold(instruction):
            self._calls.pull(instruction.call, instruction.count)

    def pause_loops(self, instruction: events.PauseLoops) -> None:
        """Let loops go on behind all that is there to be done, and as `begin_call`."""
        if not self._pressure.hold(instruction):
            self._resume_loops()

    def _resume_loops(self) -> None:
        self._soon(lambda: self._handle(events.LoopsResumed()))

    def _start_call(self, instruction: events.StartCall) -> None:
        position = instruction.transition
        plan = self._plans[position]
        if plan is None:
            raise TypeError(f"{self._transitions[position].ir.name} makes no calls")
        self._statistics[position].started(instruction.call)
        if self._once is not None and position in self._once.positions and self._is_kept(self._once, instruction):
            return
        self._noted.started(instruction.call, self._transitions[position].ir.id, instruction.frame)
        fed = instruction.fed
        self._start_with(instruction.call, plan, instruction.arguments, fed)

    def _start_with(self, call: int, plan: CallPlan, arguments: dict[str, Any], fed: tuple[int, ...] = ()) -> None:
        # What an adapter does to its arguments must not reach the others at this site who have the same values.
        try:
            own = {
                name: item if fed and type(item) is StreamInput else values.private_copy(item)
                for name, item in arguments.items()
            }
        except ValueEncodingError as error:  # A part of a value can be of a type that the whole is not made of.
            raised = describe_own(error)
            self._soon(lambda: self._refuse(call, raised))
        else:
            self._calls.start(call, plan, own, fed)

    def _refuse(self, call: int, raised: Raised) -> None:
        if not self._closed and not self._leaving and call in self._runner.calls:
            self.raised(call, raised, 0.0)

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
        self._noted.all_started(first, self._transitions[position].ir.id, frames)
        try:
            given = _private(instruction.arguments)
        except ValueEncodingError:
            for call, arguments in enumerate(instruction.arguments, first):
                self._start_with(call, plan, arguments)
        else:
            self._calls.start_all(first, plan, given)

    def _is_kept(self, once: OnceCalls, instruction: events.StartCall) -> bool:
        """Give what the call gave in an earlier attempt, if it was made there and must not run again."""
        call = instruction.call
        kept = once.begin(call, instruction.transition, instruction.frame, fed=bool(instruction.fed))
        if kept is not None:
            self._soon(lambda: self._give_kept(call, kept))
        return kept is not None

    def _give_kept(self, call: int, kept: Kept) -> None:
        if self._closed or self._leaving:
            return
        self._statistics_of(call).ended(call, 0.0, failed=kept.failure is not None)
        if kept.failure is None:
            self._handle(events.CallReturned(call, kept.value))
        else:
            self._handle(events.CallRaised(call, kept.failure, passed_on=kept.passed_on))

    def _keep(self, call: int, kept: Kept) -> None:
        if self._once is not None:
            self._once.ended(call, kept)

    def _call_over(self, call: int, seconds: float, *, failed: bool) -> None:
        self._noted.ended(call)
        self._statistics_of(call).ended(call, seconds, failed=failed)

    def _statistics_of(self, call: int) -> Statistics:
        return self._statistics[self._runner.calls[call][0].position]

    def returned(self, call: int, value: Any, seconds: float) -> None:
        """A call has ended with a value. One that cannot be sent is an error here, wherever it would have gone."""
        try:
            value = values.private_copy(value)  # The adapter may keep the original, and change it later.
        except ValueEncodingError as error:
            self.raised(call, describe_own(error), seconds)
            return
        counted = self._statistics_of(call)
        counted.returned(value)
        self._noted.ended(call)
        counted.ended(call, seconds, failed=False)
        if self._once is not None:
            self._once.ended(call, Kept(value))
        self._handle(events.CallReturned(call, value))

    def all_returned(self, calls: Sequence[int], given: list[Any], seconds: list[float]) -> None:
        """Calls have ended with values."""
        if type(calls) is range and len(calls) > 1:  # They began together.
            position = self._runner.calls[calls[0]][0].position
            self._alike_returned(position, calls, given, seconds)
            return
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

    def _alike_returned(self, position: int, calls: Sequence[int], given: list[Any], seconds: list[float]) -> None:
        """Calls of one transition have ended with values."""
        if self._once is not None or not values.are_settled(given):
            for call, value, duration in zip(calls, given, seconds, strict=True):
                self.returned(call, value, duration)
            return
        if not values.is_unchanging(given):
            given = values.settled(given)
        self._statistics[position].all_returned(calls, given, seconds)
        self._noted.all_ended(calls)
        self._handle(events.CallsReturned(calls, given))

    def raised(self, call: int, raised: Raised, seconds: float) -> None:
        """A call has ended with an error."""
        self._call_over(call, seconds, failed=True)
        transition, frame = self._runner.calls[call]
        ir = transition.ir
        failure = Failure(
            self._site,
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
        self._handle(events.CallRaised(call, failure, open_text=raised.shows_no_value))

    def broken(self, call: int, failure: Failure, seconds: float) -> None:
        """A call has ended with the error of a stream that it was fed with."""
        self._call_over(call, seconds, failed=True)
        self._keep(call, Kept(None, failure, passed_on=True))
        self._handle(events.CallRaised(call, failure, passed_on=True))

    def taken(self, call: int, index: int, count: int) -> None:
        """A call has taken items of a stream that it is fed with."""
        self._handle(events.FedItemsTaken(call, index, count))

    def streams(self, call: int) -> None:
        """A call has returned a generator."""
        if self._once is not None:
            self._once.streams(call)
        self._handle(events.StreamOpened(call))

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
            self._handle(events.StreamItems(call, items, more or refused is not None))
        if refused is not None and call in self._runner.calls:
            self._calls.drop(call)
            self.raised(call, describe_own(refused), 0.0)

    def whose(self, call: int) -> Whose | None:
        """As `CallOutcome.whose`."""
        found = self._runner.calls.get(call)
        if found is None:
            return None
        ir = found[0].ir
        return ir.name, ir.node, found[1]

    def said(self, lines: tuple[JobLine, ...], dropped: int) -> None:
        """Calls have printed or logged lines."""
        texts = self._runner.wired.texts
        if texts is not None:
            lines = tuple(texts.lines(lines, self._silent_told))
            if not (lines or dropped):
                return
        self._outbox.send(self._homesite, messages.JobLines(self._job, self._site, lines, dropped))

    def exhausted(self, call: int) -> None:
        """A generator has no more items."""
        self._call_over(call, 0.0, failed=False)
        self._handle(events.StreamEnded(call))

    def feed(self, instruction: events.FeedItem) -> None:
        """Give an item of a stream to a call."""
        self._calls.feed(instruction.call, instruction.input, values.private_copy(instruction.value))

    def feed_end(self, instruction: events.FeedEnd) -> None:
        """Tell a call that a stream has no more items."""
        self._calls.feed_end(instruction.call, instruction.input, instruction.failure)

    def close_stream(self, instruction: events.CloseStream) -> None:
        """Give up a generator."""
        self._calls.drop(instruction.call)
        self._soon(lambda: self._stream_closed(instruction.call))

    def _stream_closed(self, call: int) -> None:
        if not self._closed:
            self.exhausted(call)

    # The end

    def flush_lines(self, *, unfinished: bool = True) -> None:
        """Send what calls have said, and of those that go on what has not come to the end of a line, if asked to."""
        self._calls.flush_lines(unfinished=unfinished)

    def leave(self) -> None:
        """Begin no more calls, though some may still end."""
        self._leaving = True
        self._pressure.drop()

    def close(self) -> None:
        """Give up what goes on."""
        self._closed = True
        self._pressure.drop()
        self._calls.close()
        self._handle = _nobody
        self._noted.clear()


def _nobody(_event: Event) -> None:
    """Hears of calls of a job that has ended."""


def _private(arguments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copy arguments, since what an adapter does to them must not reach others at this site with the same values."""
    if values.is_unchanging(chain.from_iterable(map(dict.values, arguments))):
        return arguments
    return [{name: values.private_copy(item) for name, item in given.items()} for given in arguments]
