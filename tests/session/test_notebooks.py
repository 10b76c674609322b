"""What a notebook shows of what dfmesh gives and raises. IPython is not needed: these are what it asks for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dfmesh
from dfmesh import DfmeshError, Federation, Pipeline, Yield
from dfmesh.user_lines import is_own

HERE = Path(__file__).parent


@pytest.fixture
def federation() -> Federation:
    return Federation.load(HERE / "session.dfm.yaml")


def sum_of(federation: Federation) -> Pipeline:
    with Pipeline() as pipeline:
        Yield(federation.ops.odd.Add(a=1, b=2))
    return pipeline


def test_an_error_in_a_cell_shows_the_lines_of_the_cell_only(federation: Federation) -> None:
    with pytest.raises(DfmeshError) as raised:
        federation.session("inproc").run(sum_of(federation))
    title, line, empty, said = raised.value._render_traceback_()
    assert title.split() == ["SessionError", "Traceback", "(most", "recent", "call", "last)"]
    assert line.startswith(f"{__file__}:")
    assert line.endswith(': federation.session("inproc").run(sum_of(federation))')
    assert empty == ""
    assert said == f"SessionError: {raised.value}"


def test_what_a_cell_shows_is_what_print_shows(federation: Federation) -> None:
    pipeline = sum_of(federation)
    with federation.session("inproc") as session:
        found = session.discover(pipeline)
    explanation, prediction = pipeline.explain(federation), federation.predict(pipeline)
    for shown in (found, found[0], explanation, prediction):
        assert repr(shown) == str(shown)
        assert "odd.Add" in repr(shown)


def test_a_federation_shows_which_site_offers_what(federation: Federation) -> None:
    cells = re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", federation._repr_html_())
    width = 1 + len(federation.sites)
    assert cells[:width] == ["operation", *federation.sites]
    assert cells[width::width] == federation.operations
    assert "✓" in cells


def test_examples_that_are_installed_with_dfmesh_are_the_users_code() -> None:
    package = Path(dfmesh.__file__).parent
    assert is_own(str(package / "session" / "job.py"))
    assert not is_own(str(package / "examples" / "weather_day" / "pipeline.py"))
    assert not is_own(f"{package}_of_mine/pipeline.py")
