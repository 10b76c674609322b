"""A site whose configuration means something else by an operation than the client's refuses before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dfmesh import Federation, JobError, Pipeline, Yield

FILE = """
dfm: 1.0.0
operations:
  weather.Bin:
    description: Bins.
    version: "1.2"
    parameters:
      hour: {type: string, description: When}
      grid: {type: object, properties: {cells: {type: array, items: {type: number}}}}
      step: {type: integer, default: 1}
    required: [hour]
    returns: list
  weather.Note: {parameters: {file: {type: string}}}
sites:
  app: {interface: {weather.Note: notes.write}}
  mx:
    interface:
      weather.Bin:
        adapter: notes.bin
        args: {hour: hour, extra: {const: 1, expose-as: extra}}
"""

CODE = """
def write(file):
    open(file, "w").close()

def bin(hour, extra):
    return [hour, extra]
"""


def refusal(folder: Path, edit: Callable[[str], str], **arguments: object) -> str:
    """Submit a pipeline to sites that start with another file than the client has read; empty if it runs."""
    (folder / "notes.py").write_text(CODE)
    file = folder / "weather.dfm.yaml"
    file.write_text(FILE)
    federation = Federation.load(file)
    with Pipeline() as pipeline:
        federation.ops.weather.Note(file=str(folder / "ran"))
        Yield(federation.ops.weather.Bin(hour="1995-03-18", **arguments))
    file.write_text(edit(FILE))
    with federation.session(homesite="app") as session:
        try:
            session.run(pipeline)
        except JobError as error:
            assert not (folder / "ran").exists(), "nothing runs, at no site"
            (failure,) = error.errors
            assert failure.site == "mx"
            assert failure.kind == "JobRefused"
            return failure.message
    assert (folder / "ran").exists()
    return ""


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("hour: {type: string", "hour: {type: integer", "parameter 'hour': integer here, string at the client"),
        ('version: "1.2"', "version: 2", "version 2 here, 1.2 at the client"),
        ("returns: list", "returns: dict", "the result: dict here, list at the client"),
    ],
)
def test_both_are_named(tmp_path: Path, old: str, new: str, difference: str) -> None:
    message = refusal(tmp_path, lambda text: text.replace(old, new))
    assert message.startswith("offers weather.Bin otherwise than the pipeline was compiled against: " + difference)
    assert "weather.dfm.yaml:4" in message


def test_a_parameter_of_one_site_that_is_not_there_any_more(tmp_path: Path) -> None:
    message = refusal(tmp_path, lambda text: text.replace(", expose-as: extra", ""), extra=2)
    assert message == "has no parameter 'extra' of weather.Bin, which the pipeline gives"


def test_what_is_for_people_alone_may_differ(tmp_path: Path) -> None:
    assert refusal(tmp_path, lambda text: text.replace("Bins.", "Counts.").replace("When", "Which hour")) == ""
