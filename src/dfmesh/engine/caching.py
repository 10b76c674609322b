"""Look-ups and stores: the NetRunner's rules for TryFromCache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dfmesh import values as codec
from dfmesh.engine import events
from dfmesh.engine.choosing import AbnormalInput, guarding, read
from dfmesh.engine.tokens import SKIPPED, Failed
from dfmesh.netir import Frame, LookUp, Port, Store

if TYPE_CHECKING:
    from dfmesh.engine.net_runner import NetRunner
    from dfmesh.engine.wiring import WiredTransition


class Caching:
    """A look-up gives what it found, or a skip; a store gives that, or the new value."""

    def __init__(self, runner: NetRunner) -> None:
        self._runner = runner
        # Call that missed a key, per look-up's transition and frame.
        self._missed: dict[tuple[int, Frame], int] = {}

    @property
    def idle(self) -> bool:
        """Whether nothing is being looked up or computed for the cache."""
        return not self._missed

    def look_up(self, transition: WiredTransition, frame: Frame, values: list[Any]) -> None:
        """Begin a look-up whose inputs are complete."""
        action = transition.ir.action
        if not isinstance(action, LookUp):
            raise TypeError(f"{transition.ir.name} is no look-up")
        key = codec.to_bytes(transition.evaluate(values))
        call = self._runner.calling.number(transition, frame)
        self._runner.emit(events.LookUpKey(call, key, action.ttl, wait=not action.nested))

    def found(self, transition: WiredTransition, frame: Frame, value: Any) -> None:
        """The cache has the value: the block is skipped."""
        transition.count(1)
        self._runner.send(transition, Port.MISS, frame, SKIPPED)
        self._runner.finish(transition, frame, value)

    def missed(self, call: int, transition: WiredTransition, frame: Frame) -> None:
        """The cache has nothing: the block runs."""
        transition.count(0)
        self._missed[transition.ir.id, frame] = call
        self._runner.send(transition, Port.MISS, frame, None)
        self._runner.finish(transition, frame, SKIPPED)

    def store(self, transition: WiredTransition, frame: Frame, values: list[Any]) -> None:
        """Both the look-up and the block have ended, one way or another."""
        action = transition.ir.action
        if not isinstance(action, Store):
            raise TypeError(f"{transition.ir.name} is no store")
        call = self._missed.pop((action.lookup, frame), None)
        if call is None:  # Found, failed, or skipped from outside.
            imposed = guarding(transition, values)
            self._runner.finish(transition, frame, values[0] if imposed is None else imposed)
            return
        try:
            value = read(transition.evaluate, values)
        except AbnormalInput as found:
            value = found.token
        except Exception as error:
            value = self._runner.failed(transition, frame, error)
        if isinstance(value, Failed) or value is SKIPPED:
            self._runner.emit(events.ReleaseKey(call))
        else:
            self._runner.emit(events.StoreValue(call, value))
        self._runner.finish(transition, frame, value)
