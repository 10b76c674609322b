"""`dfmesh bench`: measure, and show what came out."""

from __future__ import annotations

import json
import sys
import time

from dfmesh.cli.bench.cases import Found, measure_all
from dfmesh.cli.bench.report import EXPLANATION, as_data, as_table, machine
from dfmesh.cli.failures import EXIT_JOB_FAILED
from dfmesh.cli.own_output import own_standard_output
from dfmesh.compiler.quantity_text import count_text


def run_bench(seconds: float, repeats: int, *, as_json: bool) -> None:
    """Measure dfmesh beside its floor and print the figures.

    Args:
        seconds: How long each measurement goes on in each repeat.
        repeats: Repeats.
        as_json: Whether to print JSON.

    Raises:
        SessionError: the sites cannot be started.
        SystemExit: a measurement failed; the figures of the others have been printed.
    """
    from rich.console import Console

    begin = time.perf_counter()
    described = machine()
    with own_standard_output() as out:
        found = _measure(seconds, repeats)
        took = time.perf_counter() - begin
        if as_json:
            print(json.dumps(as_data(found, described, took)), file=out)
        else:
            console = Console(file=out, highlight=False, markup=False)
            console.print(as_table(found))
            where = ", ".join(f"{key} {value}" for key, value in described.items())
            console.print(f"{count_text(repeats, 'repeat')} in {took:.0f} s. {EXPLANATION} {where}.", soft_wrap=True)
    for (system, case), reason in found.failures.items():
        print(f"{case}, {system}: {reason}", file=sys.stderr)
    if found.failures:
        raise SystemExit(EXIT_JOB_FAILED)


def _measure(seconds: float, repeats: int) -> Found:
    """Measure, and show on a terminal what is being measured."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False, markup=False)
    if not console.is_terminal:
        return measure_all(seconds, repeats, lambda _: None)
    with console.status("measuring") as status:
        return measure_all(seconds, repeats, lambda text: status.update(f"measuring: {text}"))
