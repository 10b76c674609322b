"""The process that measures one contestant: `python -m measuring floor ORDERS`, or a module of `peers`.

It measures what `dfmesh bench` measures, in the same way, and task graphs besides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from granularity import granularity

from dfmesh.cli.bench import child


def main(systems: Mapping[str, Callable[[], Any]] | None = None) -> None:
    """Measure the contestant that the command line names; None for floor and dfmesh."""
    child.main(systems, {granularity.__name__: granularity})


if __name__ == "__main__":
    main()
