"""How fast a site was while one of its jobs ran: its connections, and its event loop."""

from __future__ import annotations

from collections.abc import Callable

from dfmesh.engine.carrier import Carrier, saturation
from dfmesh.engine.message_parts import SpeedReport


class SiteSpeed:
    """What has been measured since it was made."""

    def __init__(self, carrier: Carrier, lag: Callable[[], tuple[int, float]]) -> None:
        """Begin to measure.

        Args:
            carrier: Whose connections.
            lag: As in `SiteServices`.
        """
        self._carrier = carrier
        self._saturated_before = saturation(carrier)
        self._lag = lag
        self._lag_before = lag()

    def connections(self) -> tuple[SpeedReport, ...]:
        """Give the speed of each connection, as far as that showed."""
        saturated = saturation(self._carrier)
        if not saturated:
            return ()
        speeds = []
        for peer, (size, seconds) in saturated.items():
            size_before, seconds_before = self._saturated_before.get(peer, (0, 0.0))
            if seconds > seconds_before:
                speeds.append(SpeedReport(peer, size - size_before, seconds - seconds_before))
        return tuple(speeds)

    def mean_lag(self) -> float:
        """Give the seconds that the result of a call waited on average for the event loop."""
        (results, seconds), (results_before, seconds_before) = self._lag(), self._lag_before
        return (seconds - seconds_before) / (results - results_before) if results > results_before else 0.0
