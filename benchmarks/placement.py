"""Placement: how often it is optimal, how good its certificates are, how long it takes.

    .venv/bin/python benchmarks/placement.py [--quick] [--proofs | --gaps | --compiler | --wide]

Prints three tables in Markdown: small random problems against exhaustive search, with nv-dfm-core beside where its
environment is there (`benchmarks/run.py --peers nv-dfm-core` makes it); the sizes that are promised; and the passes of
the compiler for 1,000 operations over 20 sites.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "placement"))

from environments import installed_python  # noqa: E402
from nv_dfm_core_cases import setup as nv_dfm_core  # noqa: E402
from placement_problems import SHAPES, Stated, best, cost, make, sources_of  # noqa: E402

from dfmesh import BestOf, FederationConfig, Pipeline, Yield  # noqa: E402
from dfmesh.compiler import Costs, compile_pipeline, lower, route, validate  # noqa: E402
from dfmesh.compiler.graph import Edge, Node  # noqa: E402
from dfmesh.compiler.placement import Objective, Placement, place  # noqa: E402
from dfmesh.netir import SendYield, constant  # noqa: E402

PEER = installed_python(nv_dfm_core.NAME, nv_dfm_core.REQUIREMENTS, nv_dfm_core.SUPPORTED_PYTHONS)
FIRST_SEED = 100
"""Smaller ones, labelled `perf`, were used to choose the solver's budgets: they say nothing about new problems."""

FIRST_SEED_OF_GAPS = 200
"""Those from 100 on of 500 operations over 50 sites were used to choose how bytes and money are bounded."""

SMALL = ("chain", "in-tree", "out-tree", "dag", "shared")


def placed(stated: Stated, objective: Objective = Objective.TIME) -> Placement:
    return place(stated.graph, stated.costs, stated.home, stated.sites, objective)  # type: ignore[arg-type]


def with_results(stated: Stated) -> Stated:
    """Yield every value that no operation takes."""
    nodes = stated.graph.nodes
    taken = {edge.source for node in nodes for edge in node.edges}
    for source in [node.index for node in nodes if node.index not in taken]:
        index = len(nodes)
        action = SendYield(f"out{source}", constant(None))
        nodes.append(Node(index, f"%{index}", "Yield", "", 0, action, [Edge(source)], None, source))
        stated.costs.sizes.append(stated.costs.sizes[source])
    return stated


# Small problems


def as_json(stated: Stated) -> dict[str, Any]:
    operations = [node for node in stated.graph.nodes if node.candidates is not None]
    return {
        "sites": stated.sites,
        "home": stated.home,
        "links": {a: {b: stated.costs.links[a, b] for b in stated.sites if a != b} for a in stated.sites},
        "nodes": [
            {
                "sources": [edge.source for edge in node.edges if edge.source is not None],
                "seconds": {site: stated.costs.seconds[node.index, site] for site in node.candidates or ()},
                "size": stated.costs.sizes[node.index],
            }
            for node in operations
        ],
        "results": [node.beside for node in stated.graph.nodes if node.candidates is None],
    }


def ask_peer(problems: list[Stated]) -> list[dict[str, Any]] | None:
    if PEER is None:
        return None
    script = HERE / "nv_dfm_core_cases" / "placing.py"
    text = json.dumps([as_json(stated) for stated in problems])
    run = subprocess.run([str(PEER), str(script)], input=text, capture_output=True, text=True, check=True)
    return list(json.loads(run.stdout))


def peer_seconds(stated: Stated, sites: list[str]) -> float:
    chosen = list(sites)
    for node in stated.graph.nodes[len(sites) :]:
        chosen.append(chosen[node.beside or 0])
    return cost(stated, chosen, "time")[0]


def small(count: int) -> None:
    print(f"\n{count} random problems of 2 to 6 operations over 2 to 4 sites, against exhaustive search\n")
    print("| shape | objective | optimal | gap 0 | median |", "|---|---|---|---|---|", sep="\n")
    shapes: dict[str, list[Stated]] = {shape: [] for shape in SMALL}
    for seed in range(count):
        shape = SMALL[seed % len(SMALL)]
        stated = make((seed, "bench"), shape, 2 + seed % 5, 2 + seed % 3, plain=True)
        shapes[shape].append(with_results(stated))
    for shape, problems in shapes.items():
        for objective in Objective:
            small_row(shape, problems, objective)
    peer([stated for problems in shapes.values() for stated in problems])


