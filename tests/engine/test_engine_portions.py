"""Which values travel in one message: small plain ones or a few large arrays, none that holds up or spoils others."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from engine_support import Probe, compiled

from dfmesh import ForEach, Pipeline, Yield
from dfmesh.engine import events, messages
from dfmesh.engine.job_outbox import JobOutbox
from dfmesh.engine.portions import ARRAYS_BYTES, ARRAYS_TOGETHER, PORTION_BYTES, PORTION_VALUES, portions
from dfmesh.engine.statistics import Statistics
from dfmesh.engine.wiring import WiredNet
from dfmesh.targets import payloads

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


def array_of(size: int) -> Any:
    return np.zeros(size // 8)


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ([array_of(ARRAYS_BYTES // 2)] * 5, [2, 2, 1]),
        ([array_of(2 * ARRAYS_BYTES)] * 2, [1, 1]),
        ([array_of(65536)] * (ARRAYS_TOGETHER + 1), [ARRAYS_TOGETHER, 1]),
        ([1, 2, array_of(65536), array_of(65536), 3], [2, 2, 1]),
        ([array_of(800), array_of(800)], [1, 1]),
        ([[array_of(65536)], [array_of(65536)]], [1, 1]),
    ],
)
def test_large_arrays_travel_together_as_long_as_they_are_few(given: list[Any], sizes: list[int]) -> None:
    found = list(portions(given))
    assert [len(values) for _, values in found] == sizes
    flat = [value for _, values in found for value in values]
    assert all(one is other for one, other in zip(flat, given, strict=True))


def test_what_an_event_sends_to_several_sites_is_packed_once(ops: Any) -> None:
    with Pipeline() as p:
        item = ops.Echo(x=1, site="a")
        Yield(ops.Echo(x=item, site="b"))
        Yield(ops.Echo(x=item, site="c"))
    net = compiled(p).nets["a"]

    class Services:
        """Packs as a real carrier does and notes what is sent."""

        def __init__(self) -> None:
            self.sent: list[tuple[str, Any]] = []
            self.carrier: Any = self
            self.soon = self.pack
            self.now = float

        def pack(self, value: Any) -> Any:
            return payloads.pack(value)

        def send(self, peer: str, message: Any) -> int:
            self.sent.append((peer, message))
            return 1

    services = Services()
    wired = WiredNet(net)
    outbox = JobOutbox("job", wired, services, [Statistics() for _ in wired.transitions], lambda: None, lambda: None)
    arrays = [array_of(2**20) for _ in range(4)]
    routes = [(route.site, route.id, item.position) for item in wired.transitions for route in item.ir.routes]
    routes = [route for route in routes if route[0] in ("b", "c")]
    assert len(routes) == 2
    for site, route, transition in routes:
        outbox.carry_out(events.SendTokens(site, route, [(0, index) for index in range(4)], arrays, transition))
    outbox.event_over()
    parts: dict[str, list[Any]] = {"b": [], "c": []}
    for peer, message in services.sent:
        assert len(message.frames) == 2
        parts[peer].append(message.payload)
    assert len(parts["b"]) == 2
    assert all(one is other for one, other in zip(parts["b"], parts["c"], strict=True))
    assert not outbox._packed, "nothing of it is kept"
