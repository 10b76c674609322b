"""An argument that a site refuses when the call begins: that call fails, and all else goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from dfmesh import Federation, ForEach, Pipeline, Yield

FEDERATION = """
dfm: 1.0.0
operations:
  words.Word: {parameters: {number: {}}}
  words.Mean: {parameters: {values: {type: array}}}
interfaces:
  far:
    words.Word: {adapter: json.dumps, args: {obj: number}}
    words.Mean: {adapter: statistics.fmean, args: {data: values}}
sites:
  app: {interface: {words.Mean: {adapter: statistics.fmean, args: {data: values}}}}
  far: {interface: {$ref: "#/interfaces/far"}}
"""


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    (tmp_path / "words.dfm.yaml").write_text(FEDERATION)
    return Federation.load(tmp_path / "words.dfm.yaml")


def test_who_else_takes_the_value_gets_it(federation: Federation) -> None:
    words = federation.ops.words
    with Pipeline() as pipeline:
        word = words.Word(number=1)
        Yield(words.Mean(values=word, site="far"), place="mean")
        Yield(word, place="word")
    with federation.session("inproc", measure=False) as session:
        for _ in range(3):  # The adapter is loaded by the first job.
            job = session.submit(pipeline)
            assert job.wait(30)
            assert [failure.kind for failure in job.errors] == ["AdapterArgumentError"]
            assert job.partial_result()["word"] == ["1"]


def test_a_loop_that_goes_on_ends(federation: Federation) -> None:
    words = federation.ops.words
    with Pipeline() as pipeline:
        with ForEach([1, 2, 3], on_error="collect") as number:
            word = words.Word(number=number)
            words.Mean(values=word, site="app")
        Yield(number.collect(word))
    with federation.session("inproc", measure=False) as session:
        for _ in range(3):
            assert session.submit(pipeline).result(timeout=30).one() == ["1", "2", "3"]