def small_row(shape: str, problems: list[Stated], objective: Objective) -> None:
    optimal = proven = 0
    times = []
    for stated in problems:
        begin = time.perf_counter()
        placement = placed(stated, objective)
        times.append(time.perf_counter() - begin)
        optimal += cost(stated, placement.sites, objective.value) == best(stated, objective.value)
        proven += placement.exact and placement.certificate.gap == 0
    count, median = len(problems), statistics.median(times) * 1000
    print(f"| {shape} | {objective.value} | {optimal / count:.1%} | {proven / count:.1%} | {median:.1f} ms |")


def peer(problems: list[Stated]) -> None:
    answers = ask_peer(problems)
    if answers is None:
        print("\nnv-dfm-core is not installed (benchmarks/run.py --peers nv-dfm-core does it): not compared")
        return
    ratios, times, ours = [], [], []
    errors = own_right = 0
    for stated, answer in zip(problems, answers, strict=True):
        if "error" in answer:
            errors += 1
            continue
        found = best(stated, "time")
        least = found[0] if found else 0.0
        plan = peer_seconds(stated, answer["sites"])
        ratios.append(plan / least if least else (1.0 if plan <= least else float("inf")))
        begin = time.perf_counter()
        placement = placed(stated)
        ours.append(time.perf_counter() - begin)
        own_right += cost(stated, placement.sites, "time")[0] == least
        times.append(answer["seconds"])
    print("\nThe same problems, seconds alone counted:\n")
    print(
        "| | no plan | optimal plans | plan / optimum, mean | worst | median time |",
        "|---|---|---|---|---|---|",
        sep="\n",
    )
    finite = [ratio for ratio in ratios if ratio < float("inf")]
    right = sum(ratio <= 1 + 1e-4 for ratio in ratios) / len(ratios)
    theirs, mine = (statistics.median(values) * 1000 for values in (times, ours))
    mean, worst = statistics.mean(finite), max(finite)
    print(f"| nv-dfm-core (whole prepare) | {errors} | {right:.1%} | {mean:.2f} | {worst:.1f} | {theirs:.1f} ms |")
    print(f"| dfmesh (place) | 0 | {own_right / len(ratios):.1%} | | | {mine:.1f} ms |")


# Sizes


