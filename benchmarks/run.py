"""Measure dfmesh beside its floor and its peers, in one run: `python benchmarks/run.py --peers all`."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import contestants
import measure
import plotting
import table
from measured_child import adopt_orphans

from dfmesh.cli.bench.report import machine

RESULTS = contestants.BENCHMARKS / "results"
WHOLE_MINUTES = 180.0
QUICK_MINUTES = 2.5


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a first look, in less than 3 minutes")
    parser.add_argument("--repeats", type=int, default=3, help="at most so many")
    parser.add_argument("--minutes", type=float, help="begin no repeat that would end later; 180, with --quick 2.5")
    parser.add_argument("--peers", default="", metavar="NAMES", help=f"all, or of {','.join(contestants.PEERS)}")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these contestants (for trials)")
    parser.add_argument("--cases", nargs="+", metavar="NAME", help="only these cases (for trials)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where table, samples and plot are written")
    parser.add_argument("--name", default="table", help="name of their files, without ending")
    options = parser.parse_args()
    try:
        options.peers = contestants.chosen(options.peers)
    except ValueError as error:
        parser.error(str(error))
    return options


def entrants(options: argparse.Namespace) -> list[contestants.Contestant]:
    """Floors and dfmesh, and the peers asked for."""
    found = [contestants.floor(), contestants.batched_floor(), contestants.dfmesh()]
    found += map(contestants.peer, options.peers)
    return [entrant for entrant in found if not options.only or entrant.name in options.only]


def footnotes(entered: list[contestants.Contestant], described: dict[str, Any], repeats: int) -> list[str]:
    where = ", ".join(f"{key} {value}" for key, value in described.items())
    head = f"{repeats} repeats, interleaved; a ratio above 1 x means that dfmesh is better. {where}."
    return [head, *(f"{entrant.name}: {entrant.note}." for entrant in entered)]


def main() -> None:
    options = arguments()
    adopt_orphans()
    minutes = options.minutes or (QUICK_MINUTES if options.quick else WHOLE_MINUTES)
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    described = {"date": date, **machine()}
    entered = entrants(options)
    todo = [
        tuple(case for case in group if not options.cases or case.name in options.cases)
        for group in measure.groups(options.quick, with_peers=bool(options.peers))
    ]
    results, repeats = measure.run_all(entered, todo, options.repeats, 60 * minutes)
    made = table.build(results, [entrant.name for entrant in entered])
    notes = footnotes(entered, described, repeats)
    print(made.text(), *notes, sep="\n")
    write(options.results, options.name, made, notes, samples(results, described, repeats))


def samples(results: measure.Results, described: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Everything that was measured, for machines."""
    rows = [
        {"label": row.label, "case": row.case, "figure": row.figure, "unit": row.unit.value}
        | {"more_is_better": row.more_is_better, "compared": row.compared}
        for row in table.ROWS
    ]
    found = [{"contestant": name, "case": case, **asdict(entry)} for (name, case), entry in results.items()]
    return {"machine": described, "repeats": repeats, "rows": rows, "samples": found}


def write(directory: Path, name: str, made: table.Table, notes: list[str], data: dict[str, Any]) -> None:
    """Write table, samples and plot."""
    directory.mkdir(parents=True, exist_ok=True)
    listed = "\n".join(f"* {note}" for note in notes)
    (directory / f"{name}.md").write_text(f"{made.markdown()}\n\n{listed}\n")
    (directory / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
    written = [f"{name}.md", f"{name}.json", *plotting.plot("ratios", directory / f"{name}.json", directory / name)]
    print(f"\nwritten to {directory}: {', '.join(written)}", file=sys.stderr)


if __name__ == "__main__":
    main()
