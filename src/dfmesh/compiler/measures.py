"""Single measures of earlier runs: of an operation, a statement, an output, a link, a site."""

from __future__ import annotations

import msgspec

MEMORY = 256
"""Observations that an older mean counts for at most, so that it follows when things change."""


class Mean(msgspec.Struct, frozen=True, array_like=True):
    """A mean over observations, in which older ones fade.

    Attributes:
        value: The mean.
        count: How many observations there were in all.
    """

    value: float = 0.0
    count: int = 0

    def joined(self, newer: Mean) -> Mean:
        """Take in newer observations."""
        weight = min(self.count, MEMORY)
        together = weight + newer.count
        if not together:
            return self
        return Mean((self.value * weight + newer.value * newer.count) / together, self.count + newer.count)


class OperationMeasure(msgspec.Struct, frozen=True):
    """What calls of an operation at a site have cost.

    Attributes:
        operation: Name of the operation.
        provider: Provider in the site; None for the site's own interface.
        site: The site.
        seconds: Time of a call, once the adapter's libraries are loaded.
        first: Time of the first call at a freshly started site, which loads them.
        size: Bytes of a value.
        seen: Number of the fold that last added to it.
        variance: Square of how far the time of a call is from the mean of its run, on average.
    """

    operation: str
    provider: str | None
    site: str
    seconds: Mean = Mean()
    first: Mean = Mean()
    size: Mean = Mean()
    seen: int = 0
    variance: Mean = Mean()

    @property
    def key(self) -> tuple[str, str | None, str]:
        """What it is about."""
        return self.operation, self.provider, self.site

    @property
    def usual(self) -> Mean:
        """Time of a call; of the first one where there was no other."""
        return self.seconds if self.seconds.count else self.first

    @property
    def loading(self) -> float:
        """Seconds by which the first call is longer than others."""
        return max(0.0, self.first.value - self.usual.value)

    def joined(self, newer: OperationMeasure) -> OperationMeasure:
        """Take in newer observations."""
        return OperationMeasure(
            *self.key,
            self.seconds.joined(newer.seconds),
            self.first.joined(newer.first),
            self.size.joined(newer.size),
            max(self.seen, newer.seen),
            self.variance.joined(newer.variance),
        )


class StatementMeasure(msgspec.Struct, frozen=True):
    """How a loop, condition or look-up of a pipeline went.

    Attributes:
        pipeline: The pipeline, as `pipeline_key` names it.
        node: Id of the statement.
        name: What the statement is; an id that now means something else is not mistaken for it.
        counted: Iterations per loop; share of the conditions that were true, or of the keys that were found.
        seen: As in `OperationMeasure`.
    """

    pipeline: str
    node: str
    name: str
    counted: Mean = Mean()
    seen: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is about."""
        return self.pipeline, self.node, self.name

    def joined(self, newer: StatementMeasure) -> StatementMeasure:
        """Take in newer observations."""
        return StatementMeasure(*self.key, self.counted.joined(newer.counted), max(self.seen, newer.seen))


class SendMeasure(msgspec.Struct, frozen=True):
    """What an output of a statement of a pipeline takes when it is sent.

    Attributes:
        pipeline: As in `StatementMeasure`.
        node: Id of the statement.
        name: What the statement is.
        output: Output and selector, as `output_text` writes them.
        size: Bytes of a message with it.
        seen: As in `OperationMeasure`.
    """

    pipeline: str
    node: str
    name: str
    output: str
    size: Mean = Mean()
    seen: int = 0

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is about."""
        return self.pipeline, self.node, self.name, self.output

    def joined(self, newer: SendMeasure) -> SendMeasure:
        """Take in newer observations."""
        return SendMeasure(*self.key, self.size.joined(newer.size), max(self.seen, newer.seen))


class LinkMeasure(msgspec.Struct, frozen=True):
    """How fast one site sends to another.

    Attributes:
        source: Sending site.
        destination: Receiving site.
        latency: Seconds per value whatever its size.
        bandwidth: Bytes per second.
        seen: As in `OperationMeasure`.
    """

    source: str
    destination: str
    latency: Mean = Mean()
    bandwidth: Mean = Mean()
    seen: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """What it is about."""
        return self.source, self.destination

    def joined(self, newer: LinkMeasure) -> LinkMeasure:
        """Take in newer observations."""
        return LinkMeasure(
            *self.key,
            self.latency.joined(newer.latency),
            self.bandwidth.joined(newer.bandwidth),
            max(self.seen, newer.seen),
        )


class SiteMeasure(msgspec.Struct, frozen=True):
    """How busy a site is besides its calls.

    Attributes:
        site: The site.
        lag: Seconds until the site has time for what has come or has been computed.
        seen: As in `OperationMeasure`.
    """

    site: str
    lag: Mean = Mean()
    seen: int = 0

    @property
    def key(self) -> str:
        """What it is about."""
        return self.site

    def joined(self, newer: SiteMeasure) -> SiteMeasure:
        """Take in newer observations."""
        return SiteMeasure(self.site, self.lag.joined(newer.lag), max(self.seen, newer.seen))


__all__ = ["LinkMeasure", "Mean", "OperationMeasure", "SendMeasure", "SiteMeasure", "StatementMeasure"]
