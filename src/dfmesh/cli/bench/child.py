"""The process that measures one system: `python -m dfmesh.cli.bench.child SYSTEM ORDERS`.

ORDERS is JSON: a list of `{"case": ..., "measure": ..., "parameters": {...}}`. One JSON line is printed for each of
them, with the same `case` and either `figures`, or `refused` or `failed` with the reason. Anything else that a system
prints is not a line of ours. Only the standard library and the system itself are imported here.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

LINE_START = '{"case": '
COLD = "cold"
IMPORTING = "importing"
STARTED_VARIABLE = "DFMESH_BENCH_STARTED"
"""Environment variable with the time, on the clock that all processes share, at which this one was started."""


def starting_now(environment: Mapping[str, str]) -> dict[str, str]:
    """Give the environment of a child that is started now: a cold start is counted from here."""
    return {**environment, STARTED_VARIABLE: repr(time.monotonic())}


def seconds_since_start() -> float:
    """Give the seconds since this process was started by who set the variable."""
    return time.monotonic() - float(os.environ[STARTED_VARIABLE])


def measure_orders(
    make: Callable[[], Any], orders: list[dict[str, Any]], more: Mapping[str, Callable[..., dict[str, float]]]
) -> None:
    """Measure a system as ordered, and print what was found.

    Args:
        make: Gives the system, not started; nothing heavy should have been imported for it before.
        orders: As the module says.
        more: Measures of the caller's own, by name.
    """
    from dfmesh.cli.bench import measures

    known = {**dict(measures.measures()), **more}
    system = make()
    at_begin = [order for order in orders if order["measure"] == COLD]
    with_nothing_running = [order for order in orders if order["measure"] == IMPORTING]
    if len(with_nothing_running) < len(orders):
        with system:
            for order in at_begin:
                report(order, measures.cold, system, since_start=seconds_since_start)
            for order in orders:
                if order["measure"] in known:
                    report(order, known[order["measure"]], system)
    for order in with_nothing_running:
        report(order, measures.importing, system)


def report(order: dict[str, Any], measure: Callable[..., dict[str, float]], system: Any, **more: Any) -> None:
    """Carry out one order and print its line."""
    from dfmesh.cli.bench.system import CannotStateError

    line: dict[str, Any] = {"case": order["case"]}
    try:
        line["figures"] = measure(system, **order["parameters"], **more)
    except CannotStateError as error:
        line["refused"] = str(error)
    except Exception as error:  # Whatever a system does wrong is a line of the table.
        line["failed"] = f"{type(error).__name__}: {last_line(str(error))}"
    print(f"\n{json.dumps(line)}", flush=True)


def last_line(text: str) -> str:
    """Give the last line of a message, which is where a remote traceback says what happened."""
    written = [line.strip() for line in text.splitlines() if line.strip()]
    return written[-1] if written else "no message"


def lines(output: str) -> list[dict[str, Any]]:
    """Find our lines in what a child printed."""
    return [json.loads(line) for line in output.splitlines() if line.startswith(LINE_START)]


def main(
    systems: Mapping[str, Callable[[], Any]] | None = None,
    more: Mapping[str, Callable[..., dict[str, float]]] | None = None,
) -> None:
    """Measure the system that the command line names.

    Args:
        systems: What makes each system, by name; None for floor and dfmesh.
        more: Measures besides those of `measures`, by name.
    """
    name, orders = sys.argv[1:]
    measure_orders((systems or OWN_SYSTEMS)[name], json.loads(orders), more or {})


def _floor() -> Any:
    from dfmesh.cli.bench.floor import Floor

    return Floor()


def _batched_floor() -> Any:
    from dfmesh.cli.bench.floor import Floor
    from dfmesh.cli.bench.floor_messages import BATCHED

    return Floor(BATCHED)


def _mesh() -> Any:
    from dfmesh.cli.bench.mesh import Mesh

    return Mesh()


OWN_SYSTEMS: dict[str, Callable[[], Any]] = {"floor": _floor, "floor-batched": _batched_floor, "dfmesh": _mesh}

if __name__ == "__main__":
    main()
