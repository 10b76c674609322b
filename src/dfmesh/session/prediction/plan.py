"""A compiled pipeline made ready for a predicted run: values are sizes, calls are seconds."""

from __future__ import annotations

from typing import Any

from dfmesh.netir import Port
from dfmesh.session.prediction.chains import Stage
from dfmesh.session.prediction.resources import Loader, Site, Wire, Workers

OWN, OUTER, GATHERED = range(3)
"""Kinds of targets: a place of the token's own scope, one of a deeper scope, one that gathers from a loop."""

Target = tuple[int, Any, bool]
"""Kind of the target; its step (its `Reader` if it is outer); whether a skip there makes the step skip."""


class Send:
    """One output of a step to one site.

    Attributes:
        wire: Way to that site; None if it is the step's own.
        size: Bytes of a token on it.
        targets: Places that get it there.
    """

    __slots__ = ("size", "targets", "wire")

    def __init__(self, wire: Wire | None, size: float, targets: list[Target]) -> None:
        self.wire = wire
        self.size = size
        self.targets = targets


class Step:
    """A statement at its site.

    Attributes:
        node: Id of the statement.
        name: What the user calls it.
        action: What it does.
        site: Where.
        scope: Scope in which it runs.
        at: Number of its site among those that take part in the scope.
        position: Number among the steps of that scope.
        bit: The same as a bit.
        own: Tokens of its own scope that it needs.
        sends: Its outputs by port.
        opening: Loops: what they send for an iteration.
        ending: What it sends when it ends.
        stage: Calls: its place on the critical path.
        seconds: Calls: time of one, on average.
        varied: Calls: times that they take, in turn; empty if they all take as long.
        workers: Calls: who makes them.
        loader: Calls: what a freshly started site has to load first; None if nothing.
        calls: Calls: how many there were.
        body: Loops, collects and reduces: the loop's scope.
        window: Loops: how many iterations may be open.
        shares: Loops: iterations, one figure per parameter set or one for all; conditions and look-ups: share of
            those that are true or found.
        carried: What rounding has left over of the shares so far.
        starts: Reduces: whether there is a value to start from.
        result: Yields: way to the homesite; None if that is here.
        size: Yields: bytes of a result.
    """

    __slots__ = (
        "action",
        "at",
        "bit",
        "body",
        "calls",
        "carried",
        "ending",
        "loader",
        "name",
        "node",
        "opening",
        "own",
        "position",
        "result",
        "scope",
        "seconds",
        "sends",
        "shares",
        "site",
        "size",
        "stage",
        "starts",
        "varied",
        "window",
        "workers",
    )

    def __init__(self, node: str, name: str, action: type, site: Site, scope: Scope) -> None:
        self.node = node
        self.name = name
        self.action = action
        self.site = site
        self.scope = scope
        self.at = scope.position[site.name]
        self.position = len(scope.missing)
        self.bit = 1 << self.position
        self.own = 0
        self.sends: dict[Port, list[Send]] = {}
        self.opening: tuple[Send, ...] = ()
        self.ending: tuple[Send, ...] = ()
        self.stage = Stage("call", site.name, name, node)
        self.seconds = 0.0
        self.varied: list[float] = []
        self.workers = Workers(site, 0)
        self.loader: Loader | None = None
        self.calls = 0
        self.body: Scope | None = None
        self.window = 0
        self.shares: list[float] = [0.0]
        self.carried = 0.5
        self.starts = False
        self.result: Wire | None = None
        self.size = 0.0

    def outputs(self, *ports: Port) -> tuple[Send, ...]:
        """Give what goes out of some ports, in their order."""
        return tuple(send for port in ports for send in self.sends.get(port, ()))

    def times(self, number: int) -> int:
        """Give the iterations of the next loop, or 0 or 1 for the next condition; the mean comes out in the long run.

        Args:
            number: Number of the parameter set.
        """
        whole, self.carried = divmod(self.shares[number % len(self.shares)] + self.carried, 1)
        return int(whole)


class Reader:
    """A place that takes tokens of an enclosing scope.

    Attributes:
        step: Whose place it is.
        scope: The enclosing scope.
        at: Number of the step's site among those that take part in it.
        marks: As in `Target`.
    """

    __slots__ = ("at", "marks", "scope", "step")

    def __init__(self, step: Step, scope: Scope, marks: bool) -> None:
        self.step = step
        self.scope = scope
        self.at = scope.position[step.site.name]
        self.marks = marks


class Scope:
    """The whole pipeline, or the body of a loop.

    Attributes:
        id: As in the net.
        parent: Enclosing scope; None for the root.
        depth: Length of its frames.
        head: Site of the loop; the homesite for the root.
        participants: Sites that take part.
        position: Number of each of them, by name.
        missing: Tokens that each step needs.
        left: Things to be done at each taking-part site before it is done with a frame.
        readers: Places of its steps that take tokens of enclosing scopes.
        gatherers: Collects and reduces over it, at each taking-part site.
        told: Way from each taking-part site to the head; None for the head's own.
        tells: Way from the head to each taking-part site; None for its own.
    """

    __slots__ = (
        "depth",
        "gatherers",
        "head",
        "id",
        "left",
        "missing",
        "parent",
        "participants",
        "position",
        "readers",
        "tells",
        "told",
    )

    def __init__(self, number: int, parent: Scope | None, depth: int, head: str, participants: tuple[str, ...]) -> None:
        self.id = number
        self.parent = parent
        self.depth = depth
        self.head = head
        self.participants = participants
        self.position = {site: position for position, site in enumerate(participants)}
        self.missing: list[int] = []
        self.left = [0] * len(participants)
        self.readers: list[Reader] = []
        self.gatherers: list[list[Step]] = [[] for _ in participants]
        self.told: list[Wire | None] = []
        self.tells: list[Wire | None] = []


class Plan:
    """All that a predicted run needs to know.

    Attributes:
        root: The scope of the whole pipeline.
        steps: All steps.
        sites: Taking-part sites, the homesite first.
        wires: Ways between sites that something goes along.
        opened: Per taking-part site what gets a token when a frame opens.
        until_open: Seconds until the homesite opens parameter sets: it has an answer from all sites that have something
            to do, or there is but one, which is told to start and what to run in one go.
        answers: Seconds until the homesite has an answer from each taking-part site.
        latencies: From the homesite to each taking-part site.
    """

    def __init__(self, root: Scope) -> None:
        self.root = root
        self.steps: list[Step] = []
        self.sites: list[Site] = []
        self.wires: dict[tuple[str, str], Wire] = {}
        self.opened: list[list[Target]] = [[] for _ in root.participants]
        self.latencies: list[float] = []
        self.until_open = 0.0
        self.answers: dict[str, float] = {}
