"""Parameters that are given to a sub-pipeline which has no use for them."""

from __future__ import annotations

import pytest

from dfmesh import Pipeline, PlaceParam, Yield
from dfmesh.errors import PipelineError


def test_a_parameter_whose_use_an_inner_sub_pipeline_drops_is_still_a_parameter() -> None:
    with Pipeline() as inner:
        Yield(PlaceParam("kept"), place="kept")
        Yield(PlaceParam("dropped"), place="dropped")
    with Pipeline() as middle:
        Yield(inner(kept=1, dropped=[PlaceParam("y")])["kept"], place="kept")
    assert list(middle.parameters()) == ["y"]
    with Pipeline() as outer:
        Yield(middle(y=3)["kept"])
    assert not outer.parameters()
    with Pipeline(), pytest.raises(PipelineError, match="needs the parameter 'y'"):
        middle()
    with Pipeline(), pytest.raises(PipelineError, match="no parameter 'z'"):
        middle(y=3, z=4)
