"""The receivers' own count of bytes, on the transport, agrees with what the job reports of its senders."""

from __future__ import annotations

import sys
from pathlib import Path

from dfmesh import Federation

EXAMPLE = Path(__file__).parents[2] / "examples" / "weather_day"

CONTROL = 4_000
"""Bytes per pair of sites that start and end a job: nets, frames, last reports. They are no part of the report."""


def test_the_transport_counts_what_the_report_says() -> None:
    sys.path.insert(0, str(EXAMPLE))
    try:
        from pipeline import build
    finally:
        sys.path.remove(str(EXAMPLE))
    federation = Federation.load(EXAMPLE / "weather.dfm.yaml")
    with federation.session() as session:
        connection = session._connection

        def received() -> dict[str, dict[str, int]]:
            return connection._loop.start(connection._runner.bytes_received()).result(60)  # type: ignore[attr-defined]

        before = received()
        job = session.submit(build(federation), {"day": "1995-03-18"})
        job.result(60)
        after = received()
        reports = job.progress().sites
    reported = {(site.site, peer): size for site in reports for peer, size in site.bytes_sent.items()}
    total = 0
    for receiver in federation.sites:
        for sender in federation.sites:
            if sender == receiver:
                continue
            counted = after[receiver].get(sender, 0) - before.get(receiver, {}).get(sender, 0)
            total += counted
            assert 0 <= counted - reported.get((sender, receiver), 0) <= CONTROL, (sender, receiver)
    assert 100_000 < total <= 250_000