def sizes(seeds: int) -> None:
    few = max(1, seeds * 3 // 5)
    print("\nLarger random problems, objective time; the processor times are of placing alone\n")
    print(
        "| operations | sites | possible | shape | gap 0 | at most 1 % | worst | all proven | median | slowest |",
        "|---|---|---|---|---|---|---|---|---|---|",
        sep="\n",
    )
    for nodes, sites, candidates, count in (
        (60, 10, 3, seeds), (60, 10, 10, seeds), (60, 10, None, seeds),
        (500, 50, 5, few), (500, 50, 50, few), (1_000, 20, 4, few), (1_000, 20, 20, few),
    ):  # fmt: skip
        for shape in SHAPES:
            sizes_row(nodes, sites, candidates, shape, count)


def sizes_row(nodes: int, sites: int, candidates: int | None, shape: str, seeds: int) -> None:
    gaps, times, exact = [], [], 0
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        stated = make((seed, "heldout"), shape, nodes, sites, candidates=candidates)
        begin = time.process_time()
        placement = placed(stated)
        times.append((time.process_time() - begin) * 1000)
        gaps.append(placement.certificate.gap)
        exact += placement.exact
    which = "1 to all" if candidates is None else "all" if candidates == sites else candidates
    print(
        f"| {nodes} | {sites} | {which} | {shape} | {sum(gap == 0 for gap in gaps)} of {seeds} |"
        f" {sum(gap <= 0.01 for gap in gaps)} of {seeds} | {max(gaps):.2%} | {exact} of {seeds} |"
        f" {statistics.median(times):.0f} ms | {max(times):.0f} ms |"
    )


def gaps(seeds: int, first_seed: int, objectives: list[Objective]) -> None:
    """500 operations over 50 sites, each family under each objective: what the solver could not close."""
    print("\nGaps at 500 operations over 50 sites; processor times of placing alone\n")
    print("| possible | shape | objective | median gap | worst gap | at most 1 % | median | slowest |")
    print("|---|---|---|---|---|---|---|---|")
    for candidates in (5, 50):
        for shape in SHAPES:
            for objective in objectives:
                found, times = [], []
                for seed in range(first_seed, first_seed + seeds):
                    stated = make((seed, "heldout"), shape, 500, 50, candidates=candidates)
                    begin = time.process_time()
                    found.append(placed(stated, objective).certificate.gap)
                    times.append(time.process_time() - begin)
                which = "all" if candidates == 50 else candidates
                print(
                    f"| {which} | {shape} | {objective.value} | {statistics.median(found):.2%} | {max(found):.2%} |"
                    f" {sum(gap <= 0.01 for gap in found)} of {seeds} | {statistics.median(times):.2f} s |"
                    f" {max(times):.2f} s |",
                    flush=True,
                )


def proofs(seeds: int, first_seed: int, objectives: list[Objective]) -> None:
    """60 operations over 10 sites, each family under each objective: how many are proven."""
    print("\n60 operations over 10 sites; processor times of placing alone\n")
    print("| possible | shape | objective | gap 0 | worst gap | median | slowest |")
    print("|---|---|---|---|---|---|---|")
    for candidates in (3, 10, None):
        for objective in objectives:
            for shape in SHAPES:
                found, times = [], []
                for seed in range(first_seed, first_seed + seeds):
                    stated = make((seed, "heldout"), shape, 60, 10, candidates=candidates)
                    begin = time.process_time()
                    found.append(placed(stated, objective).certificate.gap)
                    times.append((time.process_time() - begin) * 1000)
                which = {3: "3", 10: "all", None: "1 to all"}[candidates]
                print(
                    f"| {which} | {shape} | {objective.value} | {sum(gap == 0 for gap in found)} of {seeds} |"
                    f" {max(found):.2%} | {statistics.median(times):.0f} ms | {max(times):.0f} ms |",
                    flush=True,
                )


# The whole compiler


def large_federation(folder: Path, sites: int, links: int | None = None, possible: int = 4) -> FederationConfig:
    """Make one; links: how many of each site's links are declared, None for all; possible: sites per operation."""
    draw = random.Random(7)
    names = [f"site{index}" for index in range(sites)]
    operations = {f"op.N{index}": {"parameters": {"x": {}, "y": {}}} for index in range(60)}
    document: dict[str, Any] = {"dfm": "1.0.0", "operations": operations, "sites": {}}
    for name in names:
        others = [b for b in names if b != name]
        sends = {
            b: {"fixed-time": draw.uniform(0, 0.1), "bandwidth": draw.choice([1e6, 1e7, 1e8])}
            for b in (others if links is None else draw.sample(others, links))
        }
        document["sites"][name] = {"interface": {}, "send-cost": sends}
    for operation in operations:
        for name in draw.sample(names, possible):
            timing = {"fixed-time": draw.uniform(0, 2), "fixed-size": draw.randint(1_000, 10_000_000)}
            document["sites"][name]["interface"][operation] = {"adapter": "builtins.dict", "compute-cost": timing}
    path = folder / "large.dfm.yaml"
    path.write_text(json.dumps(document))
    return FederationConfig.load(path)


def large_pipeline(config: FederationConfig, count: int) -> Pipeline:
    draw = random.Random(11)
    made: list[Any] = []
    with Pipeline() as pipeline:
        for index in range(count - 10):
            first = made[max(0, index - draw.randint(1, 40))] if made else 0
            second = draw.choice(made[-60:]) if made and draw.random() < 0.6 else 1
            operation = getattr(config.ops.op, f"N{draw.randrange(60)}")
            made.append(operation(x=first, y=second, site=BestOf()))
        for value in made[-10:]:
            Yield(value)
    return pipeline


def shaped_pipeline(config: FederationConfig, shape: str, count: int) -> Pipeline:
    """Make one of the shapes of the other tables; its last ten values are results."""
    draw = random.Random(shape)
    made: list[Any] = []
    with Pipeline() as pipeline:
        for index in range(count - 10):
            sources = [made[source] for source in sources_of(draw, shape, index, count - 10)]
            operation = getattr(config.ops.op, f"N{draw.randrange(60)}")
            made.append(operation(x=sources, y=1, site=BestOf()))
        for value in made[-10:]:
            Yield(value)
    return pipeline


def whole_compiler(repeats: int) -> None:
    shapes(repeats)
    passes_of_the_compiler(repeats)


def shapes(repeats: int) -> None:
    """The whole compiler on pipelines of each shape."""
    print("\n1,000 statements over 20 sites, the whole compiler; processor times, best of", repeats, "\n")
    print("| possible | shape | compile_pipeline | gap |", "|---|---|---|---|", sep="\n")
    for possible in (4, 20):
        with tempfile.TemporaryDirectory() as folder:
            config = large_federation(Path(folder), 20, possible=possible)
        home = next(iter(config.sites))
        for shape in SHAPES:
            pipeline = shaped_pipeline(config, shape, 1_000)
            run = partial(compile_pipeline, pipeline, config, home)
            seconds, gap = min(timed(run) for _ in range(repeats)), run().placement.certificate.gap
            print(f"| {possible} | {shape} | {seconds * 1000:.0f} ms | {gap:.2%} |", flush=True)


def passes_of_the_compiler(repeats: int) -> None:
    print("\n1,000 statements over 20 sites, the whole compiler; best of", repeats, "\n")
    with tempfile.TemporaryDirectory() as folder:
        config = large_federation(Path(folder), 20)
    pipeline = large_pipeline(config, 1_000)
    home = next(iter(config.sites))
    compiled = compile_pipeline(pipeline, config, home)
    graph = lower(pipeline, config)
    costs = Costs(graph, config)
    passes: dict[str, Callable[[], object]] = {
        "validate": lambda: validate(pipeline, config),
        "lower": lambda: lower(pipeline, config),
        "costs": lambda: Costs(graph, config),
        "place": lambda: place(graph, costs, home, list(config.sites)),
        "route": lambda: route(graph, compiled.placement.sites, home),
        "compile_pipeline": lambda: compile_pipeline(pipeline, config, home),
        "first use of encoded_nets": lambda: {site: net.to_bytes() for site, net in compiled.nets.items()},
    }
    print("| pass | processor time |", "|---|---|", sep="\n")
    for name, run in passes.items():
        print(f"| {name} | {min(timed(run) for _ in range(repeats)) * 1000:.0f} ms |")
    print("\n" + str(compiled.placement.certificate))


def wide_compiler() -> None:
    """Thousands of sites: time and memory of the whole compiler."""
    print("\n1,000 statements over 3,000 sites, the whole compiler\n")
    with tempfile.TemporaryDirectory() as folder:
        config = large_federation(Path(folder), 3_000, links=10)
    pipeline = large_pipeline(config, 1_000)
    home = next(iter(config.sites))
    print("| objective | processor time | gap | memory, most so far |", "|---|---|---|---|", sep="\n")
    for objective in Objective:
        begin = time.process_time()
        compiled = compile_pipeline(pipeline, config, home, objective=objective)
        seconds, gap = time.process_time() - begin, compiled.placement.certificate.gap
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"| {objective.value} | {seconds:.1f} s | {gap:.1%} | {memory:.0f} MB |", flush=True)


