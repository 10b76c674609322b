"""A NetIR made ready to run: places, routes and expressions resolved into objects that fire quickly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dfmesh.engine.tokens import MISSING
from dfmesh.netir import (
    Branch,
    Call,
    Choose,
    Collect,
    Evaluate,
    Evaluator,
    Expression,
    Frame,
    Input,
    LookUp,
    Loop,
    NetIR,
    Port,
    Reduce,
    Route,
    Scope,
    SendYield,
    Store,
    Transition,
    compile_expression,
    inputs_of,
)

if TYPE_CHECKING:
    from dfmesh.engine.bound_texts import BoundTexts
    from dfmesh.engine.gathering import Gathering
    from dfmesh.engine.loops import LoopRun


class Slot:
    """The tokens of a transition's own scope that are there for one frame."""

    __slots__ = ("abnormal", "missing", "values")

    def __init__(self, template: list[Any], missing: int) -> None:
        self.values = template.copy()
        self.missing = missing
        self.abnormal = False


class OuterInput:
    """A place that takes values of an enclosing scope.

    Attributes:
        index: Position among the inputs.
        scope: That scope.
        depth: Length of its frames.
        values: Token per frame of that scope, until that frame is done here.
        waiting: Complete slots that wait for the token, per frame of that scope.
    """

    __slots__ = ("depth", "index", "scope", "values", "waiting")

    def __init__(self, index: int, scope: int, depth: int) -> None:
        self.index = index
        self.scope = scope
        self.depth = depth
        self.values: dict[Frame, Any] = {}
        self.waiting: dict[Frame, list[tuple[Frame, Slot]]] = {}


class WiredTransition:
    """A transition with its slots and compiled expressions.

    Attributes:
        ir: The transition.
        position: Index in the net.
        own: How many inputs have its own scope.
        alone: It has a single input, of its own scope: a token there makes it fire.
        awaited: Somebody waits for it to end.
        outers: Those of enclosing scopes.
        template: A slot's values before any token came.
        slots: Slot per frame for which some tokens are there and some are not.
        body: For loops, collects and reduces: the loop's scope.
        streamable: For loops and yields: input whose stream they take item by item; None if there is none.
        reduces: It is a reduce.
        judges_itself: Failed and skipped inputs are for its own rule to judge, as those of Choose.
        condition_inputs: For Choose: inputs that its condition reads.
        fire: The runner's rule for it, once it has fired.
        stream_inputs: For calls: inputs that are an argument as they are, with its name; they may be streams.
        argument: For calls with one input, which is their one argument as it is: its name; else None.
        fired: For loops, conditions and look-ups: how often they ran.
        counted: What they counted, as in `message_parts.TallyReport`.
    """

    __slots__ = (
        "alone",
        "argument",
        "arguments",
        "awaited",
        "body",
        "condition_inputs",
        "counted",
        "evaluate",
        "fire",
        "fired",
        "gatherings",
        "initial",
        "ir",
        "judges_itself",
        "otherwise",
        "outers",
        "own",
        "position",
        "reduces",
        "roles",
        "routes",
        "slots",
        "stream_inputs",
        "streamable",
        "template",
        "then",
    )

    def __init__(self, ir: Transition, position: int, depths: dict[int, int]) -> None:
        self.ir = ir
        self.position = position
        gathers = isinstance(ir.action, Collect | Reduce)
        self.outers = [
            OuterInput(index, place.scope, depths[place.scope])
            for index, place in enumerate(ir.inputs)
            if place.scope != ir.scope and not (gathers and index == 0)
        ]
        self.own = len(ir.inputs) - len(self.outers) - gathers
        self.alone = len(ir.inputs) == 1 and self.own == 1
        self.template: list[Any] = [MISSING] * len(ir.inputs)
        self.slots: dict[Frame, Slot] = {}
        self.roles = [place.role for place in ir.inputs]
        self.routes: dict[Port, list[Route]] = {}
        for route in ir.routes:
            self.routes.setdefault(route.port, []).append(route)
        self.awaited = Port.DONE in self.routes
        self.body = ir.action.body if isinstance(ir.action, Loop | Collect | Reduce) else None
        self.reduces = isinstance(ir.action, Reduce)
        self.judges_itself = isinstance(ir.action, Choose | Store)
        self.fire: FireRule | None = None
        self.gatherings: dict[Frame, Gathering] = {}
        self.arguments: list[tuple[str, Evaluator]] = []
        self.streamable: int | None = None
        self.stream_inputs: dict[int, str] = {}
        self.argument: str | None = None
        self.fired = 0
        self.counted = 0
        self._compile()

    def count(self, number: int) -> None:
        """Note what a loop, condition or look-up counted."""
        self.fired += 1
        self.counted += number

    def _compile(self) -> None:
        match self.ir.action:
            case Call(arguments=arguments):
                self.arguments = [(name, compile_expression(item)) for name, item in arguments.items()]
                self.stream_inputs = _bare_inputs(arguments)
                if self.alone and len(arguments) == 1:
                    self.argument = self.stream_inputs.get(0)
            case Evaluate(expression=expression) | Store(expression=expression) | LookUp(key=expression):
                self.evaluate = compile_expression(expression)
            case SendYield(expression=expression) | Loop(sequence=expression):
                self.evaluate = compile_expression(expression)
                if isinstance(expression, Input) and not expression.select:
                    self.streamable = expression.index
            case Branch(condition=condition):
                self.evaluate = compile_expression(condition)
            case Choose(condition=condition, then=then, otherwise=otherwise):
                self.evaluate = compile_expression(condition)
                self.condition_inputs = tuple(inputs_of(condition))
                self.then = compile_expression(then)
                self.otherwise = compile_expression(otherwise)
            case Reduce(arguments=arguments, initial=initial):
                self.arguments = [(name, compile_expression(item)) for name, item in arguments.items()]
                self.initial = None if initial is None else compile_expression(initial)
            case Collect():
                pass


