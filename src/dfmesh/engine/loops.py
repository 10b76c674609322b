"""Loops: opening iterations within the window, and knowing when they are done everywhere."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from dfmesh.engine import events
from dfmesh.engine.frame_run import FrameRun, Frames, runs_of
from dfmesh.engine.message_parts import Failure
from dfmesh.engine.open_iterations import OpenIterations
from dfmesh.engine.streams import Stream, StreamToken
from dfmesh.netir import Frame, Loop, Port, Route
from dfmesh.values.elements import elements_of

if TYPE_CHECKING:
    from dfmesh.engine.net_runner import NetRunner
    from dfmesh.engine.wiring import WiredScope, WiredTransition

OPENED_AT_ONCE = 128
"""Iterations whose tokens go out together; between them other operations of the body have their turn."""

OPENED_PER_EVENT = 1024
"""Iterations that all loops of a job may open in one event, some milliseconds; then other events have their turn."""


class LoopRun:
    """A loop over one sequence.

    Attributes:
        transition: The loop.
        scope: Its body.
        frame: Its frame.
        window: How many iterations may be open.
        items: What is left of the sequence; None for a stream.
        queue: Items of a stream that have come and are not yet opened.
        stream: The stream that it takes; None for a sequence.
        opened: How many iterations have been opened.
        open: The iterations that are open.
        exhausted: Whether a stream has ended.
        failure: Why the stream broke off.
        opening: Iterations are being opened; what an iteration leads to must not open others in between.
    """

    __slots__ = (
        "exhausted",
        "failure",
        "frame",
        "items",
        "open",
        "opened",
        "opening",
        "queue",
        "scope",
        "stream",
        "transition",
        "window",
    )

    def __init__(self, transition: WiredTransition, scope: WiredScope, frame: Frame, window: int) -> None:
        self.transition = transition
        self.scope = scope
        self.frame = frame
        self.window = window
        self.items: Iterator[Any] | None = None
        self.queue: deque[Any] = deque()
        self.stream: Stream | None = None
        self.opened = 0
        self.open = OpenIterations(len(scope.participants))
        self.exhausted = False
        self.failure: Failure | None = None
        self.opening = False

    @property
    def room(self) -> int:
        """How many further items would be opened at once."""
        return self.window - len(self.open) - len(self.queue)


class Loops:
    """The NetRunner's rules for loops.

    Attributes:
        left: How many iterations may still be opened in the current event.
        paused: Loops that go on with `LoopsResumed`, which has been asked for if there are any; by identity.
    """

    def __init__(self, runner: NetRunner) -> None:
        self._runner = runner
        self.left = 0
        self.paused: dict[int, LoopRun] = {}

    # At the site of the loop

    def start(self, transition: WiredTransition, frame: Frame, values: list[Any]) -> None:
        """Begin a loop whose inputs are complete."""
        action = transition.ir.action
        if not isinstance(action, Loop):
            raise TypeError(f"{transition.ir.name} is no loop")
        scope = self._runner.wired.scopes[action.body]
        run = LoopRun(transition, scope, frame, action.window)
        token = None if transition.streamable is None else values[transition.streamable]
        if isinstance(token, StreamToken):
            scope.runs[frame] = run
            self._runner.streams.take(run, token)
        else:
            run.items = elements_of(transition.evaluate(values))
            scope.runs[frame] = run
            self.advance(run)

    def advance(self, run: LoopRun) -> None:
        """Open iterations as far as the window allows; end the loop where nothing is left."""
        if run.opening:
            return  # An iteration was done at once; whoever opened it goes on.
        run.opening = True
        try:
            self._open_more(run)
        finally:
            run.opening = False
        if run.exhausted and not run.queue:
            self._end(run)
        elif run.stream is not None:
            self._runner.streams.pull(run.stream)

    def _open_more(self, run: LoopRun) -> None:
        while (room := min(run.window - len(run.open), OPENED_AT_ONCE)) > 0:
            if self.left <= 0 and (run.items is not None or run.queue):
                self._pause(run)
                return
            items = self._next_items(run, room)
            self.left -= len(items)
            if items:
                self._open(run, items)
            if len(items) < room:
                return

    def _pause(self, run: LoopRun) -> None:
        if not self.paused:
            self._runner.emit(events.PauseLoops())
        self.paused[id(run)] = run

    def resume(self) -> None:
        """Go on with the loops that were paused."""
        paused, self.paused = self.paused, {}
        for run in paused.values():
            if run.scope.runs.get(run.frame) is run:
                self.advance(run)

    def _next_items(self, run: LoopRun, count: int) -> list[Any]:
        """Take the next items, fewer than `count` if there are no more now."""
        if run.items is None:
            queue = run.queue
            return [queue.popleft() for _ in range(min(count, len(queue)))]
        items: list[Any] = []
        try:
            items.extend(islice(run.items, count))
        except Exception as error:
            run.failure = self._runner.failed(run.transition, run.frame, error).failure
        run.exhausted = run.failure is not None or len(items) < count
        return items

    def _open(self, run: LoopRun, items: list[Any]) -> None:
        indexes = range(run.opened, run.opened + len(items))
        run.opened = indexes.stop
        frames = FrameRun(run.frame, indexes.start, len(items))
        run.open.open(indexes.start, len(items))
        runner, transition, routes = self._runner, run.transition, run.transition.routes
        tokens: dict[Port, Sequence[Any]] = {Port.ELEMENT: items, Port.INDEX: indexes, Port.ITERATION: ()}
        here: list[tuple[Route, Sequence[Any]]] = []
        for port, values in tokens.items():
            for route in routes.get(port, ()):
                if route.site == runner.site:
                    here.append((route, values))
                else:
                    runner.send_all_along(transition, route, frames, list(values) or [None] * len(frames))
        if len(here) == 1:
            route, values = here[0]
            runner.send_all_along(transition, route, frames, list(values) or [None] * len(frames))
            return
        for position, frame in enumerate(frames):  # All of an iteration before the next one begins.
            for route, values in here:
                runner.send_along(transition, route, frame, values[position] if values else None)

    def _end(self, run: LoopRun) -> None:
        if run.scope.runs.pop(run.frame, None) is None:
            return
        run.transition.count(run.opened)
        self._tell_end(run.scope, run.frame, run.opened, run.failure)
        self._runner.finish(run.transition, run.frame, None)

    def end_unopened(self, transition: WiredTransition, frame: Frame, failure: Failure | None) -> None:
        """End a loop that never began, since it was skipped or its sequence failed."""
        if transition.body is not None:
            self._tell_end(self._runner.wired.scopes[transition.body], frame, 0, failure)

    def _tell_end(self, scope: WiredScope, frame: Frame, count: int, failure: Failure | None) -> None:
        for site in scope.participants:
            if site == self._runner.site:
                self.scope_ended(scope, frame, count, failure)
            else:
                self._runner.emit(events.SendScopeEnded(site, scope.id, frame, count, failure))

    def iterations_done(self, scope: WiredScope, frames: Frames, site: str) -> None:
        """A taking-part site is done with iterations; open others in their place."""
        position = scope.participants.index(site)
        advanced: dict[Frame, LoopRun] = {}
        for part in runs_of(frames):
            run = scope.runs.get(part.around)  # None when the loop has opened its last iteration.
            if run is not None and run.open.done(position, part.first, part.count):
                advanced[run.frame] = run
        for run in advanced.values():
            self.advance(run)

    # At the sites that take part

    def iterations_done_here(self, scope: WiredScope, frames: Frames) -> None:
        """This site has nothing left to do in iterations."""
        parents = {frames.around: frames.count} if type(frames) is FrameRun else Counter(frame[:-1] for frame in frames)
        for parent, count in parents.items():
            progress = scope.progress.get(parent)
            if progress is None:
                progress = scope.progress[parent] = [0, None]
            progress[0] = (progress[0] or 0) + count
        if scope.head_site == self._runner.site:
            self.iterations_done(scope, frames, self._runner.site)
        else:
            self._runner.emit(events.SendIterationsDone(scope.head_site, scope.id, frames))
        for parent in parents:
            self._close_when_done(scope, parent)

    def scope_ended(self, scope: WiredScope, frame: Frame, count: int, failure: Failure | None) -> None:
        """The loop over a scope has told how many iterations there are below a frame."""
        progress = scope.progress.setdefault(frame, [0, None])
        progress[1] = count
        self._runner.gatherings.ended(scope, frame, count, failure)
        self._close_when_done(scope, frame)

    def _close_when_done(self, scope: WiredScope, frame: Frame) -> None:
        progress = scope.progress.get(frame)
        if progress is not None and progress[0] == progress[1] and scope.parent is not None:
            del scope.progress[frame]
            self._runner.done(self._runner.wired.scopes[scope.parent], frame)
