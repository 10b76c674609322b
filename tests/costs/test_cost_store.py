"""The file in which measured costs are kept."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from dfmesh.compiler.measured import MeasuredCosts
from dfmesh.compiler.measures import Mean, OperationMeasure
from dfmesh.session.cost_store import CostStore, costs_file, measuring


def measured(seconds: float, count: int = 1, operation: str = "op.Use") -> MeasuredCosts:
    return MeasuredCosts([OperationMeasure(operation, None, "a", Mean(seconds, count))])


def seconds_in(path: Path, operation: str = "op.Use") -> float | None:
    return CostStore(path).costs().seconds(operation, None, "a")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "costs.json"


def test_what_is_added_is_there_for_the_next_client(path: Path) -> None:
    store = CostStore(path)
    store.add(measured(2.0))
    assert not path.exists()
    assert store.costs().seconds("op.Use", None, "a") == 2.0
    assert seconds_in(path) == 2.0


def test_clients_add_to_what_others_have_written(path: Path) -> None:
    one, other = CostStore(path), CostStore(path)
    one.add(measured(1.0))
    other.add(measured(3.0))
    one.flush()
    other.flush()
    assert one.costs().seconds("op.Use", None, "a") == 2.0


def test_many_processes_lose_nothing(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from dfmesh.compiler.measured import MeasuredCosts\n"
        "from dfmesh.compiler.measures import Mean, OperationMeasure\n"
        "from dfmesh.session.cost_store import CostStore\n"
        "store = CostStore(Path(sys.argv[1]))\n"
        "for n in range(20):\n"
        "    store.add(MeasuredCosts([OperationMeasure('op.Use', None, 'a', Mean(1.0, 1))]))\n"
        "    store.flush()\n"
    )
    clients = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(4)]
    assert [client.wait(60) for client in clients] == [0] * 4
    assert CostStore(path).costs().operations["op.Use", None, "a"].seconds == Mean(1.0, 80)
    assert sorted(item.name for item in path.parent.iterdir()) == ["costs.json", "costs.lock"]


def test_a_client_that_was_killed_while_it_wrote_leaves_nothing_for_good(path: Path) -> None:
    path.parent.mkdir()
    path.with_suffix(".draft").write_bytes(b"{half")
    store = CostStore(path)
    store.add(measured(4.0))
    store.flush()
    assert seconds_in(path) == 4.0
    assert sorted(item.name for item in path.parent.iterdir()) == ["costs.json", "costs.lock"]


@pytest.mark.parametrize("damage", [b"", b"{not json", b'{"version": 7, "folds": 0}', b"\xff\xfe"])
def test_a_damaged_file_is_warned_of_and_replaced(path: Path, damage: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(damage)
    store = CostStore(path)
    with pytest.warns(RuntimeWarning, match=r"costs\.json"):
        assert not store.costs()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not store.costs()  # Warned of once.
        store.add(measured(4.0))
        store.flush()
    assert seconds_in(path) == 4.0


def test_a_place_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = CostStore(tmp_path / "file" / "costs.json")
    store.add(measured(5.0))
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        assert store.costs().seconds("op.Use", None, "a") == 5.0


def test_a_reset_forgets_one_operation_or_all(path: Path) -> None:
    store = CostStore(path)
    store.add(measured(1.0))
    store.add(measured(2.0, operation="op.Other"))
    store.reset("op.Use")
    assert seconds_in(path) is None
    assert seconds_in(path, "op.Other") == 2.0
    store.reset()
    assert not CostStore(path).costs()


def test_a_reset_by_somebody_else_is_seen(path: Path) -> None:
    store = CostStore(path)
    store.add(measured(1.0))
    assert store.costs()
    CostStore(path).reset()
    assert not store.costs()
    path.unlink()
    assert not store.costs()


def test_the_file_stands_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert costs_file("weather") == tmp_path / "dfmesh" / "weather" / "costs.json"
    assert costs_file("../../etc/x y") == tmp_path / "dfmesh" / "_.._etc_x_y" / "costs.json"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert costs_file("weather") == Path.home() / ".cache" / "dfmesh" / "weather" / "costs.json"


@pytest.mark.parametrize(("text", "on"), [("0", False), ("off", False), ("No", False), ("1", True), ("", True)])
def test_the_environment_can_switch_it_off(monkeypatch: pytest.MonkeyPatch, text: str, on: bool) -> None:
    monkeypatch.setenv("DFMESH_MEASURE", text)
    assert measuring() is on
    assert measuring(True)
    assert not measuring(False)


def test_the_tests_themselves_do_not_measure() -> None:
    assert os.environ["DFMESH_MEASURE"] == "0"
