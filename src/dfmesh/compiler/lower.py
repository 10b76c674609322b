"""Second pass: from statements to the logical graph.

Blocks become scopes and guards, references become edges, literal values become expressions. Only a validated
pipeline is lowered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dfmesh.api import (
    NO_DEFAULT,
    Choose,
    Collect,
    Comparison,
    ForEach,
    If,
    Logic,
    NodeId,
    NodeRef,
    Operation,
    Pipeline,
    PlaceParam,
    Reduce,
    Statement,
    TryFromCache,
    WriteToCache,
    Yield,
    blocks_of,
    find_references,
    node_text,
)
from dfmesh.compiler.candidates import cache_sites, candidates, operation_name
from dfmesh.compiler.graph import Edge, Graph, GraphScope, Node
from dfmesh.config import FederationConfig
from dfmesh.netir import (
    ROOT_SCOPE,
    Action,
    Branch,
    Call,
    Compare,
    DictOf,
    Evaluate,
    Expression,
    Input,
    ListOf,
    LookUp,
    Loop,
    OnError,
    Port,
    Role,
    SendYield,
    Store,
    TupleOf,
    constant,
)
from dfmesh.netir import Choose as ChooseAction
from dfmesh.netir import Collect as CollectAction
from dfmesh.netir import Logic as LogicExpression
from dfmesh.netir import Reduce as ReduceAction

DEFAULT_WINDOW = 64
"""How many iterations of a loop are open where the user does not say."""

_Guard = tuple[int, Port] | None


def lower(pipeline: Pipeline, federation: FederationConfig) -> Graph:
    """Make the logical graph of a validated pipeline."""
    lowering = _Lowering(federation)
    lowering.block(pipeline.body, ROOT_SCOPE, None)
    return lowering.graph


class _Inputs:
    """The edges of a node under construction; equal edges are one."""

    def __init__(self, lowering: _Lowering) -> None:
        self.edges: list[Edge] = []
        self._positions: dict[Edge, int] = {}
        self._lowering = lowering

    def add(self, edge: Edge) -> int:
        position = self._positions.setdefault(edge, len(self.edges))
        if position == len(self.edges):
            self.edges.append(edge)
        return position

    def expression(self, value: Any) -> Expression:
        """Turn a value or condition with references inside into an expression over these edges."""
        if isinstance(value, NodeRef | PlaceParam):
            return Input(self.add(self._lowering.edge(value)))
        if isinstance(value, Comparison):
            return Compare(value.operator, self.expression(value.left), self.expression(value.right))
        if isinstance(value, Logic):
            return LogicExpression(value.operator, tuple(self.expression(item) for item in value.operands))
        if next(find_references(value), None) is None:
            return constant(value)
        if isinstance(value, list):
            return ListOf(tuple(self.expression(item) for item in value))
        if isinstance(value, tuple):
            return TupleOf(tuple(self.expression(item) for item in value))
        return DictOf(tuple((self.expression(key), self.expression(item)) for key, item in value.items()))


class _Lowering:
    def __init__(self, federation: FederationConfig) -> None:
        self.federation = federation
        self.graph = Graph()
        self.by_id: dict[NodeId, Node] = {}
        self.bodies: dict[NodeId, int] = {}
        self.statements: dict[NodeId, Statement] = {}
        self.caches = 0

    def edge(self, reference: NodeRef | PlaceParam) -> Edge:
        if isinstance(reference, PlaceParam):
            return Edge(parameter=reference.place, select=reference.select)
        return Edge(self.by_id[reference.node].index, reference.port, select=reference.select)

    def block(self, body: Sequence[Statement], scope: int, guard: _Guard) -> None:
        for statement in body:
            self.statements[statement.node_id] = statement
            self.statement(statement, scope, guard)

    def statement(self, statement: Statement, scope: int, guard: _Guard) -> None:
        match statement:
            case Operation():
                self.operation(statement, scope, guard)
            case Yield():
                self.yield_(statement, scope, guard)
            case ForEach():
                self.loop(statement, scope, guard)
            case If():
                self.branch(statement, scope, guard)
            case Reduce():
                self.reduce(statement, scope, guard)
            case Collect():
                self.collect(statement, scope, guard)
            case Choose():
                self.choose(statement, scope, guard)
            case TryFromCache():
                self.try_from_cache(statement, scope, guard)
            case WriteToCache():
                pass  # Part of the block it stands in.
            case _:
                raise TypeError(f"{type(statement).__name__} is not lowered")

    def operation(self, statement: Operation, scope: int, guard: _Guard) -> None:
        inputs = _Inputs(self)
        arguments = {name: inputs.expression(value) for name, value in statement.arguments.items()}
        name = operation_name(statement.operation, self.federation)
        action = Call(name, statement.provider, arguments, statement.retries, statement.timeout)
        node = self.node(statement, action, inputs, scope, guard)
        node.candidates = candidates(statement, self.federation)

    def yield_(self, statement: Yield, scope: int, guard: _Guard) -> None:
        inputs = _Inputs(self)
        action = SendYield(statement.place, inputs.expression(statement.value))
        node = self.node(statement, action, inputs, scope, guard)
        node.beside = self.only_source(node)

    def choose(self, statement: Choose, scope: int, guard: _Guard) -> None:
        inputs = _Inputs(self)
        condition = inputs.expression(statement.cond)
        action = ChooseAction(condition, inputs.expression(statement.then), inputs.expression(statement.otherwise))
        self.node(statement, action, inputs, scope, guard, always_guarded=True)

    def branch(self, statement: If, scope: int, guard: _Guard) -> None:
        inputs = _Inputs(self)
        node = self.node(statement, Branch(inputs.expression(statement.cond)), inputs, scope, guard)
        self.block(statement.body, scope, (node.index, Port.THEN))
        if statement.otherwise is not None:
            self.block(statement.otherwise.body, scope, (node.index, Port.ELSE))

    def loop(self, statement: ForEach, scope: int, guard: _Guard) -> None:
        inputs = _Inputs(self)
        sequence = inputs.expression(statement.seq)
        body = GraphScope(len(self.graph.scopes), scope, None, tolerant=statement.on_error != "fail")
        self.graph.scopes.append(body)
        node = self.node(statement, Loop(sequence, body.id, statement.window or DEFAULT_WINDOW), inputs, scope, guard)
        node.beside = self.only_source(node)
        body.head = node.index
        self.bodies[statement.node_id] = body.id
        self.block(statement.body, body.id, None)

    def try_from_cache(self, statement: TryFromCache, scope: int, guard: _Guard) -> None:
        inputs = _Inputs(self)
        action = LookUp(inputs.expression(statement.key), statement.ttl, nested=self.caches > 0)
        lookup = self.node(statement, action, inputs, scope, guard)
        lookup.candidates = cache_sites(statement, self.federation)
        self.caches += 1
        self.block(statement.body, scope, (lookup.index, Port.MISS))
        self.caches -= 1
        write = next(inner for inner in statement.body if isinstance(inner, WriteToCache))
        stored = _Inputs(self)
        stored.add(Edge(lookup.index))
        store = Store(lookup.index, stored.expression(write.value))
        node = self.node(statement, store, stored, scope, guard, always_guarded=True)
        node.beside = lookup.index
        self.by_id[write.node_id] = node

    def collect(self, statement: Collect, scope: int, guard: _Guard) -> None:
        body = self.bodies[statement.loop]
        inputs = self.gathered(statement, statement.value, body)
        self.node(statement, CollectAction(body, self.on_error(statement)), inputs, scope, guard, always_guarded=True)

    def reduce(self, statement: Reduce, scope: int, guard: _Guard) -> None:
        body = self.bodies[statement.loop]
        inputs = self.gathered(statement, statement.value, body)
        name = operation_name(statement.operation, self.federation)
        names = [parameter.name for parameter in self.federation.operations[name].parameters]
        initial = None if statement.initial is NO_DEFAULT else inputs.expression(statement.initial)
        action = ReduceAction(
            body,
            name,
            statement.provider,
            names[0],
            names[1],
            {name: inputs.expression(value) for name, value in statement.arguments.items()},
            initial,
            statement.retries,
            statement.timeout,
            self.on_error(statement),
        )
        node = self.node(statement, action, inputs, scope, guard, always_guarded=True)
        node.candidates = candidates(statement, self.federation)

    def on_error(self, statement: Collect | Reduce) -> OnError:
        loop = self.statements[statement.loop]
        return OnError(loop.on_error) if isinstance(loop, ForEach) else OnError.FAIL

    def gathered(self, statement: Collect | Reduce, value: Any, body: int) -> _Inputs:
        """Give inputs whose first edge carries the gathered value, from a node of the loop's own scope."""
        inputs = _Inputs(self)
        if isinstance(value, NodeRef):
            edge = self.edge(value)
            if self.graph.edge_scope(edge) == body:
                inputs.add(edge)
                return inputs
        assembled = _Inputs(self)
        action = Evaluate(assembled.expression(value))
        node = self.node(statement, action, assembled, body, None, register=False)
        inputs.add(Edge(node.index))
        return inputs

    def node(
        self,
        statement: Statement,
        action: Action,
        inputs: _Inputs,
        scope: int,
        guard: _Guard,
        *,
        always_guarded: bool = False,
        register: bool = True,
    ) -> Node:
        for reference in statement.after if register else ():
            for edge in self.ended(self.statements[reference], scope):
                inputs.add(edge)
        if guard is not None and (always_guarded or not self.guarded_already(inputs, scope, guard)):
            inputs.add(Edge(guard[0], guard[1], role=Role.GUARD))
        # A path that is no Unicode has lone surrogates, which cannot be sent.
        location = str(statement.location).encode(errors="backslashreplace").decode() if statement.location else ""
        index = len(self.graph.nodes)
        node = Node(
            index, node_text(statement.node_id), statement.label, location, scope, action, inputs.edges, guard=guard
        )
        self.add_trigger(node)
        self.graph.nodes.append(node)
        if register:
            self.by_id[statement.node_id] = node
        return node

    def guarded_already(self, inputs: _Inputs, scope: int, guard: _Guard) -> bool:
        """Tell whether some input is skipped whenever the guard is, so that no token is needed for it."""
        return any(
            edge.role is Role.VALUE
            and edge.source is not None
            and self.graph.nodes[edge.source].guard == guard
            and self.graph.edge_scope(edge) == scope
            for edge in inputs.edges
        )

    def add_trigger(self, node: Node) -> None:
        if any(self.graph.edge_scope(edge) == node.scope for edge in node.edges):
            return
        head = self.graph.scopes[node.scope].head
        port = Port.DONE if head is None else Port.ITERATION
        node.edges.append(Edge(head, port, role=Role.TRIGGER))

    def only_source(self, node: Node) -> int | None:
        """Give the node beside which a yield or loop runs: the one its value comes from, if that is a single one."""
        values = [edge for edge in node.edges if edge.role is Role.VALUE]
        if len(values) == 1 and values[0].source is not None and values[0].port is Port.VALUE:
            return values[0].source
        return None

    def ended(self, statement: Statement, scope: int) -> list[Edge]:
        """Give the edges that tell the end of a statement, and of all that its block holds."""
        edges = [Edge(self.by_id[statement.node_id].index, Port.DONE, role=Role.TRIGGER)]
        if isinstance(statement, If):
            for inner in (inner for block in blocks_of(statement) for inner in block.body):
                edges += self.ended(inner, scope)
        if isinstance(statement, ForEach):
            edges.append(self.loop_ended(statement, scope))
        return edges

    def loop_ended(self, loop: ForEach, scope: int) -> Edge:
        body = self.bodies[loop.node_id]
        last = _Inputs(self)
        for inner in loop.body:
            for edge in self.ended(inner, body):
                last.add(edge)
        done = self.node(loop, Evaluate(constant(None)), last, body, None, register=False)
        every = _Inputs(self)
        every.add(Edge(done.index, Port.VALUE))
        owner = self.by_id[loop.node_id]
        on_error = OnError.FAIL if loop.on_error == "fail" else OnError.SKIP
        action = CollectAction(body, on_error)
        node = self.node(loop, action, every, owner.scope, owner.guard, always_guarded=True, register=False)
        return Edge(node.index, Port.DONE, role=Role.TRIGGER)
