"""How many calls may compute at the same time: `capacity` of a site, `concurrency` of an adapter.

A call asks for a `Permit` before an adapter's code runs for it, and gives it back when that code is over, or waits: for
an item of a stream that it reads, or, as a generator, until somebody wants its next item. So who holds a permit waits
for nobody who needs one. That, and that all ask for the adapter's before the site's, is why nothing can deadlock.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable

from dfmesh.config import AdapterSpec


class Limit:
    """At most so many at once. Who waits is let in job by job in turn, and within a job in order."""

    def __init__(self, most: int) -> None:
        """Begin with none.

        Args:
            most: How many.
        """
        self._free = most
        self._waiting: OrderedDict[Hashable, deque[Permit]] = OrderedDict()

    def enter(self, permit: Permit) -> None:
        """Let a permit in, now or when it is its turn."""
        if self._free > 0:
            self._free -= 1
            permit.entered()
        else:
            self._waiting.setdefault(permit.job, deque()).append(permit)

    def leave(self) -> None:
        """Make room for another one."""
        while self._waiting:
            job, queue = self._waiting.popitem(last=False)
            permit = queue.popleft()
            if queue:
                self._waiting[job] = queue
            if not permit.given_up:
                permit.entered()
                return
        self._free += 1


class Permit:
    """What one call needs to compute. To be used on the event loop.

    Attributes:
        job: Whose call it is; jobs take turns.
        given_up: Nobody wants it any more.
        lent: Code on a thread has it, and whoever is told of its end gives it back.
    """

    __slots__ = ("_go", "_held", "_limits", "_resuming", "_site", "given_up", "job", "lent")

    def __init__(self, job: Hashable, limits: Limits) -> None:
        """Hold nothing yet.

        Args:
            job: Whose call it is.
            limits: What it has to keep to.
        """
        self.job = job
        self.given_up = False
        self.lent = False
        self._limits = limits.in_order
        self._site = limits.site
        self._held = 0
        self._resuming = False
        self._go: Callable[[], None] = _nothing

    def ask(self, go: Callable[[], None]) -> None:
        """Have a function called, once, when the call may compute: at once if it may now, or has been given up."""
        self._go = go
        if self.given_up:
            go()
        else:
            self._limits[0].enter(self)

    def entered(self) -> None:
        """Take note that the next limit has let it in."""
        self._held += 1
        if self._held < len(self._limits):
            self._limits[self._held].enter(self)
        else:
            self._resuming = False
            self._go()

    def pause(self) -> None:
        """Let others compute: the call waits for an item."""
        held, self._held = self._limits[: self._held], 0
        for limit in held:
            limit.leave()

    def resume(self, go: Callable[[], None]) -> None:
        """As `ask`, after `pause`; `go` is called also if the call is given up while it waits."""
        self._resuming = not self.given_up
        self.ask(go)

    def abandon(self) -> None:
        """Not count for the site any more: the call is being stopped, and it may take a while until it ends."""
        if self._resuming:  # Its thread must come to where it can be stopped.
            self._resuming = False
            self._go()
        if self._held == len(self._limits) and self._limits[-1] is self._site:
            self._held -= 1
            self._limits = self._limits[:-1]
            if self._site is not None:
                self._site.leave()

    def give_back(self) -> None:
        """Hold nothing, and ask for nothing, any more."""
        if not self.given_up:
            self.given_up = True
            self.pause()
            if self._resuming:
                self._resuming = False
                self._go()

    async def asked(self) -> None:
        """Ask, and wait until the call may compute. If the waiting is cancelled, the permit is given back."""
        await self._granted(self.ask)

    async def resumed(self) -> None:
        """Wait, after `pause`, until the call may compute again, or is given up."""
        await self._granted(self.resume)

    async def _granted(self, ask: Callable[[Callable[[], None]], None]) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ask(lambda: None if granted.done() else granted.set_result(None))
        try:
            await granted
        except asyncio.CancelledError:
            self.give_back()
            raise


class Limits:
    """What the calls of one adapter have to keep to.

    Attributes:
        in_order: All limits, in the order in which they are entered.
        site: The one of the site among them; None if it does not apply.
    """

    __slots__ = ("in_order", "site")

    def __init__(self, own: Limit | None, site: Limit | None) -> None:
        self.in_order = [limit for limit in (own, site) if limit is not None]
        self.site = site


class CallLimits:
    """The limits of one site, over all jobs."""

    def __init__(self, capacity: int | None) -> None:
        """Begin with no call.

        Args:
            capacity: Calls of adapters that block which may compute at the same time; None for any number.
        """
        self._site = None if capacity is None else Limit(capacity)
        self._own: dict[int, tuple[AdapterSpec, Limit]] = {}

    def of(self, spec: AdapterSpec, *, blocks: bool) -> Limits | None:
        """Give what the calls of an adapter have to keep to; None if nothing.

        Args:
            spec: The adapter in the federation file.
            blocks: Whether it computes on a thread or in a process; a coroutine only counts for its own limit, since
                it may wait for anything without saying so.
        """
        site = self._site if blocks else None
        if spec.concurrency is None:
            return None if site is None else Limits(None, site)
        known = self._own.get(id(spec))
        if known is None:
            known = self._own[id(spec)] = (spec, Limit(spec.concurrency))
        return Limits(known[1], site)


def _nothing() -> None:
    return