class WiredScope:
    """What this site has to do in a scope.

    Attributes:
        id: The scope.
        size: Things to be done here per frame: transitions, values to gather, loops inside, values for those to come.
        left: Things still to be done, per open frame in which some are done.
        progress: Per frame of the parent, how many frames below it are done here, and how many there are (None
            while the loop still opens some).
        depth: Length of its frames.
        readers: Outer inputs, of deeper transitions, that hold values of this scope.
        gatherers: Collects and reduces here over this scope.
        runs: For loops of this site: the running ones, per frame of the parent.
        participants: Sites in the scope, for loops of this site.
    """

    __slots__ = (
        "depth",
        "gatherers",
        "head_site",
        "id",
        "left",
        "parent",
        "participants",
        "progress",
        "readers",
        "runs",
        "size",
        "tolerant",
    )

    def __init__(self, scope: Scope) -> None:
        self.id = scope.id
        self.parent = scope.parent
        self.depth = scope.depth
        self.head_site = scope.head_site
        self.participants = scope.participants
        self.tolerant = scope.tolerant
        self.size = 0
        self.left: dict[Frame, int] = {}
        self.progress: dict[Frame, list[int | None]] = {}
        self.readers: list[OuterInput] = []
        self.gatherers: list[WiredTransition] = []
        self.runs: dict[Frame, LoopRun] = {}


FireRule = Callable[[WiredTransition, Frame, list[Any]], Any]
"""Makes a transition fire for a frame, with the values of its inputs."""

Target = tuple[WiredTransition, int, "OuterInput | None", bool]
"""Where a token on a place goes: transition, input, the outer input if it is one, whether it is gathered."""


class WiredNet:
    """All of a net, by id.

    Attributes:
        net: The net.
        texts: What may be told of statements that touch what a rule of residency binds; None if none does.
    """

    def __init__(self, net: NetIR, texts: BoundTexts | None = None) -> None:
        self.net = net
        self.texts = texts
        depths = {scope.id: scope.depth for scope in net.scopes}
        self.scopes = {scope.id: WiredScope(scope) for scope in net.scopes}
        self.transitions = [WiredTransition(ir, position, depths) for position, ir in enumerate(net.transitions)]
        self.places: dict[int, Target] = {}
        for transition in self.transitions:
            self._wire(transition)
        for scope in net.scopes:
            if scope.parent is not None and net.site in scope.participants:
                self.scopes[scope.parent].size += 1
        self.arrivals: dict[int, list[Target]] = {
            route: [self.places[place] for place in arrival.places] for route, arrival in net.arrivals.items()
        }
        self.parameters = {name: [self.places[place] for place in places] for name, places in net.parameters.items()}
        self.starts = [self.places[place] for place in net.starts]

    def renew(self) -> bool:
        """Forget what transitions have counted; False if values of a job are left in here."""
        for scope in self.scopes.values():
            if scope.left or scope.progress or scope.runs:
                return False
        for transition in self.transitions:
            if transition.slots or transition.gatherings:
                return False
            for outer in transition.outers:
                if outer.values or outer.waiting:
                    return False
            transition.fired = transition.counted = 0
        return True

    def senders(self) -> dict[int, tuple[str, int]]:
        """Give the site that sends along each arriving route, and how long the frames of its tokens are."""
        depths = {place.id: self.scopes[place.scope].depth for item in self.transitions for place in item.ir.inputs}
        return {
            route: (arrival.source, depths[arrival.places[0]])
            for route, arrival in self.net.arrivals.items()
            if arrival.places
        }

    def _wire(self, transition: WiredTransition) -> None:
        ir = transition.ir
        self.scopes[ir.scope].size += 1
        gathers = isinstance(ir.action, Collect | Reduce)
        if gathers and transition.body is not None:
            self.scopes[transition.body].size += 1
            self.scopes[transition.body].gatherers.append(transition)
        outers = {outer.index: outer for outer in transition.outers}
        for index, place in enumerate(ir.inputs):
            outer = outers.get(index)
            if outer is not None:
                self.scopes[place.scope].readers.append(outer)
                self.scopes[place.scope].size += 1
            self.places[place.id] = (transition, index, outer, gathers and index == 0)


def _bare_inputs(arguments: dict[str, Expression]) -> dict[int, str]:
    """Find the inputs that are read in one place only, where they are an argument as they are."""
    bare = {item.index: name for name, item in arguments.items() if isinstance(item, Input) and not item.select}
    read = [index for item in arguments.values() for index in inputs_of(item)]
    return {index: name for index, name in bare.items() if read.count(index) == 1}
