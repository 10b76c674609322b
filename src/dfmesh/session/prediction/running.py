"""A predicted run: the rules of NetRunner and HomeJob on a virtual clock, with values that only have a size.

It follows the same rules as the engine, and a test compares both; but it knows all sites at once, so that an item
costs a few microseconds and a million items are a matter of seconds. Generators count as lists.
"""

from __future__ import annotations

import gc
import heapq
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from dfmesh.engine.home_frames import MAX_OPEN_FRAMES
from dfmesh.engine.job_controller import LITTLE_SENT
from dfmesh.netir import Branch, Call, Choose, Collect, Evaluate, LookUp, Loop, Port, Reduce, SendYield, Store
from dfmesh.session.prediction.chains import Chain, Stage, extended
from dfmesh.session.prediction.frames import Frame, Gathering, LoopRun
from dfmesh.session.prediction.plan import OUTER, OWN, Plan, Reader, Scope, Send, Step, Target
from dfmesh.session.prediction.planning import CONTROL, FURTHER
from dfmesh.session.prediction.resources import Wire


class PredictedRun:
    """One job.

    Attributes:
        now: Virtual time in seconds.
        seconds: When the job was over.
        events: How many events there were.
        results: Results that the client got.
        result_bytes: Size of them.
        first_result: When the first one came; None if there was none.
        chain: What led to the end.
    """

    def __init__(self, plan: Plan, sets: int) -> None:
        """Get ready.

        Args:
            plan: What runs.
            sets: How many parameter sets there are.
        """
        self._plan = plan
        self._sets = sets
        self._next_set = 0
        self._open_sets = 0
        self._times: list[float] = []
        self._agenda: dict[float, list[tuple[Callable[..., None], tuple[Any, ...]]]] = {}
        self._ready: deque[tuple[Step, Frame, Chain]] = deque()
        self._late: dict[tuple[Wire, Scope], tuple[list[Frame], Chain]] = {}
        self._late_sets: list[tuple[Wire | None, Frame, Chain]] = []
        self.now = 0.0
        self.seconds = 0.0
        self.events = 0
        self.results = 0
        self.result_bytes = 0.0
        self.first_result: float | None = None
        self.chain: Chain = None
        self._rules: dict[type, Callable[[Step, Frame, Chain], None]] = {
            Call: self._call,
            Evaluate: self._pass,
            Choose: self._pass,
            Store: self._pass,
            SendYield: self._yield,
            Loop: self._loop,
            Branch: self._branch,
            LookUp: self._look_up,
            Collect: self._inputs_complete,
            Reduce: self._inputs_complete,
        }

    def run(self) -> None:
        """Let everything happen."""
        collects = gc.isenabled()
        gc.disable()  # Millions of small tuples, none of them in a cycle: looking for garbage would double the time.
        try:
            self._run()
        finally:
            if collects:
                gc.enable()

    def _run(self) -> None:
        far = self._plan.until_open
        self._at(far, self._open_sets_now, extended(None, Stage("start", self._plan.root.head), far))
        times, agenda, ready, rules = self._times, self._agenda, self._ready, self._rules
        while times:
            self.now = now = heapq.heappop(times)
            for happen, arguments in agenda.pop(now):  # What comes up for the same instant makes another entry.
                happen(*arguments)
                while ready:
                    step, frame, chain = ready.popleft()
                    if frame.skipped & step.bit:
                        self._skip(step, frame, chain)
                    else:
                        rules[step.action](step, frame, chain)
            if (self._late or self._late_sets) and now not in agenda:
                self._tell_iterations()

    def _at(self, time: float, happen: Callable[..., None], *arguments: Any) -> None:
        self.events += 1
        instant = self._agenda.get(time)
        if instant is None:
            self._agenda[time] = [(happen, arguments)]
            heapq.heappush(self._times, time)
        else:
            instant.append((happen, arguments))

    def _control(self, wire: Wire | None, chain: Chain, happen: Callable[..., None], *arguments: Any) -> None:
        """Let a site know something: at once here, else with a message."""
        if wire is None:
            happen(*arguments, chain)
        else:
            arrival, chain = wire.carry(self.now, CONTROL, chain)
            self._at(arrival, happen, *arguments, chain)

    # Parameter sets

    def _open_sets_now(self, chain: Chain) -> None:
        while self._next_set < self._sets and self._open_sets < MAX_OPEN_FRAMES:
            frame = Frame(self._plan.root, None, None, self._next_set, self._next_set)
            self._next_set += 1
            self._open_sets += 1
            for position, latency in enumerate(self._plan.latencies):
                stage = Stage("start", self._plan.root.participants[position])
                self._at(self.now + latency, self._opened, frame, position, extended(chain, stage, latency))
        if not self._open_sets:  # What is still on its way does not hold up the end.
            answers = self._last_answers()
            self.seconds = self.now + answers
            self.chain = extended(chain, Stage("end", self._plan.root.head), answers)

    def _last_answers(self) -> float:
        """Seconds until the sites have answered that are asked for their last reports; the others have sent them."""
        sent: dict[str, float] = {}
        for (source, _), wire in self._plan.wires.items():
            sent[source] = sent.get(source, 0.0) + wire.size
        return max((self._plan.answers.get(site, 0.0) for site, size in sent.items() if size > LITTLE_SENT), default=0)

    def _opened(self, frame: Frame, position: int, chain: Chain) -> None:
        self._deliver(self._plan.opened[position], frame, False, chain)
        if not frame.scope.left[position]:
            self._control(frame.scope.told[position], chain, self._set_reported, frame)

    def _set_reported(self, frame: Frame, chain: Chain) -> None:
        frame.open -= 1
        if not frame.open:
            self._open_sets -= 1
            self._open_sets_now(chain)

    # Tokens

    def _deliver(self, targets: list[Target], frame: Frame, skipped: bool, chain: Chain) -> None:
        for kind, target, marks in targets:
            if kind == OWN:
                if skipped and marks:
                    frame.skipped |= target.bit
                left = frame.missing[target.position] = frame.missing[target.position] - 1
                if not left:
                    self._ready.append((target, frame, chain))
            elif kind == OUTER:
                self._deliver_outer(target, frame, skipped and marks, chain)
            else:
                self._gather(target, frame, skipped, chain)

    def _deliver_outer(self, reader: Reader, frame: Frame, skipped: bool, chain: Chain) -> None:
        arrived = frame.tokens()
        waiting = arrived.get(reader, ())
        arrived[reader] = skipped
        for inner in waiting:
            self._read(reader, inner, skipped, chain)
        self._done(frame, reader.at, chain)

    def _read(self, reader: Reader, frame: Frame, skipped: bool, chain: Chain) -> None:
        step = reader.step
        if skipped:
            frame.skipped |= step.bit
        frame.missing[step.position] -= 1
        if not frame.missing[step.position]:
            self._ready.append((step, frame, chain))

    def _look_around(self, frame: Frame, chain: Chain) -> None:
        """Give a new frame the tokens of enclosing ones that are there; let it wait for the others."""
        for reader in frame.scope.readers:
            outer = frame
            while outer.scope is not reader.scope and outer.parent is not None:
                outer = outer.parent
            there = outer.tokens().setdefault(reader, [])
            if isinstance(there, bool):
                self._read(reader, frame, there, chain)
            else:
                there.append(frame)

    def _send(self, sends: Sequence[Send], frame: Frame, skipped: bool, chain: Chain) -> None:
        for send in sends:
            wire = send.wire
            if wire is None:
                self._deliver(send.targets, frame, skipped, chain)
            else:
                arrival, behind = wire.carry(self.now, send.size, chain)
                self._at(arrival, self._deliver, send.targets, frame, skipped, behind)

    # Firing

    def _skip(self, step: Step, frame: Frame, chain: Chain) -> None:
        action = step.action
        if action is Collect or action is Reduce:
            gathering = self._gathering(step, frame)
            gathering.inputs = gathering.skipped = True
            self._settle(step, frame, gathering, chain)
            return
        if action is Loop:
            self._tell_end(self._loop_run(step, frame, 0), chain)
        elif action is Branch or action is LookUp:
            self._send(step.outputs(Port.THEN, Port.ELSE, Port.MISS), frame, True, chain)
        self._finish(step, frame, True, chain)

    def _finish(self, step: Step, frame: Frame, skipped: bool, chain: Chain) -> None:
        if step.ending:
            self._send(step.ending, frame, skipped, chain)
        self._done(frame, step.at, chain)

    def _pass(self, step: Step, frame: Frame, chain: Chain) -> None:
        self._finish(step, frame, False, chain)

    def _branch(self, step: Step, frame: Frame, chain: Chain) -> None:
        truth = bool(step.times(frame.number))
        self._send(step.outputs(Port.THEN), frame, not truth, chain)
        self._send(step.outputs(Port.ELSE), frame, truth, chain)
        self._finish(step, frame, False, chain)

    def _look_up(self, step: Step, frame: Frame, chain: Chain) -> None:
        self._at(self.now, self._looked_up, step, frame, chain)  # A cache answers after all else of the instant.

    def _looked_up(self, step: Step, frame: Frame, chain: Chain) -> None:
        found = bool(step.times(frame.number))
        self._send(step.outputs(Port.MISS), frame, found, chain)
        self._finish(step, frame, not found, chain)

    def _yield(self, step: Step, frame: Frame, chain: Chain) -> None:
        if step.result is None:
            self._result(step.size)
        else:
            arrival, _ = step.result.carry(self.now, step.size, chain)
            self._at(arrival, self._result, step.size)
        self._finish(step, frame, False, chain)

    def _result(self, size: float) -> None:
        self.results += 1
        self.result_bytes += size
        if self.first_result is None:
            self.first_result = self.now

    # Calls

    def _call(self, step: Step, frame: Frame, chain: Chain) -> None:
        if step.workers.free:
            self._begin(step, frame, chain)
        else:
            step.workers.waiting.append((step, frame))

    def _begin(self, step: Step, frame: Frame, chain: Chain) -> None:
        step.workers.free -= 1
        computing = step.varied[step.calls % len(step.varied)] if step.varied else step.seconds
        seconds, loader = computing, step.loader
        if loader is not None:
            loading = loader.left(self.now)
            chain = extended(chain, loader.stage, loading)
            seconds += loading
        step.calls += 1
        step.workers.site.begin(self.now, seconds)
        self._at(self.now + seconds, self._call_ended, step, frame, extended(chain, step.stage, computing))

    def _call_ended(self, step: Step, frame: Frame, chain: Chain) -> None:
        workers = step.workers
        workers.free += 1
        if workers.waiting:  # What made it begin only now is that this call has ended.
            next_step, next_frame = workers.waiting.popleft()
            self._begin(next_step, next_frame, chain)
        site = workers.site
        site.end(self.now)
        if site.lag:
            self._at(self.now + site.lag, self._call_known, step, frame, extended(chain, site.stage, site.lag))
        else:
            self._call_known(step, frame, chain)

    def _call_known(self, step: Step, frame: Frame, chain: Chain) -> None:
        if step.action is Reduce:
            gathering = self._gathering(step, frame)
            gathering.busy = False
            self._step(step, gathering, chain)
            self._fold(step, frame, gathering, chain)
        else:
            self._finish(step, frame, False, chain)

    # Counting

    def _done(self, frame: Frame, position: int, chain: Chain) -> None:
        frame.left[position] -= 1
        if frame.left[position]:
            return
        run = frame.run
        told = frame.scope.told[position]
        if run is None:
            self._late_sets.append((told, frame, chain))
            return
        run.done[position] += 1
        if told is None:
            frame.open -= 1
            if not frame.open:
                run.open -= 1
                self._advance(run, chain)
        else:
            late = self._late.get((told, frame.scope))
            if late is None:
                self._late[told, frame.scope] = ([frame], chain)
            else:
                late[0].append(frame)
        self._close_when_done(run, position, chain)

    def _close_when_done(self, run: LoopRun, position: int, chain: Chain) -> None:
        if run.told[position] and run.done[position] == run.count:
            run.told[position] = False
            scope, frame = run.step.body, run.frame
            if scope is not None:
                self._done(frame, frame.scope.position[scope.participants[position]], chain)

    # Loops

    def _loop_run(self, step: Step, frame: Frame, count: int) -> LoopRun:
        if step.body is None:
            raise TypeError(f"{step.name} is no loop")
        return LoopRun(step, frame, count, len(step.body.participants))

    def _loop(self, step: Step, frame: Frame, chain: Chain) -> None:
        self._advance(self._loop_run(step, frame, step.times(frame.number)), chain)

    def _advance(self, run: LoopRun, chain: Chain) -> None:
        if run.opening or run.over:
            return
        run.opening = True
        while run.open < run.step.window:
            if run.opened == run.count:
                run.over = True
                break
            self._open(run, chain)
        run.opening = False
        if run.over:
            self._tell_end(run, chain)
            self._finish(run.step, run.frame, False, chain)

    def _open(self, run: LoopRun, chain: Chain) -> None:
        step, outer = run.step, run.frame
        if step.body is None:
            raise TypeError(f"{step.name} is no loop")
        frame = Frame(step.body, outer, run, run.opened, outer.number)
        run.opened += 1
        run.open += bool(frame.open)
        if frame.scope.readers:
            self._look_around(frame, chain)
        self._send(step.opening, frame, False, chain)

    def _tell_iterations(self) -> None:
        """Tell loops of the iterations that other sites are done with, those of one instant in one message.

        After them, the homesite of parameter sets.
        """
        late, self._late = self._late, {}
        for (wire, _), (frames, chain) in late.items():
            arrival, behind = wire.carry(self.now, CONTROL + FURTHER * (len(frames) - 1), chain)
            self._at(arrival, self._iterations_done, frames, behind)
        late_sets, self._late_sets = self._late_sets, []
        for told, frame, chain in late_sets:
            self._control(told, chain, self._set_reported, frame)

    def _iterations_done(self, frames: list[Frame], chain: Chain) -> None:
        advanced: dict[LoopRun, None] = {}
        for frame in frames:
            frame.open -= 1
            if not frame.open and frame.run is not None:
                frame.run.open -= 1
                advanced[frame.run] = None
        for run in advanced:
            self._advance(run, chain)

    def _tell_end(self, run: LoopRun, chain: Chain) -> None:
        for position, wire in enumerate(run.step.body.tells if run.step.body else ()):
            self._control(wire, chain, self._scope_ended, run, position)

    def _scope_ended(self, run: LoopRun, position: int, chain: Chain) -> None:
        run.told[position] = True
        for gatherer in run.step.body.gatherers[position] if run.step.body else ():
            gathering = self._gathering(gatherer, run.frame)
            gathering.count = run.count
            self._settle(gatherer, run.frame, gathering, chain)
        self._close_when_done(run, position, chain)

    # Gathering

    def _gathering(self, step: Step, frame: Frame) -> Gathering:
        gatherings = frame.gatherings
        if gatherings is None:
            gatherings = frame.gatherings = {}
        gathering = gatherings.get(step)
        if gathering is None:
            gathering = gatherings[step] = Gathering()
        return gathering

    def _gather(self, step: Step, frame: Frame, skipped: bool, chain: Chain) -> None:
        if frame.parent is None:
            raise TypeError(f"{step.name} gathers from no loop")
        gathering = self._gathering(step, frame.parent)
        gathering.came += 1
        if step.action is Reduce:
            gathering.tokens[frame.index] = (skipped, frame)
            if gathering.inputs:
                self._fold(step, frame.parent, gathering, chain)
                return
            gathering.counted.add(frame.index)
        self._gathered(step, frame, chain)
        if step.action is Collect:
            self._conclude(step, frame.parent, gathering, chain)

    def _gathered(self, step: Step, frame: Frame, chain: Chain) -> None:
        body = step.body
        if body is None:
            raise TypeError(f"{step.name} gathers from no loop")
        self._done(frame, body.position[step.site.name], chain)

    def _inputs_complete(self, step: Step, frame: Frame, chain: Chain) -> None:
        gathering = self._gathering(step, frame)
        gathering.inputs = True
        gathering.value = step.starts
        self._settle(step, frame, gathering, chain)

    def _settle(self, step: Step, frame: Frame, gathering: Gathering, chain: Chain) -> None:
        if step.action is Reduce:
            self._fold(step, frame, gathering, chain)
        else:
            self._conclude(step, frame, gathering, chain)

    def _conclude(self, step: Step, frame: Frame, gathering: Gathering, chain: Chain) -> None:
        if gathering.inputs and gathering.came == gathering.count and frame.leave(step):
            self._finish(step, frame, gathering.skipped, chain)

    def _fold(self, step: Step, frame: Frame, gathering: Gathering, chain: Chain) -> None:
        if not gathering.inputs or gathering.busy:
            return
        while gathering.next in gathering.tokens:
            if not gathering.tokens[gathering.next][0] and not gathering.skipped:
                if gathering.value:
                    gathering.busy = True
                    self._call(step, frame, chain)
                    return
                gathering.value = True
            self._step(step, gathering, chain)
        if gathering.next == gathering.count and frame.leave(step):
            self._finish(step, frame, gathering.skipped, chain)

    def _step(self, step: Step, gathering: Gathering, chain: Chain) -> None:
        """Be done with a token; its iteration may count as done already."""
        index = gathering.next
        gathering.next += 1
        _, frame = gathering.tokens.pop(index)
        if index in gathering.counted:
            gathering.counted.discard(index)
        else:
            self._gathered(step, frame, chain)
