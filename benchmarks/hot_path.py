"""Where the processor time of the hot path goes: `python benchmarks/hot_path.py` (a minute or two).

Runs cases of `dfmesh bench` and writes `results/hot_path.md`: processor time per job, item or array of each process, as
the system counts it; of that, the time of Python code by part of dfmesh and by function, from samples that py-spy takes
of threads that hold the interpreter's lock. A sample counts for the innermost Python function, so C code that keeps the
lock (msgspec, uvloop's own) counts for who called it. The rest is what releases the lock: system calls, copies, falling
asleep.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import contestants
from environments import SetupError, environment_of

from dfmesh.cli.bench.mesh import Mesh
from dfmesh.cli.bench.report import machine
from dfmesh.cli.bench.resources import cpu_seconds, wake_ups

REQUIREMENTS = ("py-spy==0.4.3",)
SAMPLES_PER_SECOND = 400
FUNCTIONS_SHOWN = 12
PARTS_SHOWN = 6
MEGABYTE = 2**20
ITEMS = 10_000
ARRAYS = 64
CALLS = 200
_FRAME = re.compile(r"(?P<function>.*) \((?P<file>.*?)(:\d+)?\)$")


@dataclass(frozen=True)
class Case:
    """What is profiled.

    Attributes:
        title: Heading of its table.
        unit: What a turn makes `count` of.
        count: How many.
        turn: Runs it once.
    """

    title: str
    unit: str
    count: int
    turn: Callable[[Mesh], object]


CASES = {
    "warm": Case("A warm job", "job", CALLS, lambda mesh: [mesh.call(number) for number in range(CALLS)]),
    "items": Case(f"A loop over {ITEMS:,} items, a to b", "item", ITEMS, lambda mesh: mesh.items(ITEMS)),
    "arrays": Case("Arrays of 1 MB, a to b", "array", ARRAYS, lambda mesh: mesh.arrays(MEGABYTE, ARRAYS)),
}


@dataclass(frozen=True)
class Profile:
    """What one process did.

    Attributes:
        microseconds: Processor time for one unit.
        sleeps: How often a thread of it went to sleep, for one unit.
        functions: Microseconds for one unit with the interpreter's lock, by innermost function and file.
    """

    microseconds: float
    sleeps: float
    functions: Mapping[tuple[str, str], float]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--seconds", type=int, default=8, help="how long samples of a case are taken")
    parser.add_argument("--results", type=Path, default=contestants.BENCHMARKS / "results")
    return parser.parse_args()


def measure(case: Case, mesh: Mesh, seconds: int, profiler: str) -> dict[str, Profile]:
    """Profile the processes that a case keeps busy: first their time without the profiler, then the samples."""
    processes = {"client": os.getpid(), **mesh.site_processes()}
    case.turn(mesh)
    before = {name: (cpu_seconds([pid]), wake_ups([pid])) for name, pid in processes.items()}
    turns = _turns(case, mesh, seconds / 2)
    units = turns * case.count
    spent = {name: (cpu_seconds([pid]) - before[name][0]) / units for name, pid in processes.items()}
    slept = {name: (wake_ups([pid]) - before[name][1]) / units for name, pid in processes.items()}
    with tempfile.TemporaryDirectory() as directory:
        files = {name: Path(directory, name) for name in processes}
        profilers = [_profile(profiler, processes[name], files[name], seconds) for name in processes]
        profiled, began = 0, time.perf_counter()
        while any(child.poll() is None for child in profilers):
            case.turn(mesh)
            profiled += 1
        profiled_units = profiled * case.count * seconds / (time.perf_counter() - began)
        return {
            name: Profile(spent[name] * 1e6, slept[name], _microseconds(file, profiled_units))
            for name, file in files.items()
            if file.exists()
        }


def _microseconds(file: Path, units: float) -> dict[tuple[str, str], float]:
    samples = functions(file.read_text().splitlines())
    return {who: count / SAMPLES_PER_SECOND / units * 1e6 for who, count in samples.most_common()}


def _turns(case: Case, mesh: Mesh, seconds: float) -> int:
    end, turns = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        case.turn(mesh)
        turns += 1
    return turns


def _profile(profiler: str, pid: int, file: Path, seconds: int) -> subprocess.Popen[bytes]:
    how = ("--gil", "--rate", str(SAMPLES_PER_SECOND), "--duration", str(seconds), "--format", "raw")
    command = (profiler, "record", *how, "--output", str(file), "--pid", str(pid))
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def functions(stacks: Iterable[str]) -> Counter[tuple[str, str]]:
    """Count samples by innermost function and file.

    Args:
        stacks: Lines of py-spy's raw format: frames, the innermost last, divided by semicolons, then a count.
    """
    found: Counter[tuple[str, str]] = Counter()
    for line in stacks:
        frames, _, count = line.rpartition(" ")
        match = _FRAME.match(frames.rpartition(";")[2])
        if match is not None and count.isdigit():
            found[match["function"], match["file"]] += int(count)
    return found


def part(file: str) -> str:
    """The part of dfmesh, or what else, that a source file belongs to."""
    if "dfmesh/cli/bench/" in file:
        return "adapters and measuring"
    if "dfmesh/" in file:
        name = file.rpartition("dfmesh/")[2]
        folders = name.split("/")[:-1]
        return "/".join(folders[:2]) if folders[:1] == ["targets"] else "".join(folders[:1]) or name
    for library in ("asyncio", "selectors", "threading", "msgspec", "numpy"):
        if library in file:
            return "event loop" if library in ("asyncio", "selectors") else library
    return "other"


def table(case: Case, profiles: Mapping[str, Profile]) -> list[str]:
    """The lines of a case."""
    busy = {name: profile for name, profile in profiles.items() if profile.microseconds >= 0.1}
    total = sum(profile.microseconds for profile in busy.values())
    lines = [f"## {case.title}", "", f"{total:.4g} us of all processes per {case.unit}.", ""]
    lines += ["| process | us | in Python | sleeps | Python by part |", "| --- | --- | --- | --- | --- |"]
    for name, profile in busy.items():
        parts: dict[str, float] = {}
        for (_, file), spent in profile.functions.items():
            parts[part(file)] = parts.get(part(file), 0.0) + spent
        largest = sorted(parts, key=lambda what: -parts[what])[:PARTS_SHOWN]
        inside = sum(profile.functions.values())
        named = ", ".join(f"{what} {parts[what]:.3g}" for what in largest)
        lines.append(f"| {name} | {profile.microseconds:.4g} | {inside:.4g} | {profile.sleeps:.2g} | {named} |")
    lines += ["", "| process | function | file | us |", "| --- | --- | --- | --- |"]
    for name, profile in busy.items():
        for (function, file), spent in list(profile.functions.items())[:FUNCTIONS_SHOWN]:
            lines.append(f"| {name} | `{function}` | {file.rpartition('site-packages/')[2]} | {spent:.3g} |")
    return [*lines, ""]


def main() -> int:
    options = arguments()
    try:
        profiler = str(environment_of("profile", REQUIREMENTS).with_name("py-spy"))
    except SetupError as error:
        print(f"no profile: {error}", file=sys.stderr)
        return 1
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    lines = [
        "# Where the time of the hot path goes",
        "",
        f"`benchmarks/hot_path.py`, {now}, {', '.join(f'{name} {value}' for name, value in machine().items())}.",
        "us: processor time without the profiler. In Python: of that, with the interpreter's lock, while profiled (a",
        "little more, also while a thread that has the lock waits for a core). The rest: system calls, copies, sleep.",
        "",
    ]
    with Mesh() as mesh:
        for name in options.cases:
            lines += table(CASES[name], measure(CASES[name], mesh, options.seconds, profiler))
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "hot_path.md").write_text("\n".join(lines))
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
