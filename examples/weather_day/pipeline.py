"""The pipeline of the weather day: 24 maps from the reports of three services, none of which leaves its site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dfmesh import ForEach, Pipeline, PlaceParam, Yield

if TYPE_CHECKING:
    from dfmesh import Federation

SERVICES = ("us", "ca", "mx")


def build(fed: Federation, *, window: int = 4, with_bins: bool = False) -> Pipeline:
    """Write the pipeline.

    Args:
        fed: The federation of `weather.dfm.yaml`.
        window: How many hours are worked on at once.
        with_bins: Also give the merged bins, at the place `bins`; the tests compare them with pooled data.

    Returns:
        A pipeline with the parameter `day` and the places `frame` (PNG per hour) and `quality` (counts per service and
        hour).
    """
    weather = fed.ops.weather
    with Pipeline(name="weather-day") as pipeline:
        hours = weather.Hours(day=PlaceParam("day"), site="app")
        with ForEach(hours, window=window) as hour:
            parts = []
            for service in SERVICES:
                reports = weather.Read(hour=hour, site=service)
                checked = weather.QualityControl(reports=reports, site=service)
                parts.append(weather.Bin(reports=checked["reports"], site=service))
                Yield(checked["counts"], place="quality")
            grid = weather.Merge(parts=parts, site="app")
            temperature = weather.Analyse(grid=grid, variable="air_temperature", site="app")
            pressure = weather.Analyse(
                grid=grid, variable="air_pressure_at_mean_sea_level", radius=300, detail=170, reach=300, site="app"
            )
            Yield(weather.Render(temperature=temperature, pressure=pressure, hour=hour, site="app"), place="frame")
            if with_bins:
                Yield(grid, place="bins")
    return pipeline
