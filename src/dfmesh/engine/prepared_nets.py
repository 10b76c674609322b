"""What a site has made of the nets that it was sent, so that the next job with the same net begins at once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from dfmesh.engine.bound_texts import bound_texts
from dfmesh.engine.call_plan import CallPlan
from dfmesh.engine.net_runner import NetRunner
from dfmesh.engine.wiring import WiredTransition
from dfmesh.netir import NOTHING_BOUND, BoundValues, Call, NetIR, Port, Reduce

REMEMBERED = 32
"""Nets of which a site keeps what it made of them; a pipeline is often submitted many times in a row."""

IDLE = 16
"""Runners that are kept per net: as many jobs with the same net can go on at a time and all begin at once."""


LARGEST = 2**20
"""Bytes of a net that is remembered; constants in it are kept as long as it is."""

MOST_BYTES = 4 * 2**20
"""Bytes of all that are remembered, each counted once, and once more for each of its runners.

Made ready they take about six times as much memory."""


class PreparedNet:
    """A net that is ready to run one job, and then another one.

    Attributes:
        net: The net.
        data: The same as it came.
        runner: Runs it.
        plans: How calls are made, by position of the transition; None for one that makes none.
        senders: Site that sends along each arriving route, and the length of its frames.
        bound: What rules of residency bind in it.
    """

    __slots__ = ("bound", "data", "net", "plans", "runner", "senders")

    def __init__(self, net: NetIR, data: bytes, bound: BoundValues = NOTHING_BOUND) -> None:
        """Prepare a net.

        Args:
            net: The net.
            data: The same as it came.
            bound: What rules of residency bind in it.

        Raises:
            ValueDecodingError: a constant in it is not a value.
        """
        self.net = net
        self.data = data
        self.bound = bound
        self.runner = NetRunner(net, bound.alone, bound_texts(net, bound))
        self.plans = [_plan(transition, net.site) for transition in self.runner.wired.transitions]
        self.senders = self.runner.wired.senders()


class PreparedNets:
    """Those of one site."""

    def __init__(
        self,
        objections: Callable[[NetIR], list[str]],
        bound_values: Callable[[NetIR], BoundValues] = lambda _: NOTHING_BOUND,
    ) -> None:
        """Begin with none.

        Args:
            objections: Says why the site will not run a net; always says the same of the same one.
            bound_values: Follows what rules of residency bind in a net.
        """
        self._objections = objections
        self._bound_values = bound_values
        self._idle: OrderedDict[bytes, tuple[NetIR, BoundValues, list[PreparedNet]]] = OrderedDict()
        self._size = 0

    def take(self, data: bytes) -> tuple[PreparedNet | None, list[str]]:
        """Give a net that is ready to run, or why the site will not run it.

        Args:
            data: The net, as `NetIR.to_bytes` made it.

        Raises:
            ValueDecodingError: a constant in it is not a value.
            msgspec.DecodeError: the bytes are no net.
        """
        known = self._idle.get(data)
        if known is None:
            net = NetIR.from_bytes(data)
            reasons = self._objections(net)
            if reasons:
                return None, reasons
            bound = self._bound_values(net)
            prepared = PreparedNet(net, data, bound)
            if len(data) <= LARGEST:
                self._idle[data] = (net, bound, [])
                self._size += len(data)
                self._forget()
            return prepared, []
        self._idle.move_to_end(data)
        net, bound, idle = known
        if not idle:
            return PreparedNet(net, data, bound), []
        self._size -= len(data)
        return idle.pop(), []

    def give_back(self, prepared: PreparedNet) -> None:
        """Take back a net whose job has ended, unless something of that is left in it."""
        known = self._idle.get(prepared.data)
        if known is None:
            return
        size, kept = len(prepared.data), len(known[2])
        if kept < IDLE and size * (kept + 2) <= MOST_BYTES and prepared.runner.renew():
            for plan in prepared.plans:
                if plan is not None:
                    plan.loading = 0.0
            known[2].append(prepared)
            self._size += size
            self._forget()

    def _forget(self) -> None:
        """Forget those that were not taken for the longest time, where all are too many."""
        while len(self._idle) > REMEMBERED or self._size > MOST_BYTES:
            data, (_, _, idle) = self._idle.popitem(last=False)
            self._size -= len(data) * (1 + len(idle))


def _plan(transition: WiredTransition, site: str) -> CallPlan | None:
    action = transition.ir.action
    if not isinstance(action, Call | Reduce):
        return None
    plan = CallPlan(action.operation, action.provider, action.retries, action.timeout)
    routes = transition.routes.get(Port.VALUE, ())
    plan.leaves = isinstance(action, Call) and any(route.site != site and not route.select for route in routes)
    return plan


__all__ = ["IDLE", "LARGEST", "MOST_BYTES", "REMEMBERED", "PreparedNet", "PreparedNets"]
