"""NetIR: the slice of a compiled pipeline that one site runs, a coloured Petri net as plain data.

Tokens are coloured by a *frame*, a tuple of integers: the parameter set, then one loop index per enclosing
`ForEach`. Every transition of a scope fires exactly once for each frame of that scope, whatever happens: with a
value, an error or a skip. That makes completion a matter of counting.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from dfmesh.netir.expression import Expression, Selector

Frame = tuple[int, ...]

ROOT_SCOPE = 0


class Scope(msgspec.Struct, frozen=True):
    """The body of a loop, or the whole pipeline (`ROOT_SCOPE`).

    Attributes:
        id: Unique in the job.
        parent: Enclosing scope; None for the root.
        depth: Length of the frames of this scope, 1 for the root.
        head_site: Site of the loop that opens its frames; the homesite for the root.
        participants: Sites that have transitions in this scope or below it, sorted.
        tolerant: Errors inside are the loop's to handle, they do not fail the job.
    """

    id: int
    parent: int | None
    depth: int
    head_site: str
    participants: tuple[str, ...]
    tolerant: bool = False


class Role(enum.Enum):
    """What a token on a place means to its transition."""

    VALUE = "value"
    TRIGGER = "trigger"
    GUARD = "guard"


class Place(msgspec.Struct, frozen=True):
    """An input slot of a transition.

    Attributes:
        id: Unique in the job.
        scope: Scope whose frames colour its tokens: the transition's own or an enclosing one.
        role: A VALUE is readable as `Input`; a TRIGGER only says that something has happened (an error there is
            passed on, a skip is not); a GUARD carries the outcome of a condition.
    """

    id: int
    scope: int
    role: Role = Role.VALUE


class Port(enum.StrEnum):
    """Which of the outputs of a transition a route carries."""

    VALUE = "value"
    DONE = "done"
    ELEMENT = "element"
    INDEX = "index"
    ITERATION = "iteration"
    THEN = "then"
    ELSE = "else"
    MISS = "miss"


ITERATION_PORTS = (Port.ELEMENT, Port.INDEX, Port.ITERATION)
"""Outputs of a loop that it gives for each iteration, while it runs; all others come when a transition has ended."""


class Route(msgspec.Struct, frozen=True):
    """One send: the way of one output to one site, for all its consumers there.

    Attributes:
        id: Unique in the job; the receiving net maps it to its places (`NetIR.arrivals`).
        port: Output of the transition. DONE only says that it ended. ELEMENT, INDEX and ITERATION (no value, the
            frame alone) belong to loops, THEN and ELSE to conditions.
        site: Destination; may be the sending site itself.
        select: Part of the value to send; where it does not fit, those who read it fail.
        live: Whether somebody there can take a stream item by item; else it gets the list.
    """

    id: int
    port: Port
    site: str
    select: Selector = ()
    live: bool = False


class Call(msgspec.Struct, frozen=True, tag="call", tag_field="action"):
    """Call an adapter of the site with `arguments`, by the operation's parameter names.

    Attributes:
        operation: Name of the operation, such as `weather.Bin`.
        provider: Provider in the site that has the adapter; None for the site's own interface.
        arguments: What the user gave; parameters left out are absent.
        retries: How often a failed call is tried again.
        timeout: Seconds one call may take; None for no limit.
        idempotent: Whether the site's owner says that running it again with the same arguments gives the same and does
            no harm.
    """

    operation: str
    provider: str | None
    arguments: dict[str, Expression]
    retries: int = 0
    timeout: float | None = None
    idempotent: bool = False


class Evaluate(msgspec.Struct, frozen=True, tag="evaluate", tag_field="action"):
    """Compute an expression; the result is the transition's value."""

    expression: Expression


class SendYield(msgspec.Struct, frozen=True, tag="yield", tag_field="action"):
    """Send the value of `expression` to the client as a result at `place`."""

    place: str
    expression: Expression


class Loop(msgspec.Struct, frozen=True, tag="loop", tag_field="action"):
    """Open one frame of scope `body` per element of a sequence, at most `window` at a time."""

    sequence: Expression
    body: int
    window: int


class OnError(enum.Enum):
    """What an error in an iteration does to what is gathered from a loop.

    FAIL it, SKIP the iteration, or COLLECT the error in place of the value.
    """

    FAIL = "fail"
    SKIP = "skip"
    COLLECT = "collect"


class Collect(msgspec.Struct, frozen=True, tag="collect", tag_field="action"):
    """Gather the values of place 0 over all frames of scope `body` into a list, in order; skipped ones are left out."""

    body: int
    on_error: OnError = OnError.FAIL


