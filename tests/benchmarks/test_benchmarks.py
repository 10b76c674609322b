"""What the benchmarks compute besides measuring: task graphs, crossings, what counts as flat."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    """The benchmarks on the module search path, and gone from it and from the loaded modules afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("pattern", ["chain", "stencil", "fan", "tree", "random"])
def test_task_graphs(pattern):
    from task_graphs import graph

    tasks = graph(pattern, 4, 5)
    assert tasks == graph(pattern, 4, 5)
    assert all(source < index for index, (_, sources) in enumerate(tasks) for source in sources)
    assert len(tasks) == {"fan": 4 + 1 + 4 + 1 + 4, "tree": 1 + 2 + 4 + 4 + 4}.get(pattern, 20)
    assert all(sources == sorted(set(sources)) for _, sources in tasks)


def test_sources_of_the_patterns():
    from task_graphs import graph

    assert graph("chain", 2, 2) == [(0, []), (1, []), (0, [0]), (1, [1])]
    assert graph("stencil", 3, 2)[3:] == [(0, [0, 1]), (1, [0, 1, 2]), (2, [1, 2])]
    assert graph("fan", 2, 3) == [(0, []), (1, []), (0, [0, 1]), (0, [2]), (1, [2])]
    assert graph("tree", 4, 3) == [(0, []), (0, [0]), (1, [0]), (0, [1]), (1, [1]), (2, [2]), (3, [2])]


def test_where_the_efficiency_is_one_half():
    from granularity import crossed

    assert crossed([(1e-3, 0.4), (4e-3, 0.6)]) == pytest.approx(2e-3)
    assert crossed([(4e-3, 0.6), (1e-3, 0.4)]) == pytest.approx(2e-3)
    assert crossed([(1e-3, 0.6), (4e-3, 0.7)]) is None


def test_all_systems_compute_the_same_graph():
    from granularity import expected_ends
    from task_graphs import graph

    from dfmesh.cli.bench.system import Task

    tasks = [Task(column, tuple(sources)) for column, sources in graph("tree", 4, 3)]
    assert len(expected_ends(tasks, 2)) == 4


def test_memory_that_is_flat_and_memory_that_is_not():
    from bounded_cases.verdicts import Verdicts
    from bounded_cases.watching import MEGABYTE, Watch

    watch = Watch(1.0)
    watch.memory["flat"] = [(float(at), (50 + (at % 2)) * MEGABYTE) for at in range(100)]
    watch.memory["growing"] = [(float(at), (50 + at) * MEGABYTE) for at in range(100)]
    assert watch.rise("flat") <= MEGABYTE
    assert watch.rise("growing") == 86 * MEGABYTE
    assert watch.slope("growing") == pytest.approx(MEGABYTE, rel=0.2)
    verdicts = Verdicts("a case")
    verdicts.flat(watch)
    assert not verdicts.held
    assert [line.split()[0] for line in verdicts.lines] == ["holds", "FAILS"]
    assert "NOT bounded" in verdicts.text()


def test_peers_by_name():
    import contestants

    assert contestants.chosen("all") == list(contestants.PEERS)
    assert contestants.chosen("ray,dask") == ["ray", "dask"]
    with pytest.raises(ValueError, match="no peer is called spark"):
        contestants.chosen("ray,spark")


CHILD = """
import json, os, sys, time
for order in json.loads(sys.argv[1]):
    if order["measure"] == "hang":
        time.sleep(600)
    if order["measure"] == "die":
        print("it broke", file=sys.stderr)
        os._exit(3)
    print("noise of a framework")
    print(json.dumps({"case": order["case"], "figures": {"n": order["parameters"]["n"]}}), flush=True)
"""


