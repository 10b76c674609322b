"""JobOutbox: what one job sends from one site, packed, counted and in order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import is_, itemgetter
from typing import Any, Final, Protocol

from dfmesh.engine import events, messages
from dfmesh.engine.bound_texts import keep_text
from dfmesh.engine.carrier import Carrier
from dfmesh.engine.failure_reports import FailureReports
from dfmesh.engine.frame_run import FrameRun, Frames
from dfmesh.engine.message_parts import Failure, Payload
from dfmesh.engine.messages import AnyMessage
from dfmesh.engine.portions import portions
from dfmesh.engine.statistics import Statistics
from dfmesh.engine.tokens import SKIPPED, Failed, NotSelected
from dfmesh.engine.wiring import WiredNet
from dfmesh.errors import ValueEncodingError
from dfmesh.netir import Frame, Port

Soon = Callable[[Callable[[], None]], Any]
"""Runs a function when the event loop has handled what is there now."""

MOST_TEXTS = 1000
"""Errors of one job that a site writes to its log since a rule of residency keeps their texts there."""

_TOP: Final = itemgetter(0)


_ALONG_ROUTES: Final = (messages.TokenPackage, messages.TokenPackages, messages.StreamPackage)


class SendingServices(Protocol):
    """What a site has to send with.

    Attributes:
        carrier: Sends messages.
        soon: Defers a function to the end of the current turn of the event loop.
        now: Gives the time, in seconds since 1970.
    """

    @property
    def carrier(self) -> Carrier: ...  # noqa: D102
    @property
    def soon(self) -> Soon: ...  # noqa: D102
    @property
    def now(self) -> Callable[[], float]: ...  # noqa: D102


class JobOutbox:
    """Carries out the instructions of one NetRunner that send something.

    Attributes:
        sent: Messages sent so far that other sites count, by receiving site.
        bytes_sent: Bytes of all messages sent so far, by peer.
        reported: Parameter sets of which the homesite was told that they are done here.
        holds_reports: Whether reports of frames are held until `send_held` or `take_held`.
        iterations: Iterations done here of which their loops have not been told yet, by site and scope.
        failures: Tells of what failed here.
    """

    def __init__(
        self,
        job: str,
        wired: WiredNet,
        services: SendingServices,
        statistics: list[Statistics],
        on_flushed: Callable[[], None],
        flush_lines: Callable[[], None],
    ) -> None:
        """Get ready to send.

        Args:
            job: Id of the job.
            wired: The site's part of it.
            services: What moves the messages.
            statistics: Of each transition; what it sends is noted there.
            on_flushed: Called when what had been put off to the end of a turn was sent.
            flush_lines: As `FailureReports` takes it.
        """
        self.sent: dict[str, int] = {}
        self.bytes_sent: dict[str, int] = {}
        self.reported = 0
        self.holds_reports = False
        self.iterations: dict[tuple[str, int], list[Frames]] = {}
        self._job = job
        self._wired = wired
        self._site = wired.net.site
        self._homesite = wired.net.homesite
        self._carrier = services.carrier
        self._soon = services.soon
        self._statistics = statistics
        self._on_flushed = on_flushed
        self.failures = FailureReports(job, wired, self.send, statistics, services.now, flush_lines)
        self._yields: dict[int, int] = {}
        self._held: list[tuple[Frame, int]] = []
        # Streams that ended early, since an item could not be sent; what still comes of them is dropped.
        self._broken_streams: set[tuple[int, Frame]] = set()
        self._packed: dict[int, tuple[list[Any], Payload]] = {}
        self._kept = 0
        net = wired.net
        # Of routes on which a rule of residency binds what is sent, those whose receivers were not told so yet.
        self._untold = {route: sites for route, sites in net.residency.items() if route not in net.arrivals}

    def carry_out(self, instruction: events.Instruction) -> None:
        """Carry out an instruction that sends something."""
        SENDERS[type(instruction)](self, instruction)

    def event_over(self) -> None:
        """All instructions of one event have been carried out."""
        if self._packed:
            self._packed.clear()

    def close(self) -> None:
        """Tell nobody of what is sent any more."""
        self._on_flushed = _nobody
        self.failures.close()

    def send(self, peer: str, message: AnyMessage) -> int:
        """Send a message and note its size."""
        size = self._carrier.send(peer, message)
        self.bytes_sent[peer] = self.bytes_sent.get(peer, 0) + size
        return size

    def _send_site(self, site: str, message: AnyMessage) -> int:
        if self._untold:
            self._tell_residency(site, message)
        self.sent[site] = self.sent.get(site, 0) + 1
        return self.send(site, message)

    def _tell_residency(self, site: str, message: AnyMessage) -> None:
        """Say first where it may be what is about to be sent, once per route."""
        if isinstance(message, _ALONG_ROUTES) and message.route in self._untold:
            self.send(site, messages.RouteResidency(self._job, message.route, self._untold.pop(message.route)))

    # To the homesite

    def _report_failure(self, instruction: events.ReportFailure) -> None:
        self.failures.failed(instruction.transition, instruction.failure, tolerated=instruction.tolerated)

    def _keep_text(self, instruction: events.KeepText) -> None:
        self._keep(instruction.failure)

    def _keep(self, failure: Failure) -> None:
        """Write to the log of the site what is not told; not without end, as where all iterations of a loop fail."""
        self._kept += 1
        if self._kept <= MOST_TEXTS:
            keep_text(failure, last=self._kept == MOST_TEXTS)

    def _report_frame(self, instruction: events.ReportFrame) -> None:
        frame = instruction.frame
        self.reported += 1
        yields = self._yields.pop(frame[0], 0)
        if self.holds_reports:
            self._held.append((frame, yields))
        else:
            self.send(self._homesite, messages.FrameReport(self._job, frame, yields))

    def send_held(self) -> None:
        """Send the reports of frames that were held."""
        for frame, yields in self.take_held():
            self.send(self._homesite, messages.FrameReport(self._job, frame, yields))

    def take_held(self) -> tuple[tuple[Frame, int], ...]:
        """Give the reports of frames that were held, as frame and results, to be sent with something else."""
        held, self._held = self._held, []
        return tuple(held)

    def _send_yield(self, instruction: events.SendYield) -> None:
        self._send_result(instruction.transition, instruction.place, instruction.frame, instruction.value)

    def _send_result(self, transition: int, place: str, frame: Frame, value: Any) -> None:
        ir = self._wired.transitions[transition].ir
        try:
            payload = self._pack(value)
        except ValueEncodingError as error:
            self._unsendable(transition, frame, error)
            return
        self._yields[frame[0]] = self._yields.get(frame[0], 0) + 1
        package = messages.YieldPackage(self._job, place, frame, ir.node, self._site, payload)
        self._statistics[transition].sent(None, self.send(self._homesite, package))

    def _send_yields(self, instruction: events.SendYields) -> None:
        transition, place, frames = instruction.transition, instruction.place, instruction.frames
        ir = self._wired.transitions[transition].ir
        for top, start, stop in _by_top(frames):
            for begin, values, payload in self._pack_all(instruction.values[start:stop]):
                first = start + begin
                sent = frames[first : first + len(values)]
                if payload is None:
                    for frame, value in zip(sent, values, strict=True):
                        self._send_result(transition, place, frame, value)
                    continue
                count = len(values)
                self._yields[top] = self._yields.get(top, 0) + count
                package = messages.YieldPackages(self._job, place, _sendable(sent), ir.node, self._site, payload)
                self._statistics[transition].sent(None, self.send(self._homesite, package), count)

    # To other sites

    def _send_token(self, instruction: events.SendToken) -> None:
        route, frame, token = instruction.route, instruction.frame, instruction.token
        if isinstance(token, Failed):
            package = messages.TokenPackage(
                self._job, route, frame, failure=token.failure, not_selected=isinstance(token, NotSelected)
            )
        elif token is SKIPPED:
            package = messages.TokenPackage(self._job, route, frame, skipped=True)
        elif token is None:
            package = messages.TokenPackage(self._job, route, frame)
        else:
            try:
                package = messages.TokenPackage(self._job, route, frame, self._pack(token))
            except ValueEncodingError as error:
                failure = self._unsendable(instruction.transition, frame, error, route)
                package = messages.TokenPackage(self._job, route, frame, failure=failure)
        self._statistics[instruction.transition].sent(route, self._send_site(instruction.site, package))

    def _send_tokens(self, instruction: events.SendTokens) -> None:
        site, route, frames = instruction.site, instruction.route, instruction.frames
        transition = instruction.transition
        for first, tokens, payload in self._pack_all(instruction.tokens):
            sent = frames[first : first + len(tokens)]
            if payload is None:
                for frame, token in zip(sent, tokens, strict=True):
                    self._send_token(events.SendToken(site, route, frame, token, transition))
                continue
            count = len(tokens)
            package = messages.TokenPackages(self._job, route, _sendable(sent), payload)
            self._statistics[transition].sent(route, self._send_site(site, package), count)

    def _iterations_done(self, instruction: events.SendIterationsDone) -> None:
        if not self.iterations:
            self._soon(self.flush)
        self.iterations.setdefault((instruction.site, instruction.scope), []).append(instruction.frames)

    def flush(self) -> None:
        """Send what has been put off to the end of the turn."""
        done, self.iterations = self.iterations, {}
        for (site, scope), parts in done.items():
            for frames in _joined(parts):
                self._send_site(site, messages.IterationsDone(self._job, scope, frames))
        self._on_flushed()

    def _send_scope_ended(self, instruction: events.SendScopeEnded) -> None:
        scope, frame, count = instruction.scope, instruction.frame, instruction.count
        self._send_site(instruction.site, messages.ScopeEnded(self._job, scope, frame, count, instruction.failure))

    def _send_stream_items(self, instruction: events.SendStreamItems) -> None:
        route, frame = instruction.route, instruction.frame
        for _, values, payload in self._pack_all(instruction.values):
            if payload is None:
                for value in values:
                    self._send_stream_item(instruction, value)
            elif (route, frame) not in self._broken_streams:
                package = messages.StreamPackage(self._job, route, frame, payload, count=len(values))
                size = self._send_site(instruction.site, package)
                self._statistics[instruction.transition].sent(route, size, len(values))

    def _send_stream_item(self, instruction: events.SendStreamItems, value: Any) -> None:
        route, frame = instruction.route, instruction.frame
        if (route, frame) in self._broken_streams:
            return
        try:
            package = messages.StreamPackage(self._job, route, frame, self._pack(value))
        except ValueEncodingError as error:
            self._broken_streams.add((route, frame))
            failure = self._unsendable(instruction.transition, frame, error)
            package = messages.StreamPackage(self._job, route, frame, failure=failure)
        self._statistics[instruction.transition].sent(route, self._send_site(instruction.site, package))

    def _send_stream_end(self, instruction: events.SendStreamEnd) -> None:
        route, frame = instruction.route, instruction.frame
        if (route, frame) in self._broken_streams:
            self._broken_streams.discard((route, frame))
        else:
            end = messages.StreamPackage(self._job, route, frame, failure=instruction.failure)
            self._send_site(instruction.site, end)

    def _send_stream_credit(self, instruction: events.SendStreamCredit) -> None:
        route, frame, count = instruction.route, instruction.frame, instruction.count
        credit = messages.StreamCredit(self._job, route, frame, count, instruction.unwanted)
        self._send_site(instruction.site, credit)

    # Values

    def _pack(self, value: Any) -> Payload:
        """Pack a value once for all the sites that an event sends it to."""
        known = self._packed.get(id(value))
        if known is None or len(known[0]) != 1:
            known = self._packed[id(value)] = [value], self._carrier.pack(value)
        return known[1]

    def _pack_together(self, portion: list[Any]) -> Payload:
        """Pack values as one list, once for all the sites that an event sends them to."""
        first = id(portion[0])
        known = self._packed.get(first)
        if known is not None and len(known[0]) == len(portion) and all(map(is_, known[0], portion)):
            return known[1]
        payload = self._carrier.pack(portion)
        if payload.buffers:
            self._packed[first] = portion, payload
        return payload

    def _pack_all(self, values: list[Any]) -> Iterator[tuple[int, list[Any], Payload | None]]:
        """Cut values into portions and pack each as one list; without a payload if they are to be sent one by one.

        Yields:
            Position of the first one, the values, the packed list.
        """
        for first, portion in portions(values):
            payload = None
            if len(portion) > 1:
                with contextlib.suppress(ValueEncodingError):  # One of them: what it is, it says when sent alone.
                    payload = self._pack_together(portion)
            yield first, portion, payload

    def _unsendable(
        self, transition: int, frame: Frame, error: ValueEncodingError, along: int | None = None
    ) -> Failure:
        """Make the failure of a value that cannot be sent; what a loop gives its iterations is theirs to tolerate."""
        wired = self._wired.transitions[transition]
        ir, scope = wired.ir, wired.ir.scope
        if wired.body is not None and any(route.id == along and route.port is Port.ELEMENT for route in ir.routes):
            scope = wired.body
        failure = Failure(self._site, ir.name, ir.node, frame, ir.location, type(error).__name__, str(error))
        to_client = failure
        if self._wired.texts is not None:
            full = failure
            to_client, failure = self._wired.texts.told(ir.id, full)
            if failure is not full:
                self._keep(full)
        self.failures.failed(transition, to_client, tolerated=self._wired.scopes[scope].tolerant)
        return failure


def _by_top(frames: Frames) -> Iterator[tuple[int, int, int]]:
    """Part frames by their parameter sets: number of the set, position of the first, position behind the last."""
    if type(frames) is FrameRun and frames.around:
        yield frames.around[0], 0, len(frames)
        return
    start = 0
    for top, group in groupby(frames, _TOP):
        stop = start + sum(1 for _ in group)
        yield top, start, stop
        start = stop


def _sendable(frames: Frames) -> FrameRun | tuple[Frame, ...]:
    return frames if type(frames) is FrameRun else tuple(frames)


def _joined(parts: list[Frames]) -> list[FrameRun | tuple[Frame, ...]]:
    """Put together frames that follow one another, and all those that do not."""
    runs: list[FrameRun] = []
    others: list[Frame] = []
    for part in parts:
        if type(part) is not FrameRun or part.count == 1:
            others += part
        elif runs and runs[-1].around == part.around and runs[-1].first + runs[-1].count == part.first:
            runs[-1] = FrameRun(part.around, runs[-1].first, runs[-1].count + part.count)
        else:
            runs.append(part)
    return [*runs, tuple(others)] if others else [*runs]


def _nobody() -> None:
    pass


SENDERS: Final[dict[type[events.Instruction], Callable[[JobOutbox, Any], None]]] = {
    events.SendToken: JobOutbox._send_token,
    events.SendTokens: JobOutbox._send_tokens,
    events.SendYield: JobOutbox._send_yield,
    events.SendYields: JobOutbox._send_yields,
    events.SendIterationsDone: JobOutbox._iterations_done,
    events.SendScopeEnded: JobOutbox._send_scope_ended,
    events.SendStreamItems: JobOutbox._send_stream_items,
    events.SendStreamEnd: JobOutbox._send_stream_end,
    events.SendStreamCredit: JobOutbox._send_stream_credit,
    events.KeepText: JobOutbox._keep_text,
    events.ReportFailure: JobOutbox._report_failure,
    events.ReportFrame: JobOutbox._report_frame,
}
