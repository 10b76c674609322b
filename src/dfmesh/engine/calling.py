"""Calls: asking for those of transitions whose inputs are complete, and what their ends lead to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dfmesh.engine import events
from dfmesh.engine.frame_run import Frames
from dfmesh.engine.streams import StreamToken
from dfmesh.engine.tokens import Failed, StreamInput
from dfmesh.netir import Frame, Port

if TYPE_CHECKING:
    from dfmesh.engine.net_runner import NetRunner
    from dfmesh.engine.wiring import WiredTransition


class Calling:
    """The NetRunner's rules for calls."""

    def __init__(self, runner: NetRunner) -> None:
        self._runner = runner
        self._open = runner.calls
        self._next = 0

    def renew(self) -> None:
        """Number calls from 0 on again; none is open."""
        self._next = 0

    def fire(self, transition: WiredTransition, frame: Frame, values: list[Any]) -> None:
        """Begin the call of a transition whose inputs are complete."""
        if any(type(values[index]) is StreamToken for index in transition.stream_inputs):
            self._start_fed(transition, frame, values)
            return
        arguments = {name: item(values) for name, item in transition.arguments}
        if not self._join(transition, frame, arguments):
            self.start(transition, frame, arguments)

    def _join(self, transition: WiredTransition, frame: Frame, arguments: dict[str, Any]) -> bool:
        """Ask for a call together with the one of the same transition that was asked for right before, if there is one.

        Returns:
            Whether that was done.
        """
        asked = self._runner.instructions
        last = asked[-1] if asked else None
        if type(last) is events.StartCall and last.transition == transition.position and not last.fed:
            last = events.StartCalls(last.call, last.transition, [last.frame], [last.arguments])
        elif type(last) is not events.StartCalls or last.transition != transition.position:
            return False
        if type(last.frames) is not list or last.first + len(last.frames) != self._next:
            return False
        self.number(transition, frame)
        last.frames.append(frame)
        last.arguments.append(arguments)
        asked[-1] = last
        return True

    def _start_fed(self, transition: WiredTransition, frame: Frame, values: list[Any]) -> None:
        named = transition.stream_inputs
        tokens = {index: values[index] for index in named if isinstance(values[index], StreamToken)}
        for index in tokens:
            values[index] = StreamInput(index, named[index])
        try:
            arguments = {name: item(values) for name, item in transition.arguments}
        except Exception:
            for token in tokens.values():
                token.stream.leave()
                self._runner.streams.left(token.stream)
            raise
        call = self.start(transition, frame, arguments, fed=tuple(tokens))
        for index, token in tokens.items():
            self._runner.streams.feed(call, index, token)

    def start(
        self, transition: WiredTransition, frame: Frame, arguments: dict[str, Any], fed: tuple[int, ...] = ()
    ) -> int:
        """Ask for a call of the transition's adapter, and give its number."""
        call = self.number(transition, frame)
        self._runner.emit(events.StartCall(call, transition.position, frame, arguments, fed))
        return call

    def start_all(self, transition: WiredTransition, frames: Frames, arguments: list[dict[str, Any]]) -> None:
        """Ask for calls of the transition's adapter for several frames."""
        first = self._next
        self._next += len(frames)
        self._open.add_all(first, transition, frames)
        self._runner.emit(events.StartCalls(first, transition.position, frames, arguments))

    def number(self, transition: WiredTransition, frame: Frame) -> int:
        """Note that something outside goes on for a transition, and give its number."""
        call = self._next
        self._next += 1
        self._open.add(call, transition, frame)
        return call

    def returned(self, event: events.CallReturned) -> None:
        """A call has ended with a value."""
        transition, frame = self._open.pop(event.call)
        if transition.stream_inputs:
            self._runner.streams.call_over(event.call, transition)
        if transition.reduces:
            self._runner.gatherings.folded(transition, frame, event.value)
        else:
            self._runner.finish(transition, frame, event.value)

    def all_returned(self, event: events.CallsReturned) -> None:
        """Calls of one transition have ended with values."""
        transition, frames = self._pop_all(event.calls)
        if transition.stream_inputs and self._runner.streams.feeding:
            for call in event.calls:
                self._runner.streams.call_over(call, transition)
        for route in transition.routes.get(Port.VALUE, ()):
            self._runner.send_all_along(transition, route, frames, event.values)
        self._runner.finish_all_sent(transition, frames)

    def _pop_all(self, calls: Sequence[int]) -> tuple[WiredTransition, Frames]:
        together = self._open.pop_all(calls) if type(calls) is range else None
        if together is not None:
            return together
        ended = [self._open.pop(call) for call in calls]
        return ended[0][0], [frame for _, frame in ended]

    def raised(self, event: events.CallRaised) -> None:
        """A call, or its generator, has ended with an error."""
        transition, frame = self._open.pop(event.call)
        self._runner.streams.call_over(event.call, transition)
        if event.passed_on:
            token = Failed(event.failure)
        else:
            token = self._runner.report(transition, event.failure, open_text=event.open_text)
        if self._runner.streams.failed(event.call, frame, transition, token):
            return
        if transition.reduces:
            self._runner.gatherings.fold_failed(transition, frame, token)
        else:
            self._runner.finish(transition, frame, token)
