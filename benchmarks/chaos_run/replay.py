"""Runs one job of a run again, alone, with the faults of its own plan."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from chaos_run.client import FEDERATION
from chaos_run.faults import PROFILES, SILENT_SECONDS, FaultLog, Injector
from chaos_run.worker import Worker, draw_job
from dfmesh import Federation


def replay(name: str, profile: str, times: int = 1) -> int:
    """Run a job; 1 if it goes wrong.

    Args:
        name: `seed/client/incarnation/number`, as it was reported.
        profile: That of its client.
        times: How often.
    """
    federation, log, wrong = Federation.load(FEDERATION), FaultLog(), 0
    os.environ["DFMESH_SILENT_SECONDS"] = str(SILENT_SECONDS)

    def report(kind: str, **fields: Any) -> None:
        nonlocal wrong
        wrong += kind == "wrong"
        for key, value in fields.items():
            print(f"  {key}: {value}" if key != "history" else "\n".join(["  history:", *map(str, value)]))

    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch
        with federation.session(output="stderr") as session:
            runner = session._connection._runner
            injector = Injector(log, lambda: dict(runner.processes))
            worker = Worker(lambda: (session, lambda: False), log, injector, report, Path(scratch))
            for _ in range(times):
                job = draw_job(name, PROFILES[profile], federation.ops, Path(scratch))
                print(job.name, job.template, *job.faults, sep="\n  ")
                worker.run(job)
    return int(wrong > 0)
