"""`dfmesh explain`: where everything would run, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from dfmesh.cli.documents import compile_files
from dfmesh.cli.failures import fault_lines
from dfmesh.compiler.explain import explain
from dfmesh.compiler.explanation import COLUMNS, Explanation
from dfmesh.compiler.placement import ObjectiveName
from dfmesh.shown_text import shown_line


def explain_pipeline(
    file: Path,
    pipeline: str,
    homesite: str | None,
    form: Literal["table", "json", "mermaid"],
    objective: ObjectiveName = "time",
) -> None:
    """Compile a pipeline and print its explanation.

    Args:
        file: The federation file.
        pipeline: The pipeline, as `load_pipeline` takes it.
        homesite: Where the client attaches; None for the default.
        form: How to print it.
        objective: What the sites are chosen for.

    Raises:
        ConfigError: the federation file has mistakes.
        PipelineError: the pipeline has.
    """
    _, compiled = compile_files(file, pipeline, homesite, objective)
    explanation = explain(compiled)
    if form == "json":
        print(explanation.to_json())
    elif form == "mermaid":
        print(explanation.to_mermaid(), end="")
    else:
        _print_table(explanation)


def _print_table(explanation: Explanation) -> None:
    import sys

    if not sys.stdout.isatty():
        print(explanation.to_text(), end="")
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    table = Table(title=shown_line(f"{explanation.name or 'pipeline'}, homesite {explanation.homesite}"))
    for title in COLUMNS:
        table.add_column(title, justify="right" if title in ("seconds", "size") else "left", overflow="fold")
    for cells in explanation.cells():
        table.add_row(*cells)
    console.print(table)
    for line in [*explanation.link_lines(), explanation.summary()]:
        console.print(line, soft_wrap=True)
    for warning in explanation.warnings:
        console.print("\n".join(["warning:", *fault_lines(warning)]), soft_wrap=True)
