"""What has happened in a run: counts, and the table that shows them."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter, defaultdict
from typing import Any

from chaos_run.leftovers import growth


class Tally:
    """All counts of a run."""

    def __init__(self) -> None:
        self.jobs: Counter[str] = Counter()
        self.templates: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.wrong: list[dict[str, Any]] = []
        self.minutes = 0.0
        self.results = 0
        self.survived = 0
        self.adopted = 0
        self.seconds: list[float] = []
        self.cancelling: list[float] = []
        self.recoveries: list[float] = []
        self.connecting: list[float] = []
        self.hosting: list[float] = []
        self.orphans: list[float] = []
        self.held: dict[str, list[dict[str, float]]] = defaultdict(list)

    def take(self, client: str, record: dict[str, Any]) -> None:
        """Take in what a client reports."""
        self.faults.update(record.get("faults", {}))
        match record["kind"]:
            case "job":
                outcome = record["status"] + (f": {record['cause']}" if record["cause"] else "")
                self.jobs[outcome] += 1
                self.templates[record["template"]] += 1
                self.results += record["results"]
                self.survived += record["survived"]
                self.seconds.append(record["seconds"])
                self.cancelling += [] if record["cancelling"] is None else [record["cancelling"]]
            case "calm":
                self.recoveries.append(record["seconds"])
                for name, held in record["held"].items():
                    self.held[f"{client}: {name}"].append(held)
            case "adopted":
                self.adopted += 1
            case "connected":
                self.connecting.append(record["seconds"])
            case "wrong":
                self.wrong.append({"client": client, **record})

    def growth(self) -> list[tuple[str, str]]:
        """Name the processes that lived throughout the run and gathered something, and what."""
        found = []
        for name, samples in self.held.items():
            if all(earlier["age"] < later["age"] for earlier, later in itertools.pairwise(samples)):
                found += [(name, said) for said in growth(samples)]
        return found

    def as_json(self) -> dict[str, Any]:
        """Give all of it."""
        return {
            "minutes": self.minutes,
            "jobs": dict(self.jobs),
            "templates": dict(self.templates),
            "faults": dict(self.faults),
            "fault_count": self.faults.total(),
            "results": self.results,
            "survived": self.survived,
            "adopted": self.adopted,
            "job_seconds": _spread(self.seconds),
            "cancelling_seconds": _spread(self.cancelling),
            "recovery_seconds": _spread(self.recoveries),
            "connecting_seconds": _spread(self.connecting),
            "hosting_seconds": _spread(self.hosting),
            "orphan_seconds": _spread(self.orphans),
            "held": {name: [samples[0], samples[-1]] for name, samples in self.held.items()},
            "wrong": self.wrong,
        }

    def table(self) -> str:
        """Show all of it."""
        lines = ["", f"{self.faults.total():,} faults in {self.minutes:.1f} minutes"]
        lines += [f"  {count:7,}  {kind}" for kind, count in self.faults.most_common()]
        lines += ["", f"{self.jobs.total():,} jobs with {self.results:,} results, each checked"]
        lines += [f"  {count:7,}  {outcome}" for outcome, count in self.jobs.most_common()]
        lines += [f"  {self.survived:7,}  finished though a site of theirs was killed meanwhile"]
        lines += [f"  {self.adopted:7,}  went on without the client that had submitted them", ""]
        for what, values in (
            ("a job took", self.seconds),
            ("it was over after it was cancelled within", self.cancelling),
            ("all sites worked again after a storm within", self.recoveries),
            ("sites and first result after a start within", self.connecting),
            ("a host was up after a start within", self.hosting),
            ("no process was left after the kill of a client within", self.orphans),
        ):
            if values:
                spread = _spread(values)
                lines.append(f"{what}: median {spread['median']:.2f} s, most {spread['most']:.2f} s ({len(values)})")
        lines += ["", "held in calm phases, first and last: own memory, shared memory, descriptors, threads"]
        for name, samples in sorted(self.held.items()):
            first, last = (_shown(sample) for sample in (samples[0], samples[-1]))
            lines.append(f"  {name:24} {first}   {last}")
        lines += [
            "",
            f"{len(self.wrong)} wrong outcomes" if self.wrong else "every job ended as it should; nothing is left",
        ]
        return "\n".join(lines)


def _shown(held: dict[str, float]) -> str:
    sizes = f"{held['memory'] / 2**20:6.0f} MB {held['shared'] / 2**20:6.0f} MB"
    return f"{sizes} {held['descriptors']:4.0f} {held['threads']:4.0f}"


def _spread(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    return {"median": statistics.median(values), "most": max(values), "count": len(values)}
