"""Show that memory stays bounded: `python benchmarks/bounded.py [CASE ...]`. All of them take about half an hour."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import plotting
from bounded_cases.cases import CASES, Sizes
from contestants import BENCHMARKS, environment

SMALL = Sizes(items=20_000, slow_seconds=8.0, sets=20_000, waiting=(0, 20, 100), calls=60, interval=0.1)


def arguments() -> argparse.Namespace:
    usual = Sizes()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"all, or of {', '.join(CASES)}")
    parser.add_argument("--small", action="store_true", help="sizes for a trial of a minute; they show little")
    parser.add_argument("--items", type=int, help=f"items of a producer, {usual.items:,}")
    parser.add_argument("--item-bytes", type=int, help=f"bytes of an item, {usual.item_bytes:,}")
    parser.add_argument(
        "--slow-seconds", type=float, help=f"how long slow consumers are watched, {usual.slow_seconds:g}"
    )
    parser.add_argument("--per-second", type=float, help=f"items that they take in a second, {usual.per_second:g}")
    parser.add_argument("--sets", type=int, help=f"parameter sets of a job, {usual.sets:,}")
    parser.add_argument("--waiting", type=int, nargs="+", help=f"numbers of waiting jobs, {usual.waiting}")
    parser.add_argument("--trace", action="store_true", help="say where memory that grows was allocated (slow)")
    parser.add_argument("--results", type=Path, default=BENCHMARKS / "results", help="where samples and plots go")
    options = parser.parse_args()
    if unknown := [name for name in options.cases if name not in (*CASES, "all")]:
        parser.error(f"no case is called {', '.join(unknown)}; there are {', '.join(CASES)}")
    return options


def sizes_of(options: argparse.Namespace) -> Sizes:
    base = SMALL if options.small else Sizes()
    given = {name: getattr(options, name) for name in ("items", "item_bytes", "slow_seconds", "per_second", "sets")}
    given["waiting"] = tuple(options.waiting) if options.waiting else None
    return Sizes(
        **{**vars(base), **{name: value for name, value in given.items() if value is not None}, "traced": options.trace}
    )


def main() -> int:
    options = arguments()
    names = list(CASES) if not options.cases or "all" in options.cases else options.cases
    if len(names) > 1:  # each in a process of its own, or one would see what another left in the client
        return max(subprocess.run([sys.executable, __file__, name, *flags()]).returncode for name in names)
    prepare_environment(options.trace)
    verdicts, watch = CASES[names[0]](sizes_of(options))
    print(verdicts.text(), flush=True)
    options.results.mkdir(parents=True, exist_ok=True)
    samples = options.results / f"bounded-{names[0]}.csv"
    watch.write(samples)
    plotting.plot("memory", samples, samples.with_suffix(""))
    return 0 if verdicts.held else 1


def flags() -> list[str]:
    """The options of this command without the names of cases."""
    return [word for word in sys.argv[1:] if word not in (*CASES, "all")]


def prepare_environment(trace: bool) -> None:
    """Give the sites the search path for their adapters, and tracing if it was asked for."""
    if trace and "PYTHONTRACEMALLOC" not in os.environ:
        os.environ["PYTHONTRACEMALLOC"] = "1"
        os.execv(sys.executable, [sys.executable, __file__, *sys.argv[1:]])
    os.environ.update(environment(sys.executable, DFMESH_MEASURE="0"))


if __name__ == "__main__":
    sys.exit(main())
