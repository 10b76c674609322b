"""How late do flights leave when one cannot see far? Asked of the flights and the weather of three airports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dfmesh import ForEach, Pipeline, Yield

if TYPE_CHECKING:
    from dfmesh import Federation

AIRPORTS = ("ewr", "jfk", "lga")


def build(federation: Federation) -> Pipeline:
    """Write the pipeline; its places are the airports, with the delays month by month, and `means`."""
    air = federation.ops.air
    with Pipeline(name="airport-delays") as pipeline:
        years = []
        for airport in AIRPORTS:
            weather = air.Weather(site=airport)
            with ForEach(air.Flights(site=airport), window=2) as flights:
                month = air.Delays(flights=flights, weather=weather, site=airport)
                Yield(month, place=airport)
            years.append(flights.reduce(air.Add, month))
        ewr, jfk, lga = years
        Yield(air.Means(delays=air.Add(left=air.Add(left=ewr, right=jfk), right=lga)), place="means")
    return pipeline
