"""Compares the predicted with the measured weather day: time and bytes, with fresh sites and with warm ones.

    python benchmarks/predicted_weather.py [RUNS]

Each run is set beside two predictions: one from the runs before it, which is what a user gets, and one from its own
measured costs. The first is also off by how much the machine was busier or idler than before; the second is off only
by what the model leaves out.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "weather_day"
sys.path[:0] = [str(EXAMPLE), str(EXAMPLE.parents[1] / "src")]

DAY = {"day": "1995-03-18"}
HOME = "app"


class Comparison:
    """Runs of the weather day beside their predictions."""

    def __init__(self) -> None:
        from pipeline import build

        from dfmesh import Federation

        self.federation = Federation.load(EXAMPLE / "weather.dfm.yaml")
        self.pipeline = build(self.federation)

    def predict(self, measured: Any, *, cold: bool) -> Any:
        from dfmesh.compiler import compile_pipeline
        from dfmesh.session.prediction import predict

        compiled = compile_pipeline(self.pipeline, self.federation.config, HOME, measured=measured)
        return predict(compiled, self.federation.config, DAY, cold=cold, iterations={"%1": 24})

    def run(self, session: Any) -> tuple[Any, float, float]:
        """Run the day; gives the job, seconds, and seconds until the first map."""
        began = time.perf_counter()
        job = session.submit(self.pipeline, DAY)
        first = 0.0
        for item in job:
            if item.place == "frame" and not first:
                first = time.perf_counter() - began
        job.result()
        return job, time.perf_counter() - began, first

    def compare(self, session: Any, *, cold: bool) -> None:
        from dfmesh.session.measuring import measure

        before = self.predict(self.federation.costs.costs(), cold=cold)
        job, seconds, first = self.run(session)
        sites = job.progress().sites
        own = self.predict(measure(job.compiled, sites, set() if cold else _all_loaded(job)), cold=cold)
        print(f"{'fresh' if cold else 'warm'} sites: {seconds:.2f} s, first map after {first:.2f} s")
        for name, prediction in (("from the runs before", before), ("from its own costs", own)):
            size, moved = job.progress().bytes_between_sites, prediction.bytes_between_sites
            print(
                f"  {name:<21} {prediction.seconds:6.2f} s {prediction.seconds / seconds - 1:+7.1%}"
                f"   {moved:9,.0f} of {size:9,} bytes {moved / size - 1:+6.1%}"
            )


def _all_loaded(job: Any) -> set[Any]:
    from dfmesh.netir import Call

    nodes = [node for node in job.compiled.graph.nodes if isinstance(node.action, Call)]
    return {(node.action.operation, node.action.provider, site) for node in nodes for site in job.compiled.nets}


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        comparison = Comparison()
        print(f"from declared costs alone: {comparison.predict(None, cold=False).summary()}")
        for number in range(runs + 1):
            print(f"session {number}, load {os.getloadavg()[0]:.1f}")
            with comparison.federation.session("local", homesite=HOME, measure=True) as session:
                comparison.compare(session, cold=True)
                comparison.compare(session, cold=False)
        print(comparison.predict(comparison.federation.costs.costs(), cold=False).bottleneck_line())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
