"""From a compiled pipeline and costs to a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dfmesh.compiler.costs import Costs
from dfmesh.compiler.graph import Graph
from dfmesh.compiler.measured import RESULT, output_text
from dfmesh.config import FederationConfig
from dfmesh.engine.worker_threads import MAX_THREADS, PATIENCE
from dfmesh.netir import (
    ROOT_SCOPE,
    Call,
    Choose,
    Collect,
    Loop,
    NetIR,
    Place,
    Port,
    Reduce,
    Role,
    Route,
    SendYield,
    Store,
    Transition,
)
from dfmesh.session.prediction.chains import Stage
from dfmesh.session.prediction.plan import GATHERED, OUTER, OWN, Plan, Reader, Scope, Send, Step, Target
from dfmesh.session.prediction.resources import Loader, Site, Wire, Workers
from dfmesh.session.prediction.variation import varied

HEAD = 36.0
"""Bytes of a message besides its value."""

CONTROL = 28.0
"""Bytes of a message between sites that carries no token: the end of an iteration, a loop or a frame."""

FURTHER = 5.0
"""Bytes of each further iteration that such a message tells of."""

_SMALLEST_ELEMENT = 16.0


class Planner:
    """Makes a plan."""

    def __init__(
        self,
        nets: Mapping[str, NetIR],
        graph: Graph,
        costs: Costs,
        config: FederationConfig,
        shares: Mapping[int, Sequence[float]],
        *,
        cold: bool,
    ) -> None:
        """Get ready.

        Args:
            nets: Nets by site, the homesite first.
            graph: What they were made from.
            costs: Of the graph.
            config: The federation.
            shares: Iterations of loops, shares of conditions and look-ups, by the id of their transition.
            cold: Whether the sites were just started, so that first calls load their libraries.
        """
        self._nets = nets
        self._graph = graph
        self._costs = costs
        self._config = config
        self._shares = shares
        self._cold = cold
        self._home = next(iter(nets))
        self._scopes: dict[int, Scope] = {}
        self._targets: dict[int, Target] = {}
        self._workers: dict[tuple[str, str], Workers] = {}
        self._loaders: dict[tuple[str, str, str | None], Loader] = {}

    def plan(self) -> Plan:
        """Make the plan."""
        self._make_scopes()
        self.result = result = Plan(self._scopes[ROOT_SCOPE])
        placed: list[tuple[Step, Transition, NetIR]] = []
        for name, net in self._nets.items():
            site = Site(name, self._costs.measured.lag(name))
            result.sites.append(site)
            placed += [(self._step(item, site), item, net) for item in net.transitions]
        for scope in self._scopes.values():
            self._connect(scope)
        for step, item, net in placed:
            self._fill(step, item, net)
        self._open(result)
        result.steps = [step for step, _, _ in placed]
        return result

    def wire(self, source: str, destination: str) -> Wire | None:
        """Give the way between two sites, until the other one has time for what comes; None if they are one."""
        if source == destination:
            return None
        wires = self.result.wires
        wire = wires.get((source, destination))
        if wire is None:
            latency, per_byte = self._costs.link(source, destination)
            latency += self._costs.measured.lag(destination)
            wire = wires[source, destination] = Wire(source, destination, latency, per_byte)
        return wire

    # Scopes

    def _make_scopes(self) -> None:
        known = {scope.id: scope for net in self._nets.values() for scope in net.scopes}
        for number in sorted(known):  # Enclosing scopes come first.
            scope = known[number]
            parent = None if scope.parent is None else self._scopes[scope.parent]
            participants = scope.participants
            self._scopes[number] = Scope(number, parent, scope.depth, scope.head_site, participants)
            if parent is not None:
                for site in participants:
                    parent.left[parent.position[site]] += 1

    def _connect(self, scope: Scope) -> None:
        scope.told = [self.wire(site, scope.head) for site in scope.participants]
        scope.tells = [self.wire(scope.head, site) for site in scope.participants]

    def _open(self, plan: Plan) -> None:
        position = plan.root.position
        for name, net in self._nets.items():
            places = [place for places in net.parameters.values() for place in places]
            plan.opened[position[name]] = [self._targets[place] for place in (*places, *net.starts)]
        sites = plan.root.participants
        plan.latencies = [self._latency(self._home, site) for site in sites]
        answers = {site: self._latency(self._home, site) + self._latency(site, self._home) for site in sites}
        plan.answers = answers
        busy = [site for site in sites if self._nets[site].transitions]
        plan.until_open = max(answers[site] for site in busy) if len(busy) > 1 else 0.0

    def _latency(self, source: str, destination: str) -> float:
        return 0.0 if source == destination else self._costs.link(source, destination)[0]

    # Steps

    def _step(self, item: Transition, site: Site) -> Step:
        scope = self._scopes[item.scope]
        step = Step(item.node, item.name, type(item.action), site, scope)
        scope.missing.append(0)
        scope.left[step.at] += 1
        if isinstance(item.action, Loop | Collect | Reduce):
            step.body = self._scopes[item.action.body]
        gathers = isinstance(item.action, Collect | Reduce)
        if gathers and step.body is not None:
            position = step.body.position[site.name]
            step.body.left[position] += 1
            step.body.gatherers[position].append(step)
        for index, place in enumerate(item.inputs):
            self._targets[place.id] = (GATHERED, step, False) if gathers and not index else self._place(step, place)
        scope.missing[step.position] += step.own
        return step

    def _place(self, step: Step, place: Place) -> Target:
        judges = step.action is Choose or step.action is Store
        marks = place.role is Role.GUARD if judges else place.role is not Role.TRIGGER
        if place.scope == step.scope.id:
            step.own += 1
            return (OWN, step, marks)
        scope = self._scopes[place.scope]
        reader = Reader(step, scope, marks)
        step.scope.readers.append(reader)
        step.scope.missing[step.position] += 1
        scope.left[reader.at] += 1
        return (OUTER, reader, marks)

    def _fill(self, step: Step, item: Transition, net: NetIR) -> None:
        for route in item.routes:
            arrival = self._nets[route.site].arrivals[route.id]
            targets = [self._targets[place] for place in arrival.places]
            send = Send(self.wire(net.site, route.site), self._size(item, route), targets)
            step.sends.setdefault(route.port, []).append(send)
        step.opening = step.outputs(Port.ELEMENT, Port.INDEX, Port.ITERATION)
        step.ending = step.outputs(Port.VALUE, Port.DONE)
        step.shares = list(self._shares.get(item.id, (0.0,)))
        match item.action:
            case Call() | Reduce():
                self._fill_call(step, item, item.action)
            case Loop(window=window):
                step.window = window
            case SendYield():
                step.result = self.wire(net.site, self._home)
                measured = self._measured(item, RESULT)
                step.size = self._costs.sizes[item.id] + HEAD if measured is None else measured

    def _fill_call(self, step: Step, item: Transition, action: Call | Reduce) -> None:
        site = step.site.name
        step.seconds = self._costs.compute(self._graph.nodes[item.id], site)
        step.varied = varied(step.seconds, self._costs.spread(self._graph.nodes[item.id], site), f"{item.id} {site}")
        step.starts = isinstance(action, Reduce) and action.initial is not None
        step.workers = self._workers_for(step, action)
        loading = self._costs.measured.loading(action.operation, action.provider, site) if self._cold else 0.0
        if loading:
            key = (site, action.operation, action.provider)
            if key not in self._loaders:
                self._loaders[key] = Loader(Stage("load", site, item.name, item.node), loading)
            step.loader = self._loaders[key]

    def _workers_for(self, step: Step, action: Call | Reduce) -> Workers:
        """Give those who make a step's calls: as many as the site declares, else threads as a site has them.

        One thread makes calls that are shorter than a site's patience, one after the other. An adapter that declares
        how many calls it takes at a time has workers of its own, as if the site had room for all of them.
        """
        site = step.site
        capacity = self._config.sites[site.name].capacity
        spec = self._config.adapter(site.name, action.operation, action.provider)
        if spec.concurrency is not None and (capacity is None or spec.concurrency < capacity):
            own = (site.name, f"{action.provider} {action.operation}")
            return self._workers.setdefault(own, Workers(site, spec.concurrency))
        short = capacity is None and step.seconds < PATIENCE
        key = (site.name, "short" if short else "")
        if key not in self._workers:
            self._workers[key] = Workers(site, 1 if short else capacity or MAX_THREADS)
        return self._workers[key]

    # Sizes

    def _size(self, item: Transition, route: Route) -> float:
        measured = self._measured(item, output_text(route.port, route.select))
        if measured is not None:
            return measured
        if route.port is Port.VALUE:
            return HEAD + self._costs.sizes[item.id]
        if route.port is Port.ELEMENT:
            return HEAD + self._element_size(item)
        return HEAD

    def _measured(self, item: Transition, output: str) -> float | None:
        node = self._graph.nodes[item.id]
        return self._costs.measured.sent(self._costs.pipeline, node.node, node.name, output)

    def _element_size(self, item: Transition) -> float:
        """Give the bytes of an element: those of the sequence, shared out, where nothing else is known."""
        usual = self._costs.carried(item.id, Port.ELEMENT)
        shares = self._shares.get(item.id, (1.0,))
        each = self._costs.sizes[item.id] * len(shares) / max(sum(shares), 1.0)
        return min(usual, max(_SMALLEST_ELEMENT, each))
