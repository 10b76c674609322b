"""A directory with results of an earlier run: they are replaced, and nothing else is touched."""

from __future__ import annotations

import json

import pytest
from cli_process import dfmesh

from dfmesh import ResultItem
from dfmesh.cli.earlier_results import EarlierResults
from dfmesh.cli.failures import CommandError
from dfmesh.cli.result_files import ResultFiles


def write_run(directory, *places, count=2):
    files = ResultFiles(directory)
    for place in places:
        for number in range(count):
            files.write(ResultItem(place, (number,), number, "a", "%1"))
    files.write_index({"job": "x"})


def names(directory):
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def test_a_second_run_does_not_mix_with_the_first(shop):
    for n in (3, 1):
        arguments = ["run", "shop.dfm.yaml", "shopping.py", "--param", f"n={n}", "--out", "out", "--target", "inproc"]
        done = dfmesh(*arguments, cwd=shop)
        assert done.returncode == 0, done.stderr
    assert names(shop / "out") == ["doubled/0000-0000.json", "index.json"]
    assert "removed 3 results of an earlier run" in done.stdout


def test_a_run_that_cannot_start_removes_nothing(shop):
    write_run(shop / "out", "doubled")
    before = names(shop / "out")
    assert dfmesh("run", "shop.dfm.yaml", "shopping.py", "--out", "out", cwd=shop).returncode == 1
    assert names(shop / "out") == before


def test_what_dfmesh_did_not_write_stays(tmp_path):
    write_run(tmp_path, "a", "b")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "b" / "mine.txt").write_text("mine")
    assert EarlierResults(tmp_path, ["a", "c"]).remove() == 4
    assert names(tmp_path) == ["b/mine.txt", "notes.txt"]
    assert not (tmp_path / "a").exists()


def test_files_that_no_index_lists_are_refused(tmp_path):
    write_run(tmp_path, "a/b")
    (tmp_path / "index.json").unlink()
    with pytest.raises(CommandError, match=r"a_b holds files that no index\.json lists, such as 0000\.json"):
        EarlierResults(tmp_path, ["a/b"])


@pytest.mark.parametrize("content", ["{", "[]", '{"results": 3, "job": "x"}', '{"name": "my own"}'])
def test_an_index_of_something_else_is_refused(tmp_path, content):
    (tmp_path / "index.json").write_text(content)
    with pytest.raises(CommandError, match="is not of a run of dfmesh"):
        EarlierResults(tmp_path, [])


@pytest.mark.parametrize(
    "file", ["../outside.txt", "/etc/hostname", "x/../../outside.txt", "link/outside.txt", "index.json"]
)
def test_no_index_makes_it_remove_other_files(tmp_path, file):
    (tmp_path / "outside.txt").write_text("stays")
    out = tmp_path / "out"
    out.mkdir()
    (out / "link").symlink_to(tmp_path)
    (out / "index.json").write_text(json.dumps({"job": "x", "results": [{"file": file}]}))
    assert EarlierResults(out, []).files == []


def test_a_directory_that_is_not_there_or_a_file(tmp_path):
    assert EarlierResults(tmp_path / "none", ["a"]).remove() == 0
    (tmp_path / "file").write_text("")
    assert EarlierResults(tmp_path / "file", ["a"]).remove() == 0


def test_a_result_that_cannot_be_written_does_not_cost_the_others(shop):
    (shop / "out").mkdir()
    (shop / "out" / "text").write_text("in the way of a folder")
    arguments = ["shop.dfm.yaml", "shopping.py:things", "--out", "out", "--target", "inproc"]
    done = dfmesh("run", *arguments, cwd=shop)
    assert done.returncode == 1
    assert "1 result could not be written; the first: cannot write a result of 'text'" in done.stderr
    index = json.loads((shop / "out" / "index.json").read_text())
    assert {entry["place"] for entry in index["results"]} == {"png", "bytes", "table", "array", "tuple"}
    assert index["status"] == "finished"
    told = dfmesh("run", *arguments, "--json", cwd=shop)
    events = [json.loads(line) for line in told.stdout.splitlines()]
    assert [event["place"] for event in events if event["event"] == "unwritten"] == ["text"]
    assert told.returncode == 1
