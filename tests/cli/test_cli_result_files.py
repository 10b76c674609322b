"""File names: safe and distinct, whatever a place is called."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy
import pyarrow as pa
import pytest
import xarray

from dfmesh import ResultItem, values
from dfmesh.cli.failures import CommandError, UsageError
from dfmesh.cli.result_files import ResultFiles, check_directory, sniff, write_value


def item(place, frame=(0,), value=1, node="%1"):
    return ResultItem(place, frame, value, "a", node)


@pytest.mark.parametrize("place", ["../up", "/etc/passwd", "..", "a/b", "", "index.json", "C:\\x", "~", "-rf"])
def test_no_place_leaves_the_directory(tmp_path, place):
    files = ResultFiles(tmp_path / "out")
    entry = files.write(item(place))
    files.write_index({})
    path = (tmp_path / "out" / entry["file"]).resolve()
    assert path.is_relative_to(tmp_path / "out")
    assert path.parent.parent == tmp_path / "out"
    assert json.loads((tmp_path / "out/index.json").read_text())["results"][0]["place"] == place


def test_a_result_that_cannot_be_written_leaves_nothing_that_looks_like_one(tmp_path, monkeypatch):
    def half(path, data):
        path.open("wb").write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    files = ResultFiles(tmp_path)
    files.write(item("good", value="all of it"))
    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", half)
        with pytest.raises(CommandError, match="No space left"):
            files.write(item("good", (1,), "0123456789"))
    files.write_index({})
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "good",
        "good/0000.txt",
        "index.json",
    ]


def test_a_directory_that_takes_no_files_is_refused_first():
    with pytest.raises(UsageError, match=r"/proc (takes no files|may not be written to)"):
        check_directory(Path("/proc/results"))


def test_places_that_look_alike_stay_apart(tmp_path):
    files = ResultFiles(tmp_path)
    written = {files.write(item(place))["file"].lower() for place in ("a/b", "a:b", "A_b", "a_b", "a_b-1")}
    assert len(written) == 5


@pytest.mark.parametrize("value", ["a\ud800", {"k\udcff": ["a\ud800", "\N{SNOWMAN}"]}])
def test_text_that_is_no_unicode_is_written_as_json(tmp_path, value):
    path = write_value(value, tmp_path / "text")
    assert path.suffix == ".json"
    assert values.from_json(json.loads(path.read_text("utf-8"))) == value


def test_long_names_are_cut_and_stay_apart(tmp_path):
    written = set()
    for place in ("x" * 1000, "x" * 999, "\N{GREEK SMALL LETTER ALPHA}" * 500):
        for _run in range(2):  # An earlier run's files are found by the same names.
            entry = ResultFiles(tmp_path, frozenset({place})).write(item(place, (0, 1, 2), node="n" * 300))
            written.add(entry["file"])
            assert (tmp_path / entry["file"]).is_file()
    assert len(written) == 3


def test_several_yields_to_one_place_stay_apart(tmp_path):
    files = ResultFiles(tmp_path, frozenset({"p"}))
    assert [files.write(item("p", node=node))["file"] for node in ("%1", "%2", "named")] == [
        "p/0000-1.json",
        "p/0000-2.json",
        "p/0000-named.json",
    ]


def test_the_index_is_in_frame_order(tmp_path):
    files = ResultFiles(tmp_path)
    for frame in ((0, 2), (0, 0), (0, 10)):
        files.write(item("p", frame))
    index = json.loads(files.write_index({"job": "x"}).read_text())
    assert [entry["frame"] for entry in index["results"]] == [[0, 0], [0, 2], [0, 10]]
    assert index["job"] == "x"


def test_tables_that_parquet_cannot_hold(tmp_path):
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    table = pa.table({"u": union})
    path = write_value(table, tmp_path / "t")
    assert path.suffix == ".arrow"
    assert pa.ipc.open_file(str(path)).read_all().equals(table)


@pytest.mark.parametrize(
    "array",
    [
        numpy.ma.masked_array([1, 2], [False, True]),
        numpy.zeros(2, {"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 2], "itemsize": 8}),
    ],
)
def test_arrays_that_npy_cannot_hold(tmp_path, array):
    path = write_value(array, tmp_path / "a")
    assert [path] == list(tmp_path.iterdir())
    assert repr(values.from_json(json.loads(path.read_text()))) == repr(array)


def test_data_sets_are_netcdf_where_that_can_be_written(tmp_path, monkeypatch):
    data = xarray.Dataset({"t": ("x", [1.0, 2.0])})
    monkeypatch.setattr(xarray.Dataset, "to_netcdf", lambda self, path: path.write_bytes(b"CDF"))
    entry = ResultFiles(tmp_path / "with").write(item("p", value=data))
    assert (entry["file"], "note" in entry) == ("p/0000.nc", False)

    def no_library(self, path):
        raise ValueError("cannot write NetCDF files because none of the suitable backend libraries are installed")

    monkeypatch.setattr(xarray.Dataset, "to_netcdf", no_library)
    entry = ResultFiles(tmp_path / "without").write(item("p", value=data))
    assert entry["file"] == "p/0000.json"
    assert "pip install h5netcdf" in entry["note"]
    assert values.from_json(json.loads((tmp_path / "without/p/0000.json").read_text())).equals(data)


@pytest.mark.parametrize(
    ("data", "extension"),
    [
        (b"\xff\xd8\xff\xe0", "jpg"),
        (b"RIFF0000WEBP", "webp"),
        (b"\x89HDF\r\n\x1a\n", "h5"),
        (b"", "bin"),
        (b"RIFF", "bin"),
    ],
)
def test_sniffing(data, extension):
    assert sniff(data) == extension