class Reduce(msgspec.Struct, frozen=True, tag="reduce", tag_field="action"):
    """Fold the values of place 0 over all frames of scope `body`, in order, with an operation of two parameters.

    Attributes:
        body: Scope of the loop.
        operation: Name of the operation that merges two values.
        provider: As in `Call`.
        left: Its parameter for the value so far.
        right: Its parameter for the next value.
        arguments: Further arguments, constants.
        initial: Value to start from; without it an empty loop is an error.
        retries: As in `Call`.
        timeout: As in `Call`.
        on_error: SKIP leaves failed iterations out, otherwise the result is the first error.
        idempotent: As in `Call`.
    """

    body: int
    operation: str
    provider: str | None
    left: str
    right: str
    arguments: dict[str, Expression]
    initial: Expression | None = None
    retries: int = 0
    timeout: float | None = None
    on_error: OnError = OnError.FAIL
    idempotent: bool = False


class Branch(msgspec.Struct, frozen=True, tag="branch", tag_field="action"):
    """Evaluate a condition; tokens on THEN routes say go where it is true, on ELSE routes where it is false."""

    condition: Expression


class Choose(msgspec.Struct, frozen=True, tag="choose", tag_field="action"):
    """Compute `then` where the condition is true, else `otherwise`; errors and skips of the other do not matter."""

    condition: Expression
    then: Expression
    otherwise: Expression


class LookUp(msgspec.Struct, frozen=True, tag="lookup", tag_field="action"):
    """Look a key up in the site's cache; tokens on MISS routes say go where nothing is found.

    The value is what was found, or a skip.

    Attributes:
        key: The key, any value.
        ttl: Age in seconds beyond which an entry does not count; None for any age.
        nested: The store of another look-up, which may be holding its key by then, waits for this one, as for all that
            is inside its block. Such a one never waits for an equal key that is being computed elsewhere, since two
            that wait for one another crosswise would wait for ever.
    """

    key: Expression
    ttl: float | None = None
    nested: bool = False


class Store(msgspec.Struct, frozen=True, tag="store", tag_field="action"):
    """Give the value that a look-up found (place 0), else that of `expression`, which is stored for the next time.

    Attributes:
        lookup: Id of the look-up's transition, at the same site.
        expression: What to store after a miss.
    """

    lookup: int
    expression: Expression


Action = Call | Evaluate | SendYield | Loop | Collect | Reduce | Branch | Choose | LookUp | Store


class Transition(msgspec.Struct, frozen=True):
    """One statement of the pipeline at one site.

    Attributes:
        id: Unique in the job.
        node: Id of the statement.
        name: What the user calls it: the operation's name, or the construct's.
        location: The user's `file:line`, or empty.
        scope: Scope in which it fires.
        inputs: Its places; at least one has the transition's own scope.
        action: What it does.
        routes: Where its outputs go.
    """

    id: int
    node: str
    name: str
    location: str
    scope: int
    inputs: tuple[Place, ...]
    action: Action
    routes: tuple[Route, ...]


class Arrival(msgspec.Struct, frozen=True):
    """Where the tokens of one route land.

    Attributes:
        source: Site that sends them.
        places: Places that each get the token.
    """

    source: str
    places: tuple[int, ...]


class NetIR(msgspec.Struct, frozen=True):
    """The part of a job that one site runs.

    Attributes:
        site: Whose part it is.
        homesite: Where yields, errors and reports go.
        scopes: Scopes this site takes part in, with their ancestors, by id.
        transitions: By id.
        arrivals: Route id to where its tokens come from and land.
        parameters: Parameter name to the places that take its value in each parameter set.
        starts: Places that get a trigger in each parameter set.
        interfaces: Operation to the text of its `OperationInterface` as the client knows it; what is called here.
        residency: Route from or to another site to the sites that may have what it carries, as the compiler planned
            it; routes that carry nothing under a rule are left out. Each site compares it with its own rules.
    """

    site: str
    homesite: str
    scopes: tuple[Scope, ...]
    transitions: tuple[Transition, ...]
    arrivals: dict[int, Arrival]
    parameters: dict[str, tuple[int, ...]]
    starts: tuple[int, ...]
    interfaces: dict[str, str] = {}
    residency: dict[int, tuple[str, ...]] = {}

    def to_bytes(self) -> bytes:
        """Encode for the wire; equal nets give equal bytes."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> NetIR:
        """Decode what `to_bytes` made.

        Raises:
            msgspec.ValidationError: the bytes are not a NetIR.
        """
        return _DECODER.decode(data)

    def to_json(self) -> str:
        """Encode as JSON, for people and files; constants are base64."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> NetIR:
        """Decode what `to_json` made.

        Raises:
            msgspec.ValidationError: the text is not a NetIR.
        """
        return msgspec.json.decode(text, type=cls)

    def operations(self) -> list[tuple[str, str | None]]:
        """List (operation, provider) of everything this site is asked to call, without repeats, in order."""
        named: dict[tuple[str, str | None], Any] = {}
        for transition in self.transitions:
            if isinstance(transition.action, Call | Reduce):
                named[transition.action.operation, transition.action.provider] = None
        return list(named)


_DECODER = msgspec.msgpack.Decoder(NetIR)
