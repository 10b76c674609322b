"""`dfmesh validate`: check the files, and show which site offers what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from dfmesh.cli.documents import compile_files, load_federation
from dfmesh.cli.failures import fault_data, fault_lines
from dfmesh.compiler.quantity_text import count_text
from dfmesh.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from dfmesh.errors import Fault
    from dfmesh.session import Federation

_MOST_COLUMNS = 8


def validate_files(file: Path, pipeline: str | None, *, adapters: bool, as_json: bool) -> None:
    """Check a federation file, and a pipeline against it, and say what is there.

    Args:
        file: The federation file.
        pipeline: The pipeline, as `load_pipeline` takes it; None for none.
        adapters: Whether to load the adapters of all sites as well.
        as_json: Whether to print JSON.

    Raises:
        ConfigError: the federation file has mistakes, or adapters cannot be loaded.
        PipelineError: the pipeline has mistakes.
    """
    if pipeline is None:
        federation, compiled = load_federation(file), None
    else:
        federation, compiled = compile_files(file, pipeline)
    warnings = () if compiled is None else compiled.warnings
    if adapters:
        _check_loading(federation, file)
    if as_json:
        print(json.dumps({**_summary(federation, warnings), "adapters_loaded": adapters}))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    counts = f"{count_text(len(federation.sites), 'site')}, {count_text(len(federation.operations), 'operation')}"
    loaded = "all adapters can be loaded" if adapters else "adapters were not imported (--adapters does that)"
    console.print(f"{file} is fine: federation {federation.name!r}, {counts}; {loaded}", soft_wrap=True)
    console.print(offers_table(federation))
    if compiled is not None:
        parameters = f", parameters {', '.join(compiled.parameters)}" if compiled.parameters else ""
        statements = count_text(len(compiled.order), "statement")
        console.print(f"{pipeline} is fine: {statements}{parameters}", soft_wrap=True)
    for warning in warnings:
        console.print("\n".join(["warning:", *fault_lines(warning)]), soft_wrap=True)


def _check_loading(federation: Federation, file: Path) -> None:
    from dfmesh.cli.loading import loading_faults

    faults = loading_faults(federation.config, file)
    if faults:
        raise ConfigError(f"{file}: {count_text(len(faults), 'adapter')} cannot be loaded", faults)


def _summary(federation: Federation, warnings: tuple[Fault, ...]) -> dict[str, object]:
    offers = {operation: federation.config.offers(operation) for operation in federation.operations}
    return {
        "ok": True,
        "name": federation.name,
        "sites": federation.sites,
        "operations": offers,
        "warnings": [fault_data(warning) for warning in warnings],
    }


def offers_table(federation: Federation) -> Table:
    """Make the table of sites and operations: a column per site, or the sites in one column where they are many."""
    from rich.table import Table

    table = Table()
    table.add_column("operation", overflow="fold")
    few = len(federation.sites) <= _MOST_COLUMNS
    for site in federation.sites if few else ["sites"]:
        table.add_column(site, justify="center" if few else "left")
    for operation in federation.operations:
        cells = [_offer(federation, site, operation) for site in federation.sites]
        if not few:
            named = zip(federation.sites, cells, strict=True)
            cells = [", ".join(site if cell == "✓" else f"{site} ({cell})" for site, cell in named if cell)]
        table.add_row(operation, *cells)
    return table


def _offer(federation: Federation, site: str, operation: str) -> str:
    """Say how a site offers an operation: itself, by providers (named), or not at all."""
    config = federation.config.sites[site]
    providers = [name for name, provider in config.providers.items() if operation in provider.interface]
    return ", ".join((["✓"] if operation in config.interface else []) + providers)
