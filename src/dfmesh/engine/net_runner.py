"""NetRunner: runs one NetIR at one site, as a pure state machine.

`handle(event)` returns the instructions that the event leads to. There is no clock, task, socket or thread in here;
JobController (on asyncio) and the simulator (on a virtual clock) carry the instructions out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from dfmesh.engine import events
from dfmesh.engine.bound_texts import BoundTexts
from dfmesh.engine.caching import Caching
from dfmesh.engine.calling import Calling
from dfmesh.engine.choosing import Reader, choose
from dfmesh.engine.events import Event, Instruction
from dfmesh.engine.failed_iterations import explained
from dfmesh.engine.frame_run import Frames
from dfmesh.engine.gathering import Gatherings
from dfmesh.engine.loops import OPENED_PER_EVENT, Loops
from dfmesh.engine.message_parts import Failure
from dfmesh.engine.open_calls import OpenCalls
from dfmesh.engine.streams import StreamItems, Streams, StreamToken
from dfmesh.engine.tokens import ABNORMAL, MISSING, SKIPPED, Failed, NotSelected, Token
from dfmesh.engine.wiring import FireRule, OuterInput, Slot, Target, WiredNet, WiredScope, WiredTransition
from dfmesh.errors import DfmeshError
from dfmesh.netir import (
    ROOT_SCOPE,
    Branch,
    Call,
    Choose,
    Collect,
    Evaluate,
    Frame,
    LookUp,
    Loop,
    NetIR,
    Port,
    Reduce,
    Role,
    Route,
    SendYield,
    Store,
    select,
)

_Ready = tuple[WiredTransition, Frame, list[Any], bool]


class NetRunner:
    """Runs the part of a job that one site has.

    Every transition fires exactly once per frame of its scope, with a value, an error or a skip; a scope's frame is
    done here when all that this site has in it is, and then everything stored for it is dropped.

    Attributes:
        wired: The net.
        not_alone: Reductions that may not give a single value as it is.
        site: Whose it is.
        calls: Calls going on: transition and frame by the number of the call.
        instructions: What the present event has led to so far.
    """

    def __init__(self, net: NetIR, not_alone: frozenset[int] = frozenset(), texts: BoundTexts | None = None) -> None:
        """Get ready to run a net.

        Args:
            net: The net.
            not_alone: Reductions, by id of the transition, that may not give a single value as it is.
            texts: What may be told of statements that touch what a rule of residency binds; None if none does.

        Raises:
            ValueDecodingError: a constant in it is not a value.
        """
        self.wired = WiredNet(net, texts)
        self.not_alone = not_alone
        self.site = net.site
        self.calls = OpenCalls()
        self._ready: deque[_Ready] = deque()
        # What is done in several frames at once, to be counted at the end: scope, frames, number of things.
        self._ending: list[tuple[WiredScope, Frames, int]] = []
        self.instructions: list[Instruction] = []
        self.calling = Calling(self)
        self.loops = Loops(self)
        self.gatherings = Gatherings(self)
        self.streams = Streams(self)
        self.caching = Caching(self)

    def renew(self) -> bool:
        """Be as new, to run the same net for another job.

        Returns:
            Whether that is so; False if something of the job before is left.
        """
        if self.calls or self._ready or self._ending or self.instructions or self.loops.paused:
            return False
        self.calling.renew()
        return self.streams.idle and self.caching.idle and self.wired.renew()

    @property
    def active(self) -> int:
        """How many calls and loops go on by themselves; a generator that nobody asks for an item does not."""
        return len(self.calls) - self.streams.paused + len(self.loops.paused)

    def handle(self, event: Event) -> list[Instruction]:
        """Take in an event and give the instructions it leads to, in order."""
        self.loops.left = OPENED_PER_EVENT
        _HANDLERS[type(event)](self, event)
        ready, ending = self._ready, self._ending
        while ready or ending:
            while ready:
                self._fire(*ready.popleft())
            if ending:
                self._all_done(*ending.pop(0))
        given, self.instructions = self.instructions, []
        return given

    def _stream_credited(self, event: events.StreamCreditArrived) -> None:
        if event.unwanted:
            self.streams.unwanted(event.route, event.frame)
        else:
            self.streams.credited(event.route, event.frame, event.count)

    def _token_arrived(self, event: events.TokenArrived) -> None:
        for target in self.wired.arrivals.get(event.route, ()):
            self.deliver(target, event.frame, event.token)

    def _tokens_arrived(self, event: events.TokensArrived) -> None:
        self._deliver_all(self.wired.arrivals.get(event.route, ()), event.frames, event.tokens)

    def emit(self, instruction: Instruction) -> None:
        """Add an instruction to the answer to the current event."""
        self.instructions.append(instruction)

    def waiting(self, transition: WiredTransition) -> int:
        """Count the frames for which some tokens of a transition are there and some are not."""
        behind_outer = sum(len(slots) for outer in transition.outers for slots in outer.waiting.values())
        return len(transition.slots) + behind_outer

    def _open_frame(self, event: events.FrameOpened) -> None:
        frame = event.frame
        for name, targets in self.wired.parameters.items():
            for target in targets:
                self.deliver(target, frame, event.parameters[name])
        for target in self.wired.starts:
            self.deliver(target, frame, None)
        root = self.wired.scopes[ROOT_SCOPE]
        if root.size == 0:
            self.frames_done(root, (frame,))

    # Tokens

    def deliver(self, target: Target, frame: Frame, token: Token) -> None:
        """Put a token on a place; fire what it completes."""
        transition, index, outer, gathered = target
        if gathered:
            self.gatherings.gather(transition, frame, token)
        elif outer is not None:
            self._deliver_outer(transition, outer, frame, token)
        elif transition.alone:
            values = transition.template.copy()
            values[index] = token
            self._ready.append((transition, frame, values, isinstance(token, ABNORMAL)))
        else:
            slots = transition.slots
            slot = slots.pop(frame, None)
            if slot is None:
                slot = Slot(transition.template, transition.own)
            slot.values[index] = token
            if isinstance(token, ABNORMAL):
                slot.abnormal = True
            slot.missing -= 1
            if slot.missing:
                slots[frame] = slot
            else:
                self._complete(transition, frame, slot)

    def _deliver_all(self, targets: Sequence[Target], frames: Frames, tokens: list[Any]) -> None:
        """Put values on places, each on all places before the next one. None is a failure, a skip or a stream."""
        if len(targets) == 1 and targets[0][0].alone:
            self._fire_all(targets[0][0], frames, tokens)
            return
        for frame, token in zip(frames, tokens, strict=True):
            for target in targets:
                self.deliver(target, frame, token)

    def _fire_all(self, transition: WiredTransition, frames: Frames, tokens: list[Any]) -> None:
        """Fire a transition with a single input for several frames."""
        if transition.argument is not None and not self._ready:
            name = transition.argument
            self.calling.start_all(transition, frames, [{name: token} for token in tokens])
        elif isinstance(transition.ir.action, SendYield) and transition.streamable == 0 and not self._ready:
            self.instructions.append(events.SendYields(transition.position, transition.ir.action.place, frames, tokens))
            self.finish_all_sent(transition, frames)
        else:
            for frame, token in zip(frames, tokens, strict=True):
                self._ready.append((transition, frame, [token], False))

    def _deliver_outer(self, transition: WiredTransition, outer: OuterInput, frame: Frame, token: Token) -> None:
        outer.values[frame] = token
        for waiting_frame, slot in outer.waiting.pop(frame, ()):
            self._complete(transition, waiting_frame, slot)
        self.done(self.wired.scopes[outer.scope], frame)

    def _complete(self, transition: WiredTransition, frame: Frame, slot: Slot) -> None:
        for outer in transition.outers:
            prefix = frame[: outer.depth]
            token = outer.values.get(prefix, MISSING)
            if token is MISSING:
                outer.waiting.setdefault(prefix, []).append((frame, slot))
                return
            slot.values[outer.index] = token
            if isinstance(token, ABNORMAL):
                slot.abnormal = True
        self._ready.append((transition, frame, slot.values, slot.abnormal))

    def send(self, transition: WiredTransition, port: Port, frame: Frame, token: Token) -> None:
        """Send a token along all routes of a port."""
        for route in transition.routes.get(port, ()):
            self.send_along(transition, route, frame, token)

    def send_along(self, transition: WiredTransition, route: Route, frame: Frame, token: Token) -> None:
        """Send a token, or the part of it that is selected, along one route."""
        if route.select and not isinstance(token, ABNORMAL):
            try:
                token = select(token, route.select)
            except DfmeshError as error:
                failure = explained(self._failure(transition, frame, error), [token])
                token = self._not_selected(transition, route, failure)
        if route.site == self.site:
            for target in self.wired.arrivals[route.id]:
                self.deliver(target, frame, token)
        else:
            self.instructions.append(events.SendToken(route.site, route.id, frame, token, transition.position))

    def _not_selected(self, transition: WiredTransition, route: Route, failure: Failure) -> NotSelected:
        """Make the token of what a selector did not fit; its text stays here if it may show a bound value."""
        if self.wired.texts is not None:
            full = failure
            to_client, shown = self.wired.texts.told(transition.ir.id, full)
            failure = to_client if route.site == self.site else shown
            if failure is not full:
                self.instructions.append(events.KeepText(full))
        return NotSelected(failure)

    def send_all_along(self, transition: WiredTransition, route: Route, frames: Frames, tokens: list[Any]) -> None:
        """Send values, or the parts of them that are selected, along one route."""
        if route.select or len(frames) == 1:
            for frame, token in zip(frames, tokens, strict=True):
                self.send_along(transition, route, frame, token)
        elif route.site == self.site:
            self._deliver_all(self.wired.arrivals[route.id], frames, tokens)
        else:
            self.instructions.append(events.SendTokens(route.site, route.id, frames, tokens, transition.position))

    # Firing

    def _fire(self, transition: WiredTransition, frame: Frame, values: list[Any], abnormal: bool) -> None:
        fire = transition.fire
        if fire is None:
            fire = transition.fire = self._rule_of(transition)
        if abnormal and not transition.judges_itself:
            outcome = self._outcome(transition, values)
            if outcome is not None:
                self._decided(transition, frame, values, outcome)
                return
            values = Reader(values)
        try:
            fire(transition, frame, values)
        except Exception as error:
            self._decided(transition, frame, values, self.failed(transition, frame, error, given=values))

    def _rule_of(self, transition: WiredTransition) -> FireRule:
        """Give the rule by which a transition fires when all its inputs are there."""
        match transition.ir.action:
            case Call():
                return self.calling.fire
            case Evaluate():
                return lambda transition, frame, values: self.finish(transition, frame, transition.evaluate(values))
            case SendYield():
                return self._yield
            case Loop():
                return self.loops.start
            case Branch():
                return self._branch
            case LookUp():
                return self.caching.look_up
            case Collect() | Reduce():
                return self.gatherings.inputs_complete
            case Store():
                return self.caching.store
            case Choose():
                return lambda transition, frame, values: self.finish(
                    transition, frame, choose(self, transition, frame, values)
                )

    def _outcome(self, transition: WiredTransition, values: list[Any]) -> Token:
        """Give what a failed or skipped input makes of a transition; None if it runs all the same."""
        failed = None
        for role, token in zip(transition.roles, values, strict=True):
            if token is SKIPPED and role is not Role.TRIGGER:
                return SKIPPED
            if type(token) is Failed and failed is None:
                failed = token
        return failed

    def _decided(self, transition: WiredTransition, frame: Frame, values: list[Any], outcome: Token) -> None:
        """Let a transition end without running, with the failure or skip of an input."""
        for token in values:
            if isinstance(token, StreamToken):
                token.stream.leave()
                self.streams.left(token.stream)
        match transition.ir.action:
            case Loop():
                failure = outcome.failure if isinstance(outcome, Failed) else None
                self.loops.end_unopened(transition, frame, failure)
                self.finish(transition, frame, outcome)
            case Branch() | LookUp():
                for port in (Port.THEN, Port.ELSE, Port.MISS):
                    self.send(transition, port, frame, outcome)
                self.finish(transition, frame, outcome)
            case Collect() | Reduce():
                self.gatherings.decided(transition, frame, outcome)
            case _:
                self.finish(transition, frame, outcome)

    def _yield(self, transition: WiredTransition, frame: Frame, values: list[Any]) -> None:
        index = transition.streamable
        token = values[index] if index is not None else None
        if isinstance(token, StreamToken):
            self.streams.yield_items(transition, frame, token)
            return
        place = transition.ir.action.place  # type: ignore[union-attr]
        if isinstance(token, StreamItems):
            for number, item in enumerate(token.items):
                self.instructions.append(events.SendYield(transition.position, place, (*frame, number), item))
        else:
            self.instructions.append(events.SendYield(transition.position, place, frame, transition.evaluate(values)))
        self.finish(transition, frame, None)

    def _branch(self, transition: WiredTransition, frame: Frame, values: list[Any]) -> None:
        truth = bool(transition.evaluate(values))
        transition.count(int(truth))
        self.send(transition, Port.THEN, frame, None if truth else SKIPPED)
        self.send(transition, Port.ELSE, frame, SKIPPED if truth else None)
        self.finish(transition, frame, None)

    def finish(self, transition: WiredTransition, frame: Frame, token: Token) -> None:
        """Send what a transition made, and count it as done."""
        if transition.routes:
            self.send(transition, Port.VALUE, frame, token)
        self.finish_sent(transition, frame, token)

    def finish_sent(self, transition: WiredTransition, frame: Frame, token: Token) -> None:
        """Count a transition as done whose value has been sent."""
        if transition.awaited:
            self.send(transition, Port.DONE, frame, token if isinstance(token, ABNORMAL) else None)
        self.done(self.wired.scopes[transition.ir.scope], frame)

    def finish_all_sent(self, transition: WiredTransition, frames: Frames) -> None:
        """Count a transition as done for frames for which its values have been sent."""
        for route in transition.routes.get(Port.DONE, ()):
            self.send_all_along(transition, route, frames, [None] * len(frames))
        scope, number, ending = self.wired.scopes[transition.ir.scope], 1, self._ending
        if ending and ending[-1][1] is frames and ending[-1][0] is scope:
            number += ending.pop()[2]
        ending.append((scope, frames, number))

    # Errors

    def failed(
        self,
        transition: WiredTransition,
        frame: Frame,
        error: Exception,
        scope: int | None = None,
        given: Sequence[Any] = (),
    ) -> Failed:
        """Make, and `report`, the failure of something that this runner itself evaluated on what is given."""
        open_text = isinstance(error, DfmeshError) and error.shows_no_value
        failure = self._failure(transition, frame, error)
        if not open_text:
            failure = explained(failure, given)
        return self.report(transition, failure, scope, open_text=open_text)

    def _failure(self, transition: WiredTransition, frame: Frame, error: Exception) -> Failure:
        ir = transition.ir
        return Failure(self.site, ir.name, ir.node, frame, ir.location, type(error).__name__, str(error))

    def report(
        self, transition: WiredTransition, failure: Failure, scope: int | None = None, *, open_text: bool = False
    ) -> Failed:
        """Tell of an error that began here, and whether a loop around it tolerates errors.

        Args:
            transition: What failed.
            failure: How.
            scope: Where it failed, if not in the transition's own scope.
            open_text: Whether its text shows nothing of a value, so that no rule of residency keeps it here.
        """
        to_client = failure
        if self.wired.texts is not None and not open_text:
            full = failure
            to_client, failure = self.wired.texts.told(transition.ir.id, full)
            if failure is not full:
                self.instructions.append(events.KeepText(full))
        tolerated = self.wired.scopes[transition.ir.scope if scope is None else scope].tolerant
        self.instructions.append(events.ReportFailure(transition.position, to_client, tolerated))
        return Failed(failure)

    # Counting

    def done(self, scope: WiredScope, frame: Frame) -> None:
        """Count one thing of a scope as done in a frame."""
        left = scope.left.pop(frame, scope.size) - 1
        if left:
            scope.left[frame] = left
        else:
            self.frames_done(scope, (frame,))

    def _all_done(self, scope: WiredScope, frames: Frames, number: int) -> None:
        """Count so many things of a scope as done in each of some frames."""
        if number == scope.size:  # That is all there is, so nothing of it was counted before.
            self.frames_done(scope, frames)
            return
        left = scope.left
        counts = list(map(left.pop, frames, repeat(scope.size)))
        ending = counts.count(number)
        if ending == len(counts):
            self.frames_done(scope, frames)
            return
        left.update((frame, count - number) for frame, count in zip(frames, counts, strict=True) if count > number)
        if ending:
            ended = [frame for frame, count in zip(frames, counts, strict=True) if count == number]
            self.frames_done(scope, ended)

    def frames_done(self, scope: WiredScope, frames: Frames) -> None:
        """All that this site has in frames of a scope is done: drop what is stored for them and tell."""
        for reader in scope.readers:
            for frame in frames:
                reader.values.pop(frame, None)
        if scope.parent is None:
            self.instructions.extend(map(events.ReportFrame, frames))
        else:
            self.loops.iterations_done_here(scope, frames)


_HANDLERS: dict[type[Event], Callable[[NetRunner, Any], None]] = {
    events.TokenArrived: NetRunner._token_arrived,
    events.TokensArrived: NetRunner._tokens_arrived,
    events.CallReturned: lambda it, e: it.calling.returned(e),
    events.CallsReturned: lambda it, e: it.calling.all_returned(e),
    events.CallRaised: lambda it, e: it.calling.raised(e),
    events.FrameOpened: NetRunner._open_frame,
    events.IterationsDone: lambda it, e: it.loops.iterations_done(it.wired.scopes[e.scope], e.frames, e.site),
    events.ScopeEnded: lambda it, e: it.loops.scope_ended(it.wired.scopes[e.scope], e.frame, e.count, e.failure),
    events.StreamOpened: lambda it, e: it.streams.opened(e.call),
    events.StreamItems: lambda it, e: it.streams.items(e.call, e.values, more=e.more),
    events.StreamEnded: lambda it, e: it.streams.ended(e.call),
    events.StreamItemsArrived: lambda it, e: it.streams.items_arrived(e.route, e.frame, e.values),
    events.StreamEndArrived: lambda it, e: it.streams.end_arrived(e.route, e.frame, e.failure),
    events.StreamCreditArrived: NetRunner._stream_credited,
    events.FedItemsTaken: lambda it, e: it.streams.fed_items_taken(e.call, e.input, e.count),
    events.LoopsResumed: lambda it, _: it.loops.resume(),
    events.SiteGone: lambda it, e: it.streams.site_gone(e.failure),
    events.KeyFound: lambda it, e: it.caching.found(*it.calls.pop(e.call), e.value),
    events.KeyMissed: lambda it, e: it.caching.missed(e.call, *it.calls.pop(e.call)),
}