def test_a_case_that_hangs_or_dies_costs_no_other(capsys):
    from contestants import Contestant
    from measured_child import Case, measured

    contestant = Contestant("pretended", (sys.executable, "-c", CHILD), dict(os.environ), "")
    given = [("first", "fine"), ("second", "hang"), ("third", "fine"), ("fourth", "die"), ("fifth", "fine")]
    cases = [Case(name, measure, {"n": number}, 0.5) for number, (name, measure) in enumerate(given)]
    found = list(measured(contestant, cases))
    assert [line["case"] for line in found] == [name for name, _ in given]
    assert [line.get("figures", {}).get("n") for line in found] == [0, None, 2, None, 4]
    assert found[1]["failed"] == "timed out after 0.5 s"
    assert found[3]["failed"] == "failed: it broke"
    assert "it broke" in capsys.readouterr().err


def test_everything_that_a_measurement_started_is_ended():
    from contestants import Contestant
    from measured_child import Case, measured

    script = (
        "import json, subprocess\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "print(json.dumps({'case': 'only', 'figures': {'pid': child.pid}}))\n"
    )
    contestant = Contestant("pretended", (sys.executable, "-c", script), dict(os.environ), "")
    [line] = measured(contestant, [Case("only", "any", {}, 10)])
    left = Path(f"/proc/{line['figures']['pid']}/cmdline")
    assert not left.exists() or left.read_bytes() == b""  # ended; whoever inherited it may not have asked yet


def test_who_is_too_slow_is_spared_larger_cases():
    from contestants import Contestant
    from measure import TOO_SLOW, Measurement, leave_larger_out

    slow = Contestant("slow", (), {}, "")
    results = {("slow", f"items_{count}"): Measurement() for count in (1_000, 10_000, 100_000)}
    leave_larger_out(results, slow, {"case": "items_1000", "figures": {"count": 1_000.0}})
    assert [found.refused for found in results.values()] == ["", "", ""]
    leave_larger_out(results, slow, {"case": "items_10000", "figures": {"count": 4_300.0}})
    assert [found.refused for found in results.values()] == ["", "", TOO_SLOW]


def test_the_table_says_what_is_missing_and_why():
    import table
    from measure import Measurement

    results = {
        (name, case): Measurement() for name in ("floor", "dfmesh", "slow") for case in ("latency", "items_10000")
    }
    results["dfmesh", "latency"].add({"figures": {"job_median": 2e-4}})
    results["floor", "latency"].add({"figures": {"job_median": 1e-4}})
    results["slow", "latency"].add({"refused": "has no jobs"})
    results["dfmesh", "items_10000"].add({"figures": {"items_per_second": 1000.0, "count": 10_000.0}})
    results["slow", "items_10000"].add({"figures": {"items_per_second": 10.0, "count": 250.0}})
    results["slow", "items_10000"].add({"failed": "timed out"})
    results["floor", "items_10000"].add({"failed": "wrong | result"})
    built = table.build(results, ["floor", "dfmesh", "slow"])
    lines = {line[0]: line[1:] for line in built.lines}
    assert lines["warm job, submit to result, median"] == ["100 µs", "200 µs", "has no jobs", "0.5 x", "-"]
    assert lines["10,000 items, a to b"] == [
        "wrong / result",
        "1,000/s",
        "10/s with 250; 1 more timed out",
        "-",
        "100 x",
    ]
    assert built.markdown().splitlines()[1] == "| --- | --- | --- | --- | --- | --- |"


def test_samples_count_for_the_innermost_function():
    from hot_path import functions, part

    stacks = [
        "main (dfmesh/targets/local/site_process.py:93);Link._write (dfmesh/targets/local/link.py:301) 3",
        "main (dfmesh/targets/local/site_process.py:99);Link._write (dfmesh/targets/local/link.py:305) 2",
        "<module> (<stdin>);f (x.py:1) 1",
        "no sample",
    ]
    found = functions(stacks)
    assert found == {("Link._write", "dfmesh/targets/local/link.py"): 5, ("f", "x.py"): 1}
    files = [
        "dfmesh/targets/local/link.py",
        "dfmesh/targets/wire.py",
        "dfmesh/engine/calls.py",
        "dfmesh/errors.py",
        "x.py",
    ]
    assert [part(file) for file in files] == ["targets/local", "targets", "engine", "errors.py", "other"]
    assert part("/usr/lib/python3.11/selectors.py") == "event loop"
