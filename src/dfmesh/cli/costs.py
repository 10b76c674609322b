"""`dfmesh costs`: what is declared and what was measured."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfmesh.cli.documents import load_federation
from dfmesh.cli.failures import UsageError
from dfmesh.compiler.quantity_text import bytes_text, seconds_text
from dfmesh.text_tables import aligned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dfmesh.compiler.measured import MeasuredCosts
    from dfmesh.config import ComputeCost, FederationConfig
    from dfmesh.session import Federation


@dataclass(frozen=True)
class CostRow:
    """What an operation costs at a site.

    Attributes:
        operation: Its name.
        site: The site.
        provider: Provider in the site; None for the site's own interface.
        declared_time: What the federation file says of the time, as text; empty if nothing.
        declared_size: The same of the size.
        seconds: Measured time of a call; None if it was not measured.
        loading: Measured seconds that the first call of a freshly started site took longer; None if not measured.
        size: Measured bytes of a value; None if it was not measured.
        calls: How many calls were measured.
    """

    operation: str
    site: str
    provider: str | None
    declared_time: str
    declared_size: str
    seconds: float | None
    loading: float | None
    size: float | None
    calls: int

    def cells(self) -> tuple[str, ...]:
        """Give it as text, in the order of `COLUMNS`."""
        return (
            self.operation,
            self.site if self.provider is None else f"{self.site}, {self.provider}",
            self.declared_time or "-",
            "-" if self.seconds is None else seconds_text(self.seconds),
            "-" if self.loading is None else seconds_text(self.loading),
            self.declared_size or "-",
            "-" if self.size is None else bytes_text(self.size),
            f"{self.calls:,}",
        )


COLUMNS = ("operation", "site", "declared", "measured", "loading", "declared size", "measured size", "calls")


def show_costs(file: Path, operation: str | None, *, as_json: bool) -> None:
    """Print what the operations of a federation cost.

    Args:
        file: The federation file.
        operation: The only operation to show; None for all.
        as_json: Whether to print JSON.

    Raises:
        ConfigError: the federation file has mistakes.
        UsageError: there is no such operation.
    """
    federation = _load(file, operation)
    store = federation.costs
    measured = store.costs()
    rows = [row for row in cost_rows(federation.config, measured) if operation in (None, row.operation)]
    if as_json:
        print(json.dumps({"file": str(store.path), "operations": [asdict(row) for row in rows], **_rest(measured)}))
        return
    _print_table("", COLUMNS, [row.cells() for row in rows])
    if operation is None:
        _print_statements(measured)
    print(f"\nmeasured costs are in {store.path}" if measured else f"\nnothing has been measured yet ({store.path})")


def reset_costs(file: Path, operation: str | None, *, as_json: bool) -> None:
    """Forget what was measured.

    Args:
        file: The federation file.
        operation: The operation to forget; None for everything.
        as_json: Whether to print JSON.

    Raises:
        ConfigError: the federation file has mistakes.
        UsageError: there is no such operation.
    """
    store = _load(file, operation).costs
    store.reset(operation)
    if as_json:
        print(json.dumps({"file": str(store.path), "reset": operation or "all"}))
    else:
        print(f"forgot the measured costs of {operation or 'all operations'} ({store.path})")


def _load(file: Path, operation: str | None) -> Federation:
    from dfmesh.api import did_you_mean

    federation = load_federation(file)
    if operation is not None and operation not in federation.operations:
        raise UsageError(f"there is no operation {operation!r}; {did_you_mean(operation, federation.operations)}")
    return federation


def cost_rows(config: FederationConfig, measured: MeasuredCosts) -> Iterator[CostRow]:
    """List what the operations cost at each site that offers them, in declared order."""
    for operation in config.operations:
        for site in config.sites.values():
            for provider in (None, *site.providers):
                adapters = site.adapters_of(provider) or {}
                if operation in adapters:
                    yield _row(operation, site.name, provider, adapters[operation].compute_cost, measured)


def _row(operation: str, site: str, provider: str | None, cost: ComputeCost | None, measured: MeasuredCosts) -> CostRow:
    record = measured.operations.get((operation, provider, site))
    return CostRow(
        operation,
        site,
        provider,
        _declared_time(cost),
        _declared_size(cost),
        record.usual.value if record is not None and record.usual.count else None,
        record.loading if record is not None and record.first.count and record.seconds.count else None,
        record.size.value if record is not None and record.size.count else None,
        0 if record is None else record.seconds.count + record.first.count,
    )


def _declared_time(cost: ComputeCost | None) -> str:
    if cost is None:
        return ""
    rate = f"{bytes_text(cost.compute_throughput)}/s" if cost.compute_throughput else ""
    return " + ".join(part for part in (seconds_text(cost.fixed_time) if cost.fixed_time else "", rate) if part)


def _declared_size(cost: ComputeCost | None) -> str:
    if cost is None:
        return ""
    factor = f"{cost.output_factor:g} x input" if cost.output_factor else ""
    return " + ".join(part for part in (bytes_text(cost.fixed_size) if cost.fixed_size else "", factor) if part)


def _rest(measured: MeasuredCosts) -> dict[str, Any]:
    return {
        "statements": [
            {"pipeline": item.pipeline, "statement": item.node, "construct": item.name}
            | {"measured": item.counted.value, "count": item.counted.count}
            for item in measured.statements.values()
        ],
        "links": [
            {"source": item.source, "destination": item.destination}
            | {"latency": item.latency.value if item.latency.count else None}
            | {"bandwidth": item.bandwidth.value if item.bandwidth.count else None}
            for item in measured.links.values()
        ],
        "sites": [{"site": item.site, "lag": item.lag.value} for item in measured.sites.values()],
    }


def _print_statements(measured: MeasuredCosts) -> None:
    statements = [
        (item.pipeline, item.node, item.name, f"{item.counted.value:.3g}", f"{item.counted.count:,}")
        for item in measured.statements.values()
    ]
    if statements:
        _print_table("\n", ("pipeline", "statement", "construct", "iterations or share", "count"), statements)
    links = [
        (
            f"{item.source} -> {item.destination}",
            seconds_text(item.latency.value) if item.latency.count else "-",
            f"{bytes_text(item.bandwidth.value)}/s" if item.bandwidth.count else "-",
        )
        for item in measured.links.values()
    ]
    if links:
        _print_table("\n", ("link", "latency", "bandwidth"), links)
    sites = [(item.site, seconds_text(item.lag.value)) for item in measured.sites.values()]
    if sites:
        _print_table("\n", ("site", "lag"), sites)


def _print_table(before: str, titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    print(before + "\n".join(aligned([titles, *rows])))
