"""`dfmesh demo weather`."""

from __future__ import annotations

import sys

import pytest
from cli_process import dfmesh

from dfmesh.cli.failures import CommandError


@pytest.mark.parametrize("target", ["inproc", "local"])
def test_the_demo_says_what_came_out(tmp_path, target):
    done = dfmesh("demo", "weather", "--out", "maps", "--target", target, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "maps").glob("*.png"))) == 24
    assert "24 maps: maps/map-00.png to map-23.png" in done.stdout
    assert "page: maps/index.html" in done.stdout
    assert "no report left its site." in done.stdout
    assert "24,199" in done.stdout
    assert "5,242 repeated report" in done.stdout
    assert "weather.Render" in done.stderr


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("file", "--out file: file is no directory"),
        ("file/maps", "--out file/maps: {}/file is no directory"),
        ("taken", "--out taken: taken/index.html is in the way of a file of that name"),
        ("x" * 300, "--out xxx"),
    ],
)
def test_where_its_files_go_is_checked_first(tmp_path, out, said):
    (tmp_path / "file").touch()
    (tmp_path / "taken" / "index.html").mkdir(parents=True)
    done = dfmesh("demo", "weather", "--out", out, "--target", "inproc", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert said.format(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr


def test_without_pillow_it_says_what_to_install(monkeypatch, tmp_path):
    from dfmesh.cli import weather

    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setattr(weather.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CommandError, match=r"pip install 'dfmesh\[weather\]'"):
        weather.run_weather_day(tmp_path, "inproc")


def test_an_example_that_is_not_there(monkeypatch, tmp_path):
    from dfmesh.cli import weather

    monkeypatch.setattr(weather, "_PACKAGE", tmp_path / "src" / "dfmesh")
    with pytest.raises(CommandError, match="not installed"):
        weather.find_example()
