"""`dfmesh bench`, in its smallest sizes, and the floor that it compares with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from cli_process import start

from dfmesh.cli.bench import measures, resources
from dfmesh.cli.bench.figures import Row, Spread, Unit
from dfmesh.cli.bench.floor import Floor
from dfmesh.cli.bench.floor_messages import BATCHED, ONE_AT_A_TIME
from dfmesh.cli.bench.system import CannotStateError, Client, System, Task, ends, worker_of

SMALLEST = ["--seconds", "0.01", "--repeats", "1"]


@pytest.fixture
def own_temporary_directory(monkeypatch):
    """A directory for temporary files that nobody else uses, to see what is left in it; its path is short."""
    with tempfile.TemporaryDirectory() as directory:
        monkeypatch.setenv("TMPDIR", directory)
        yield Path(directory)


def test_bench_measures_itself_and_leaves_nothing(tmp_path, monkeypatch, own_temporary_directory):
    run = f"test-of-bench-{os.getpid()}"
    monkeypatch.setenv(resources.RUN_VARIABLE, run)
    process = start("bench", *SMALLEST, "--json", cwd=tmp_path)
    try:
        output, errors = process.communicate(timeout=110)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    found = json.loads(output)
    assert found["machine"]["cores"] == os.cpu_count()
    rows = {(row["case"], row["figure"]): row for row in found["rows"]}
    assert [key for key, row in rows.items() if row["dfmesh"] is None and row["trouble"] is None] == []
    items = rows["items", "items_per_second"]
    assert items["dfmesh"]["median"] > 0
    assert items["ratio"] == pytest.approx(items["dfmesh"]["median"] / items["floor"]["median"])
    warm = rows["latency", "job_median"]
    assert warm["ratio"] == pytest.approx(warm["floor"]["median"] / warm["dfmesh"]["median"])
    assert resources.marked_processes(run) == set()
    assert list(own_temporary_directory.iterdir()) == []


def test_figures_as_a_table():
    from dfmesh.cli.bench.cases import ROWS, Found
    from dfmesh.cli.bench.report import as_table

    found = Found()
    for rate in (90_000.0, 110_000.0, 100_000.0):
        found.add("dfmesh", "items", {"items_per_second": rate})
    found.add("floor", "items", {"items_per_second": 200_000.0})
    found.refusals["floor", "array_memory"] = "not measured"
    found.failures["dfmesh", "chains"] = "wrong result of the chains"
    columns = [list(column.cells) for column in as_table(found).columns]
    rows = {row[0]: row[1:] for row in zip(*columns, strict=True)}
    assert len(rows) == len(ROWS)
    assert rows["items, site a to site b"] == ("100,000/s (90,000/s to 110,000/s)", "200,000/s", "0.5 x")
    assert rows["16 MB array, sender: memory beyond it"] == ("-", "not measured", "-")
    assert rows["processor time of an operation and its hop"][0] == "wrong result of the chains"


@pytest.mark.parametrize("way", [ONE_AT_A_TIME, BATCHED])
def test_the_floor_does_its_work(way, own_temporary_directory):
    with Floor(way) as floor:
        assert floor.first_results() == [0, 1, 2, 3]
        assert floor.items(1_000) == 999 * 1_000 // 2
        assert floor.chains(6, 5) == [0, 1, 2, 3, 4]
        client = floor.client()
        client.take(client.submit(7))
        assert len(floor.arrays(1 << 16, 6)) == 6
        peer = floor.site_processes()["b"]
        assert resources.command_line(peer)
    assert not Path(f"/proc/{peer}").exists()
    assert list(own_temporary_directory.iterdir()) == []


def test_the_floor_ends_with_whoever_started_it(own_temporary_directory):
    script = (
        "import os\nfrom dfmesh.cli.bench.floor import Floor\n"
        "floor = Floor().__enter__()\nprint(floor.site_processes()['b'], flush=True)\nos._exit(1)"
    )
    run = f"test-of-floor-{os.getpid()}"
    environment = {**os.environ, resources.RUN_VARIABLE: run, "TMPDIR": str(own_temporary_directory)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.stdout.strip().isdigit(), done.stderr
    # The other process has this one's standard error: all of it was read, so that process is over.
    assert resources.marked_processes(run) == set()


class Pretended(System):
    """Takes a known time for each item."""

    name = "pretended"
    import_statement = "import json"

    def __init__(self, wrong: int = 0) -> None:
        self.counts: list[int] = []
        self._wrong = wrong

    def items(self, count: int) -> int:
        self.counts.append(count)
        return count * (count - 1) // 2 + self._wrong

    def call(self, number: int) -> int:
        return number

    def client(self) -> Client:
        return Client(lambda number: number, lambda number: None)


def test_a_wrong_result_is_no_figure():
    with pytest.raises(measures.WrongResultError, match="wrong result of the items: 31126 instead of 31125"):
        measures.items(Pretended(wrong=1), 0.0, 250)


def test_what_a_system_cannot_do_is_said():
    with pytest.raises(CannotStateError):
        measures.arrays(Pretended(), 0.0, 4096, 1)


def test_a_slow_system_gets_fewer_items():
    system = Pretended()
    figures = measures.items(system, 0.0, 1_000_000, budget=0.0)
    assert figures["count"] == system.counts[-1] == measures.FEWEST_ITEMS
    assert measures.items(system, 0.0, 5_000)["count"] == 5_000


@pytest.mark.parametrize(("number", "rounded"), [(7, 7), (43, 43), (1_999, 1_900), (987_654, 980_000)])
def test_counts_are_rounded_down(number, rounded):
    assert measures.two_digits(number) == rounded


def test_jobs_are_measured():
    figures = measures.latency(Pretended(), 0.01)
    assert 0 < figures["job_median"] <= figures["job_p99"]
    assert measures.parallel(Pretended(), 0.01, threads=2)["jobs_per_second"] > 0
    assert 0 < measures.importing(Pretended(), repeats=1)["import"] < 60


def test_ratios_say_how_good_it_is():
    fast, slow = Spread.of([1.0, 3.0, 2.0]), Spread.of([4.0])
    assert (fast.median, fast.low, fast.high, fast.repeats) == (2.0, 1.0, 3.0, 3)
    assert Row("time", "x", "y", Unit.SECONDS).ratio(fast, slow) == 2.0
    assert Row("rate", "x", "y", Unit.PER_SECOND, more_is_better=True).ratio(fast, slow) == 0.5
    assert Row("memory beyond", "x", "y", Unit.BYTES, compared=False).ratio(fast, slow) is None
    assert Row("time", "x", "y", Unit.SECONDS).ratio(fast, None) is None


def test_figures_are_written_for_people():
    written = [Unit.SECONDS.write(74e-6), Unit.SECONDS.write(0.0123), Unit.SECONDS.write(2.5)]
    assert written == ["74 µs", "12.3 ms", "2.5 s"]
    assert Unit.PER_SECOND.write(94_000) == "94,000/s"
    assert Unit.BYTES_PER_SECOND.write(2.04e9) == "2.04 GB/s"
    assert Unit.SHARE.write(0.001) == "0.1 %"
    assert Spread.of([1e6, 3e6]).write(Unit.BYTES) == "2 MB (1 MB to 3 MB)"


@pytest.mark.skipif(not resources.available(), reason="reads Linux's /proc")
def test_resources_of_processes():
    own = os.getpid()
    before = resources.cpu_seconds([own])
    total = sum(range(300_000))
    assert resources.cpu_seconds([own]) > before
    assert total > 0
    assert resources.private_bytes(own) < resources.resident_bytes(own)
    resources.reset_peak(own)
    assert resources.peak_bytes(own) >= resources.resident_bytes(own) // 2
    assert own in resources.processes_of_run()
    assert resources.proportional_bytes([own]) > 0
    nobody = 2**22 + 1
    assert resources.cpu_seconds([nobody]) == resources.resident_bytes(nobody) == resources.wake_ups([nobody]) == 0
    assert resources.command_line(nobody) == []


def test_columns_are_shared_between_two_workers():
    assert [worker_of(column, 4) for column in range(4)] == [0, 0, 1, 1]
    assert [worker_of(column, 3) for column in range(3)] == [0, 0, 1]
    assert ends([Task(0, ()), Task(1, ()), Task(0, (0, 1))]) == [2]


def test_probes_may_differ_in_the_last_digit_only():
    measures.check_probes([32818.27410365738, 1.0], [32818.27410365737, 1.0])
    with pytest.raises(measures.WrongResultError, match="the arrays"):
        measures.check_probes([32818.27, 1.0], [32818.28, 1.0])
    with pytest.raises(measures.WrongResultError, match="the arrays"):
        measures.check_probes([1.0], [1.0, 2.0])
