"""JobLookUps: what one job at one site asks of the site's cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dfmesh import values
from dfmesh.engine import events
from dfmesh.engine.events import Event
from dfmesh.engine.prepared_nets import PreparedNet
from dfmesh.netir import Sites

if TYPE_CHECKING:
    from dfmesh.engine.job_controller import SiteServices


class JobLookUps:
    """Carries out the instructions of one NetRunner that concern the cache."""

    def __init__(self, prepared: PreparedNet, services: SiteServices, handle: Callable[[Event], None]) -> None:
        """Begin with none.

        Args:
            prepared: What the job runs.
            services: What the site has for its jobs.
            handle: Gets what becomes of a look-up.
        """
        self._prepared = prepared
        self._cache = services.cache
        self._soon = services.soon
        self._handle = handle
        self._closed = False
        self._missed: dict[int, bytes] = {}
        # Where the values of missed keys may be, by call; those that may be anywhere are left out.
        self._missed_within: dict[int, Sites] = {}
        # Those that wait for a value which somebody else computes, perhaps with what a lost site was to send.
        self._waiting: set[int] = set()

    @property
    def waiting(self) -> int:
        """How many wait for a value that somebody else computes."""
        return len(self._waiting)

    def look_up(self, instruction: events.LookUpKey) -> None:
        """Ask for the value of a key."""
        call, key, ttl, wait = instruction.call, instruction.key, instruction.ttl, instruction.wait

        # Answers are taken in later: they may come at once, or while another look-up's value is being stored, in the
        # middle of instructions that are still to be carried out in their order.
        def found(value: Any) -> None:
            self._waiting.discard(call)
            self._soon(lambda: self._found(call, value))

        def missed() -> None:
            self._waiting.discard(call)
            self._soon(lambda: self._miss(call, key))

        within = self._within(call)
        if self._cache.look_up(key, ttl, wait=wait, found=found, missed=missed, within=within):
            self._waiting.add(call)

    def _within(self, call: int) -> Sites | None:
        """Give where, by the rules that the plan was checked with, what a look-up gives may be; None for anywhere."""
        within = self._prepared.bound.transitions.get(self._prepared.runner.calls[call][0].ir.id)
        if within is not None:
            self._missed_within[call] = within
        return within

    def store(self, instruction: events.StoreValue) -> None:
        """Store the value of a key that was missed."""
        call = instruction.call
        self._cache.store(self._missed.pop(call), instruction.value, self._missed_within.pop(call, None))

    def release(self, instruction: events.ReleaseKey) -> None:
        """Let others compute the value of a key that was missed."""
        self._missed_within.pop(instruction.call, None)
        self._cache.release(self._missed.pop(instruction.call))

    def _found(self, call: int, value: Any) -> None:
        self._missed_within.pop(call, None)
        if not self._closed:
            self._handle(events.KeyFound(call, values.private_copy(value)))

    def _miss(self, call: int, key: bytes) -> None:
        if self._closed:
            self._cache.release(key)
        else:
            self._missed[call] = key
            self._handle(events.KeyMissed(call))

    def close(self) -> None:
        """Give up what was to be computed."""
        self._closed = True
        self._handle = _nobody
        for key in self._missed.values():
            self._cache.release(key)
        self._missed.clear()


def _nobody(_event: Event) -> None:
    """Hears of look-ups of a job that has ended."""
