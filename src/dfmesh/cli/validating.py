"""`dfmesh validate`: check the files, and show which site offers what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from dfmesh.cli.documents import compile_files, load_federation
from dfmesh.cli.failures import fault_data, fault_lines
from dfmesh.compiler.quantity_text import count_text
from dfmesh.errors import ConfigError
from dfmesh.session.offers import offers

if TYPE_CHECKING:
    from rich.table import Table

    from dfmesh.errors import Fault
    from dfmesh.session import Federation


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
    """Make the table of sites and operations."""
    from rich.table import Table

    titles, rows = offers(federation.config)
    table = Table()
    for title in titles:
        table.add_column(title, justify="center" if title in federation.sites else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
