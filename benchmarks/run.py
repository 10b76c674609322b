"""Measure dfmesh beside its floor and its peers, in one run: `python benchmarks/run.py --peers nv-dfm-core`."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import contestants
import measure
import table
from nv_dfm_core_cases import setup as nv_dfm_core

PEERS = {nv_dfm_core.NAME: nv_dfm_core.contestant}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter measurements and 3 repeats")
    parser.add_argument("--repeats", type=int, help="default 5, with --quick 3")
    parser.add_argument("--peers", nargs="+", choices=sorted(PEERS), default=[], help="others to measure beside it")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these contestants (for trials)")
    parser.add_argument("--cases", nargs="+", metavar="NAME", help="only these cases (for trials)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample, with the machine's description")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table for a document")
    return parser.parse_args()


def entrants(options: argparse.Namespace) -> list[contestants.Contestant]:
    """Floor and dfmesh, and the peers asked for; a peer that cannot be set up is left out, with the reason said."""
    found = [contestants.floor(), contestants.dfmesh()]
    for name in options.peers:
        try:
            found.append(PEERS[name]())
        except nv_dfm_core.SetupError as error:
            print(f"{name} is not measured: {error}", file=sys.stderr)
    return [entrant for entrant in found if not options.only or entrant.name in options.only]


def machine() -> dict[str, Any]:
    """What the figures depend on besides the code."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "processor": processor(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "load before": round(os.getloadavg()[0], 2),
    }


def processor() -> str:
    cpu_info = Path("/proc/cpuinfo")
    lines = cpu_info.read_text().splitlines() if cpu_info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def footnotes(entered: list[contestants.Contestant], described: dict[str, Any], repeats: int) -> str:
    where = ", ".join(f"{key} {value}" for key, value in described.items())
    return "\n".join(
        [
            f"{repeats} repeats, interleaved; a ratio above 1 x means that dfmesh is faster. {where}.",
            *(f"{entrant.name}: {entrant.note}." for entrant in entered),
        ]
    )


def main() -> None:
    options = arguments()
    repeats = options.repeats or (3 if options.quick else 5)
    described = machine()
    entered = entrants(options)
    todo = measure.cases(options.quick, with_peers=bool(options.peers))
    todo = [case for case in todo if not options.cases or case.name in options.cases]
    results = measure.run_all(entered, todo, repeats)
    made = table.build(results, [entrant.name for entrant in entered])
    notes = footnotes(entered, described, repeats)
    print(made.text(), notes, sep="\n\n")
    if options.markdown:
        options.markdown.write_text(f"{made.markdown()}\n\n" + "\n".join(f"* {n}" for n in notes.splitlines()) + "\n")
    if options.json:
        samples = [{"contestant": name, "case": case, **asdict(found)} for (name, case), found in results.items()]
        options.json.write_text(json.dumps({"machine": described, "repeats": repeats, "samples": samples}, indent=1))


if __name__ == "__main__":
    main()
