"""Chaos on target `local`: hundreds of jobs in federations whose sites and clients are killed, stopped and slowed.

    python benchmarks/chaos.py --minutes 30 --seed 1

Each job's end is checked against what plain Python says, given the faults that hit it; see docs/chaos.md. The exit
code is 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from chaos_run.driver import ROLES, Driver
from chaos_run.replay import replay
from chaos_run.tally import Tally


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.0, help="how long at most (default: 2)")
    parser.add_argument("--jobs", type=int, help="end earlier, after so many jobs")
    parser.add_argument("--seed", type=int, default=1, help="of all choices (default: 1)")
    parser.add_argument("--clients", nargs="+", choices=list(ROLES), default=list(ROLES), help="default: all")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--directory", type=Path, help="where the run keeps its files (default: a temporary one)")
    parser.add_argument("--keep", action="store_true", help="keep that directory also if all is right")
    parser.add_argument("--replay", metavar="JOB", help="run only this job with its own faults, e.g. 1/stormy/0/17")
    parser.add_argument("--times", type=int, default=1, help="how often to replay it")
    given = parser.parse_args(arguments)
    # A shell that starts this in the background has SIGINT ignored, and a client would not feel it while it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if given.replay:
        return replay(given.replay, ROLES[given.replay.split("/")[1]].profile, given.times)
    directory = given.directory or Path(tempfile.mkdtemp(prefix="chaos-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"seed {given.seed}, clients {', '.join(given.clients)}, files in {directory}", flush=True)
    tally = asyncio.run(_run(given, directory.resolve()))
    print(tally.table())
    if given.json:
        given.json.write_text(json.dumps(tally.as_json(), indent=1))
    if tally.wrong:
        print(f"everything that was reported is in {directory}")
        return 1
    if not given.keep and not given.directory:
        shutil.rmtree(directory, ignore_errors=True)
    return 0


async def _run(given: argparse.Namespace, directory: Path) -> Tally:
    driver = Driver(given.seed, given.minutes, directory, given.clients, given.jobs)
    await driver.run()
    return driver.tally


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
