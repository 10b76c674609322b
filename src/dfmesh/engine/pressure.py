"""Back-pressure: work waits while what it makes could not be sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection

from dfmesh.engine.carrier import Gauge
from dfmesh.engine.events import Instruction


class Pressure:
    """Instructions of one job that would make more to send, held back while too much waits for its peers already.

    Nothing that is under way is held: a token in the middle of a frame always has room, so that no bound can turn into
    a deadlock. What waits for a peer is taken by it whatever the engine does.

    Attributes:
        held: What is held back, in order.
    """

    def __init__(self, gauge: Gauge, peers: Collection[str], carry_out: Callable[[Instruction], None]) -> None:
        """Begin with nothing held.

        Args:
            gauge: Tells when too much waits.
            peers: To whom the job sends; may change.
            carry_out: Carries out an instruction.
        """
        self.held: deque[Instruction] = deque()
        self._gauge = gauge
        self._peers = peers
        self._carry_out = carry_out
        self._stopped = False
        self._waits = False

    def hold(self, instruction: Instruction) -> bool:
        """Keep an instruction if it is to wait; False if it may be carried out now."""
        if not self._stopped and not self.held and not self._gauge.crowded(self._peers):
            return False
        self.held.append(instruction)
        self._wait()
        return True

    def stop(self, stopped: bool) -> None:
        """Hold everything, or no longer, whatever the own connections say."""
        self._stopped = stopped
        self._go_on()

    def drop(self) -> None:
        """Forget what is held: nothing more will be carried out."""
        self.held.clear()
        self._carry_out = _nothing

    def _wait(self) -> None:
        if not self._stopped and not self._waits:
            self._waits = True
            self._gauge.when_roomy(self._room)

    def _room(self) -> None:
        self._waits = False
        self._go_on()

    def _go_on(self) -> None:
        while self.held and not self._stopped:
            if self._gauge.crowded(self._peers):
                self._wait()
                return
            self._carry_out(self.held.popleft())


def _nothing(_instruction: Instruction) -> None:
    pass