def timed(run: Callable[[], object]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer problems")
    parser.add_argument("--gaps", action="store_true", help="only the gaps at 500 operations over 50 sites")
    parser.add_argument("--proofs", action="store_true", help="only how many of 60 operations over 10 sites are proven")
    parser.add_argument("--compiler", action="store_true", help="only the compiler for 1,000 operations over 20 sites")
    parser.add_argument("--wide", action="store_true", help="only the compiler for 3,000 sites")
    parser.add_argument(
        "--objective", type=Objective, metavar="time|bytes|money", help="of gaps and proofs; all by default"
    )
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED_OF_GAPS, help="of gaps and proofs")
    given = parser.parse_args()
    objectives = [given.objective] if given.objective else list(Objective)
    quick = given.quick
    placed(make("warm", "dag", 10, 4))
    if given.proofs:
        proofs(1 if quick else 5, given.first_seed, objectives)
        return
    if given.gaps:
        gaps(1 if quick else 3, given.first_seed, objectives)
        return
    if given.compiler:
        whole_compiler(2 if quick else 5)
        return
    if given.wide:
        wide_compiler()
        return
    small(100 if quick else 1_000)
    sizes(2 if quick else 5)
    gaps(1 if quick else 3, given.first_seed, objectives)
    whole_compiler(2 if quick else 5)
    wide_compiler()


if __name__ == "__main__":
    main()
