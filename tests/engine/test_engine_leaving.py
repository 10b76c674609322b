"""Which calls give what is about to be sent: their results are made ready for that where they come from."""

from __future__ import annotations

from typing import Any

from engine_support import compiled

from dfmesh import Pipeline, Yield
from dfmesh.engine.prepared_nets import PreparedNet


def leaving(pipeline: Pipeline, site: str) -> list[bool]:
    """Tell of each call at a site whether its result leaves."""
    net = compiled(pipeline).nets[site]
    return [plan.leaves for plan in PreparedNet(net, net.to_bytes()).plans if plan is not None]


def test_what_goes_to_another_site_as_a_whole_leaves(ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.Echo(x=ops.Echo(x=1, site="a"), site="b"))
    assert leaving(p, "a") == [True]
    assert leaving(p, "b") == [False]


def test_what_is_used_where_it_is_or_sent_in_part_stays(ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.Echo(x=ops.Echo(x=1, site="a"), site="a"))
        Yield(ops.Echo(x=ops.Echo(x={"part": 1}, site="a")["part"], site="b"))
    assert leaving(p, "a") == [False, False, False]


def test_what_is_used_here_and_elsewhere_leaves(ops: Any) -> None:
    with Pipeline() as p:
        item = ops.Echo(x=1, site="a")
        Yield(ops.Echo(x=item, site="a"))
        Yield(ops.Echo(x=item, site="b"))
    assert sorted(leaving(p, "a")) == [False, True]
