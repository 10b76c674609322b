"""From the reports of a finished job to measured costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dfmesh.compiler import CompiledPipeline
from dfmesh.compiler.graph import Node
from dfmesh.compiler.measured import RESULT, MeasuredCosts, output_text
from dfmesh.compiler.measures import LinkMeasure, Mean, OperationMeasure, SendMeasure, SiteMeasure, StatementMeasure
from dfmesh.engine.message_parts import OperationReport, SendReport, SiteReport, TallyReport
from dfmesh.netir import Call, Reduce, Route

LEAST_SATURATED = 1024 * 1024
"""Bytes from which on the speed of a connection means something."""

_FEWEST = 3
"""Calls from which on it is asked how they vary."""

Loaded = set[tuple[str, str | None, str]]
"""Operation, provider and site of the adapters that have been called since their site was started."""


def measure(compiled: CompiledPipeline, reports: Sequence[SiteReport], loaded: Loaded) -> MeasuredCosts:
    """Read from the last reports of a job what its parts have cost.

    Args:
        compiled: What ran.
        reports: One per site.
        loaded: What had been called before; what was called in this job is added.
    """
    calls = {node.node: node for node in compiled.graph.nodes if isinstance(node.action, Call | Reduce)}
    operations: dict[tuple[str, str | None, str], OperationMeasure] = {}
    statements: dict[tuple[str, str, str], StatementMeasure] = {}
    sends: dict[tuple[str, str, str, str], SendMeasure] = {}
    for report in reports:
        for entry in report.operations:
            node = calls.get(entry.node)
            if node is not None:
                record = _operation(node, entry, report.site, loaded)
                operations[record.key] = operations[record.key].joined(record) if record.key in operations else record
        for tally in report.tallies:
            statement = _statement(compiled, tally)
            statements[statement.key] = statement
        for send in _sends(compiled, report):
            sends[send.key] = sends[send.key].joined(send) if send.key in sends else send
    loaded.update(operations)
    links = [link for report in reports for link in _links(report, compiled)]
    sites = [SiteMeasure(report.site, Mean(report.lag, _calls(report))) for report in reports if report.lag > 0]
    return MeasuredCosts(operations.values(), statements.values(), sends.values(), links, sites)


def _calls(report: SiteReport) -> int:
    return sum(entry.done + entry.failed for entry in report.operations)


def _operation(node: Node, entry: OperationReport, site: str, loaded: Loaded) -> OperationMeasure:
    action = node.action
    if not isinstance(action, Call | Reduce):
        raise TypeError(f"{node.name} makes no calls")
    key = (action.operation, action.provider, site)
    seconds, first = _seconds(entry, warm=key in loaded)
    size = Mean() if entry.mean_size is None else Mean(entry.mean_size, entry.done)
    return OperationMeasure(*key, seconds, first, size, variance=_variance(entry, warm=key in loaded))


def _variance(entry: OperationReport, *, warm: bool) -> Mean:
    """Tell how the times of those calls vary of which `_seconds` tells the mean; not known of the items of streams."""
    calls, seconds, squares = entry.done + entry.failed, entry.seconds, entry.squares
    if not warm:
        calls, seconds, squares = calls - entry.cold, seconds - entry.cold_seconds, squares - entry.cold_squares
    if calls < _FEWEST or entry.items:
        return Mean()
    return Mean(max(0.0, (squares - seconds * seconds / calls) / (calls - 1)), calls)


def _seconds(entry: OperationReport, *, warm: bool) -> tuple[Mean, Mean]:
    """Tell the time of a call from that of the first one.

    A site that was just started loads an adapter's libraries in the first call, and the calls that began meanwhile
    wait for them, too.
    """
    calls = entry.done + entry.failed
    if warm or entry.items:
        return Mean(entry.seconds / calls if calls else 0.0, calls), Mean()
    later = calls - entry.cold
    each = (entry.seconds - entry.cold_seconds) / later if later else 0.0
    if not later and entry.loading:  # Of the first call that is known apart.
        each, later = entry.first_seconds, min(calls, 1)
    return Mean(each, later), Mean(entry.first_seconds + entry.loading, min(calls, 1))


def _statement(compiled: CompiledPipeline, tally: TallyReport) -> StatementMeasure:
    node = compiled.graph.nodes[tally.transition]
    counted = Mean(tally.counted / tally.fired, tally.fired)
    return StatementMeasure(compiled.costs.pipeline, node.node, node.name, counted)


def _sends(compiled: CompiledPipeline, report: SiteReport) -> Iterable[SendMeasure]:
    routes = {route.id: route for transition in compiled.nets[report.site].transitions for route in transition.routes}
    for send in report.sends:
        if send.size:  # What stays in a process has none, and says nothing about what leaves it.
            yield _send(compiled, send, None if send.route is None else routes[send.route])


def _links(report: SiteReport, compiled: CompiledPipeline) -> Iterable[LinkMeasure]:
    for speed in report.speeds:
        if speed.peer in compiled.nets and speed.size >= LEAST_SATURATED and speed.seconds > 0:
            yield LinkMeasure(report.site, speed.peer, bandwidth=Mean(speed.size / speed.seconds, 1))


def _send(compiled: CompiledPipeline, send: SendReport, route: Route | None) -> SendMeasure:
    node = compiled.graph.nodes[send.transition]
    output = RESULT if route is None else output_text(route.port, route.select)
    size = Mean(send.size / send.count, send.count)
    return SendMeasure(compiled.costs.pipeline, node.node, node.name, output, size)
