"""What earlier runs have measured: how long calls take, how large values are, how often loops go round.

Plain data and arithmetic; where it is kept is the session's affair.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any, Protocol, Self, TypeVar

import msgspec

from dfmesh.compiler.graph import Graph
from dfmesh.compiler.measures import (
    LinkMeasure,
    Mean,
    OperationMeasure,
    SendMeasure,
    SiteMeasure,
    StatementMeasure,
)
from dfmesh.netir import Port, Selector

MOST_RECORDS = 4096
"""Records of each kind that are kept; those that were not confirmed for longest are dropped first."""


class _Record(Protocol):
    @property
    def key(self) -> Any: ...

    @property
    def seen(self) -> int: ...

    def joined(self, newer: Self) -> Self: ...


_R = TypeVar("_R", bound=_Record)


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form in which measured costs are kept."""

    version: int
    folds: int
    operations: list[OperationMeasure] = []
    statements: list[StatementMeasure] = []
    sends: list[SendMeasure] = []
    links: list[LinkMeasure] = []
    sites: list[SiteMeasure] = []


class MeasuredCosts:
    """All that was measured in one federation. Not to be changed; `joined` and `without` give new ones.

    Attributes:
        folds: How often something was added.
        operations: By operation, provider and site.
        statements: By pipeline, statement and its name.
        sends: By pipeline, statement, its name and output.
        links: By source and destination.
        sites: By name.
    """

    def __init__(
        self,
        operations: Iterable[OperationMeasure] = (),
        statements: Iterable[StatementMeasure] = (),
        sends: Iterable[SendMeasure] = (),
        links: Iterable[LinkMeasure] = (),
        sites: Iterable[SiteMeasure] = (),
        folds: int = 0,
    ) -> None:
        """Take records; of two about the same the later one counts.

        Args:
            operations: What calls cost.
            statements: How loops, conditions and look-ups went.
            sends: What outputs take when they are sent.
            links: How fast sites send.
            sites: How busy they are besides.
            folds: How often something was added.
        """
        self.folds = folds
        self.operations = {record.key: record for record in operations}
        self.statements = {record.key: record for record in statements}
        self.sends = {record.key: record for record in sends}
        self.links = {record.key: record for record in links}
        self.sites = {record.key: record for record in sites}

    def __bool__(self) -> bool:
        return bool(self.operations or self.statements or self.sends or self.links or self.sites)

    # What the compiler asks

    def seconds(self, operation: str, provider: str | None, site: str) -> float | None:
        """Seconds of a call at a site; None if none was measured there.

        Where there never was a second call, the first one, however much of it was loading, is the best guess.
        """
        record = self.operations.get((operation, provider, site))
        return None if record is None or not record.usual.count else record.usual.value

    def spread(self, operation: str, provider: str | None, site: str) -> float:
        """Standard deviation of the seconds of calls at a site; 0 if that was not measured."""
        record = self.operations.get((operation, provider, site))
        return math.sqrt(record.variance.value) if record is not None and record.seconds.count else 0.0

    def elsewhere(self, operation: str, provider: str | None, sites: Iterable[str]) -> float:
        """Seconds of a call over those of some sites where it was measured; 0 if it was nowhere."""
        mean = Mean()
        for site in sites:
            record = self.operations.get((operation, provider, site))
            if record is not None:
                mean = mean.joined(record.usual)
        return mean.value

    def loading(self, operation: str, provider: str | None, site: str) -> float:
        """Seconds that the first call at a freshly started site takes longer."""
        record = self.operations.get((operation, provider, site))
        return 0.0 if record is None else record.loading

    def size(self, operation: str, provider: str | None, sites: Iterable[str]) -> float | None:
        """Bytes of a value, over some sites; None if none was measured there."""
        mean = Mean()
        for site in sites:
            record = self.operations.get((operation, provider, site))
            if record is not None:
                mean = mean.joined(record.size)
        return mean.value if mean.count else None

    def counted(self, pipeline: str, node: str, name: str) -> float | None:
        """Iterations of a loop, or the share of a condition or look-up; None if it was not measured."""
        record = self.statements.get((pipeline, node, name))
        return record.counted.value if record is not None and record.counted.count else None

    def sent(self, pipeline: str, node: str, name: str, output: str) -> float | None:
        """Bytes of a message with an output; None if it was not measured."""
        record = self.sends.get((pipeline, node, name, output))
        return record.size.value if record is not None and record.size.count else None

    def latency(self, source: str, destination: str) -> float | None:
        """Seconds per value between two sites; None if that was not measured."""
        record = self.links.get((source, destination))
        return record.latency.value if record is not None and record.latency.count else None

    def bandwidth(self, source: str, destination: str) -> float | None:
        """Bytes per second between two sites; None if that was not measured."""
        record = self.links.get((source, destination))
        return record.bandwidth.value if record is not None and record.bandwidth.count else None

    def lag(self, site: str) -> float:
        """Seconds until a site has time for what has come or was computed; 0 if that was not measured."""
        return self.sites[site].lag.value if site in self.sites else 0.0

    # Changing

    def joined(self, newer: MeasuredCosts) -> MeasuredCosts:
        """Take in what was measured later."""
        fold = self.folds + max(newer.folds, 1)
        return MeasuredCosts(
            _joined(self.operations, newer.operations, fold),
            _joined(self.statements, newer.statements, fold),
            _joined(self.sends, newer.sends, fold),
            _joined(self.links, newer.links, fold),
            _joined(self.sites, newer.sites, fold),
            fold,
        )

    def without(self, operation: str) -> MeasuredCosts:
        """Forget what is known of an operation, in all pipelines."""
        return MeasuredCosts(
            (record for record in self.operations.values() if record.operation != operation),
            self.statements.values(),
            (record for record in self.sends.values() if record.name != operation),
            self.links.values(),
            self.sites.values(),
            self.folds,
        )

    # Keeping

    def to_json(self) -> bytes:
        """Encode; equal costs give equal bytes."""
        document = _Document(
            _VERSION,
            self.folds,
            [self.operations[key] for key in sorted(self.operations, key=str)],
            [self.statements[key] for key in sorted(self.statements)],
            [self.sends[key] for key in sorted(self.sends)],
            [self.links[key] for key in sorted(self.links)],
            [self.sites[key] for key in sorted(self.sites)],
        )
        return msgspec.json.format(msgspec.json.encode(document), indent=1)

    @classmethod
    def from_json(cls, data: bytes) -> MeasuredCosts:
        """Decode what `to_json` made.

        Raises:
            ValueError: it is something else, or damaged.
        """
        document = msgspec.json.decode(data, type=_Document)
        if document.version != _VERSION:
            raise ValueError(f"it has version {document.version}, and {_VERSION} is the one known here")
        return cls(
            document.operations, document.statements, document.sends, document.links, document.sites, document.folds
        )


_VERSION = 1

NOTHING_MEASURED = MeasuredCosts()


def _joined(older: dict[Any, _R], newer: dict[Any, _R], fold: int) -> list[_R]:
    together = dict(older)
    for key, record in newer.items():
        record = msgspec.structs.replace(record, seen=fold)  # type: ignore[type-var]
        together[key] = older[key].joined(record) if key in older else record
    kept = sorted(together, key=lambda key: together[key].seen, reverse=True)[:MOST_RECORDS]
    return [together[key] for key in kept]


def pipeline_key(name: str | None, graph: Graph) -> str:
    """Name a pipeline in the records: by its own name, else by what it is made of.

    Args:
        name: Its name; None or empty if it has none.
        graph: The pipeline, lowered.
    """
    if name:
        return name
    shape = [(node.node, node.name, node.scope) for node in graph.nodes]
    return f"#{hashlib.sha256(msgspec.json.encode(shape)).hexdigest()[:16]}"


RESULT = "result"
"""Output of a Yield in the records: what goes to the homesite."""


def output_text(port: Port, selector: Selector) -> str:
    """Name an output of a statement in the records."""
    return f"{port.value}{''.join(map(str, selector))}"
