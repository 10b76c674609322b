"""Placement by nv-dfm-core: `python placing.py < problems.json`, in its own environment.

Reads a list of problems (see `benchmarks/placement.py`), prints a list of `{"sites": [...], "seconds": ...}`, or of
`{"error": ...}` where it gives no plan. Only its public `IRGen.prepare` is called and timed.
"""

# mypy: disable-error-code="import-not-found"
# (nv-dfm-core is only in the environment that runs this module)

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from nv_dfm_core.api import BestOf, NodeParam, Operation, Pipeline, Yield
from nv_dfm_core.gen.irgen._fed_info import ComputeCostInfo, FedInfo, OperationInfo, SendCostInfo, SiteInfo
from nv_dfm_core.gen.irgen._irgen import IRGen


def operation_class(number: int, inputs: int) -> Any:
    fields = {f"in{index}": NodeParam for index in range(inputs)}
    namespace = {
        "__annotations__": {"dfm_class_name": str, **fields},
        "__module__": __name__,
        "dfm_class_name": f"placing.N{number}",
        "__api_name__": f"op.N{number}",
    }
    return type(f"N{number}", (Operation,), namespace)


def fed_info(problem: dict[str, Any]) -> FedInfo:
    sites = {}
    for site in problem["sites"]:
        interface = {}
        for number, node in enumerate(problem["nodes"]):
            if site in node["seconds"]:
                cost = ComputeCostInfo(fixed_time=node["seconds"][site], fixed_size=int(node["size"]))
                interface[f"op.N{number}"] = OperationInfo(operation=f"op.N{number}", compute_cost=cost)
        sends = {
            other: SendCostInfo(fixed_time=latency, bandwidth=round(1 / per_byte) if per_byte else None)
            for other, (latency, per_byte) in problem["links"][site].items()
        }
        sites[site] = SiteInfo(interface=interface, providers={}, send_cost=sends)
    return FedInfo(sites=sites)


def pipeline_of(problem: dict[str, Any]) -> Pipeline:
    made: list[Any] = []
    with Pipeline() as pipeline:
        for number, node in enumerate(problem["nodes"]):
            make = operation_class(number, len(node["sources"]))
            inputs = {f"in{index}": made[source] for index, source in enumerate(node["sources"])}
            made.append(make(site=BestOf(sites=list(node["seconds"])), **inputs))
        for result in problem["results"]:
            Yield(value=made[result], place=f"out{result}")
    return pipeline


def solve(problem: dict[str, Any]) -> dict[str, Any]:
    pipeline, info = pipeline_of(problem), fed_info(problem)
    begin = time.perf_counter()
    prepared = IRGen().prepare(pipeline, None, "placing", info, problem["home"], logging.getLogger("quiet"))
    seconds = time.perf_counter() - begin
    texts = {site: net.model_dump_json() for site, net in prepared.net_irs().items()}
    sites = []
    for number in range(len(problem["nodes"])):
        found = [site for site, text in texts.items() if f'"op.N{number}"' in text]
        if len(found) != 1:
            return {"error": f"operation {number} is at {found}"}
        sites.append(found[0])
    return {"sites": sites, "seconds": seconds}


def main() -> None:
    logging.disable(logging.CRITICAL)
    answers = []
    for problem in json.load(sys.stdin):
        try:
            answers.append(solve(problem))
        except Exception as error:
            answers.append({"error": f"{type(error).__name__}: {error}"[:200]})
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
