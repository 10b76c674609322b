"""Which values travel in one message: small plain ones, in order, and never one that could hold up or spoil others."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from engine_support import Probe, compiled

from dfmesh import ForEach, Pipeline, Yield
from dfmesh.engine import messages
from dfmesh.engine.portions import PORTION_BYTES, PORTION_VALUES, portions

DAY = datetime.date(2026, 11, 30)


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ([], []),
        ([1, None, 2.5, True], [4]),
        (list(range(2 * PORTION_VALUES + 1)), [PORTION_VALUES, PORTION_VALUES, 1]),
        (["text", [1, {"a": 2}], b"bytes"], [3]),
        ([1, DAY, 2], [1, 1, 1]),
        (["x", "y" * PORTION_BYTES, "z"], [1, 1, 1]),
        (["x" * (PORTION_BYTES // 3)] * 5, [2, 2, 1]),
    ],
)
def test_values_are_cut_into_portions(given: list[Any], sizes: list[int]) -> None:
    found = list(portions(given))
    assert [len(values) for _, values in found] == sizes
    assert [value for _, values in found for value in values] == given
    assert all(given[first : first + len(values)] == values for first, values in found)


def test_what_a_loop_opens_at_once_goes_in_one_message(ops: Any) -> None:
    with Pipeline() as p, ForEach(ops.Echo(x=list(range(40)), site="a"), window=40) as item:
        Yield(ops.Echo(x=item, site="b"))
    probe = Probe(compiled(p))
    sent: list[Any] = []
    send = probe.send

    def watched(source: str, destination: str, message: Any) -> None:
        sent.append(message)
        send(source, destination, message)

    probe.send = watched  # type: ignore[method-assign]
    for site in probe.sites:
        probe.sites[site] = probe._make_site(site)
    probe.run([{}])
    assert probe.results() == {"yield": list(range(40))}
    tokens = [message for message in sent if isinstance(message, messages.TokenPackages)]
    assert [len(message.frames) for message in tokens] == [40]
    assert not any(isinstance(message, messages.TokenPackage) for message in sent)
