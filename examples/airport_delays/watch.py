"""Follows the delays while they are computed: `python watch.py`."""

from __future__ import annotations

from pathlib import Path

from pipeline import build

from dfmesh import Federation


def main() -> None:
    federation = Federation.load(Path(__file__).parent / "airports.dfm.yaml")
    with federation.session() as session:
        job = session.submit(build(federation))
        for item in job.results(ordered=False):
            if item.place == "means":
                for visibility, minutes in item.value.items():
                    print(f"{visibility}: {minutes:.2f} minutes late")
            else:
                flights = sum(count for count, _ in item.value.values())
                print(f"{item.place}, month {item.frame[-1] + 1}: {flights:,} flights")


if __name__ == "__main__":
    main()
