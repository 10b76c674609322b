"""The logical graph: the statements of a pipeline with their scopes and dependencies, before sites are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dfmesh.netir import ITERATION_PORTS, ROOT_SCOPE, Action, Loop, Port, Role, Selector
from dfmesh.netir.text import render_action


@dataclass(frozen=True, slots=True)
class Edge:
    """An input of a node.

    Attributes:
        source: Index of the node it comes from; None for a parameter or the start of a frame.
        port: Output of the source.
        parameter: Name of the parameter it takes; None if it comes from a node or the start.
        select: Part of the value that is taken.
        role: What it means to the node.
    """

    source: int | None = None
    port: Port = Port.VALUE
    parameter: str | None = None
    select: Selector = ()
    role: Role = Role.VALUE


@dataclass(slots=True)
class Node:
    """A logical node: one transition, wherever it will run.

    Attributes:
        index: Position in `Graph.nodes`, which are in an order in which sources come first.
        node: Text of the statement's id.
        name: What the user calls it.
        location: The user's `file:line`, or empty.
        scope: Scope in which it fires.
        action: What it does; `Input(i)` in it is the value of `edges[i]`.
        edges: Its inputs.
        candidates: Sites that can run it, in declared order; None for any site.
        beside: Index of a node at whose site it must run.
        guard: The branch that its block hangs on.
    """

    index: int
    node: str
    name: str
    location: str
    scope: int
    action: Action
    edges: list[Edge]
    candidates: tuple[str, ...] | None = None
    beside: int | None = None
    guard: tuple[int, Port] | None = None


@dataclass(slots=True)
class GraphScope:
    """The whole pipeline, or the body of a loop.

    Attributes:
        id: Position in `Graph.scopes`.
        parent: Enclosing scope; None for the root.
        head: Index of the loop's node; None for the root.
        tolerant: As in `netir.Scope`.
    """

    id: int
    parent: int | None
    head: int | None
    tolerant: bool = False


@dataclass(slots=True)
class Graph:
    """A lowered pipeline.

    Attributes:
        nodes: In an order in which sources come first.
        scopes: By id; the first is the root.
    """

    nodes: list[Node] = field(default_factory=list)
    scopes: list[GraphScope] = field(default_factory=lambda: [GraphScope(ROOT_SCOPE, None, None)])

    def depth(self, scope: int) -> int:
        """Length of the frames of a scope."""
        return sum(1 for _ in self.enclosing(scope))

    def enclosing(self, scope: int) -> Iterator[int]:
        """Iterate over a scope and those around it, from the inside out."""
        current: int | None = scope
        while current is not None:
            yield current
            current = self.scopes[current].parent

    def edge_scope(self, edge: Edge) -> int:
        """Scope whose frames colour the tokens of an edge."""
        if edge.source is None:
            return ROOT_SCOPE
        source = self.nodes[edge.source]
        if edge.port in ITERATION_PORTS:
            if not isinstance(source.action, Loop):
                raise TypeError(f"{source.name} is no loop and has no {edge.port.value}")
            return source.action.body
        return source.scope

    def render(self) -> str:
        """Write the graph as text, for tests and people."""
        lines = [f"scope s{scope.id} in s{scope.parent} head n{scope.head}" for scope in self.scopes[1:]]
        for node in self.nodes:
            edges = ", ".join(_edge(edge) for edge in node.edges)
            where = "" if node.candidates is None else f" at {'|'.join(node.candidates)}"
            beside = "" if node.beside is None else f" beside n{node.beside}"
            lines.append(
                f"n{node.index} s{node.scope} {node.node} ({edges}): {render_action(node.action)}{where}{beside}"
            )
        return "\n".join(lines) + "\n"


def _edge(edge: Edge) -> str:
    if edge.parameter is not None:
        origin = f"${edge.parameter}"
    elif edge.source is None:
        origin = "start"
    else:
        origin = f"n{edge.source}" + ("" if edge.port is Port.VALUE else f".{edge.port.value}")
    role = "" if edge.role is Role.VALUE else f" {edge.role.value}"
    return f"{origin}{''.join(map(str, edge.select))}{role}"
