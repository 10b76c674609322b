"""What if a link, a site or an operation were different: a federation and its measured costs with figures changed.

Nothing of it is kept. A figure that is changed counts as measured, since measured ones count most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec.structs

from dfmesh.api import did_you_mean
from dfmesh.compiler.costs import DEFAULT_SIZE, link_cost
from dfmesh.compiler.measured import MeasuredCosts
from dfmesh.compiler.measures import LinkMeasure, Mean, OperationMeasure
from dfmesh.compiler.quantity_text import count_text
from dfmesh.config import AdapterSpec, FederationConfig, SiteConfig
from dfmesh.errors import Fault, PipelineError

ALL = "*"
"""Stands for all sites."""

MOST_LINKS = 100_000
"""Links that one change may be about."""

_HINT = (
    "write SITE.to.SITE.bandwidth or .latency, SITE.capacity, SITE.copies, OPERATION.seconds or .size, "
    "SITE.OPERATION.seconds or .concurrency; * stands for all sites"
)


@dataclass(frozen=True)
class WhatIf:
    """A federation that is not there.

    Attributes:
        config: Its sites.
        measured: What would have been measured in it.
        changes: What is different, for people.
    """

    config: FederationConfig
    measured: MeasuredCosts
    changes: tuple[str, ...]


def what_if(config: FederationConfig, measured: MeasuredCosts, changes: Mapping[str, float | str]) -> WhatIf:
    """Change figures of a federation.

    Args:
        config: The federation as it is.
        measured: What was measured in it.
        changes: New figures by what they are about. A number is the figure itself, `"x10"` ten times what it is:
            measured, else declared, else assumed.

            * `a.to.b.bandwidth` (bytes per second), `a.to.b.latency` (seconds); `*` in place of a site: all sites;
            * `a.capacity`: calls at a time;
            * `a.copies`: how many more sites like it there are, named `a-2`, `a-3`, ...; what may run at any site may
              run there, and links to and from them are like its own. Rules of residency that name sites do not name
              them;
            * `weather.Bin.seconds`, `a.weather.Bin.seconds`: time of a call, everywhere or at a site;
            * `weather.Bin.size`: bytes of its value;
            * `a.weather.Bin.concurrency`: calls at a time of one adapter.

    Raises:
        PipelineError: changes that cannot be read, or are about what is not there; all of them are listed.
    """
    changing = _Changing(config, measured)
    faults: list[Fault] = []
    said: list[str] = []
    for key in sorted(changes, key=lambda key: not key.endswith(".copies")):  # Copies first: others may name them.
        try:
            about = changing.change(key, _figure(key, changes[key]))
        except ValueError as error:
            message, *hint = error.args
            faults.append(Fault(f"{key}={changes[key]}: {message}", hint=hint[0] if hint else ""))
        else:
            said.append(f"{key} {'' if str(changes[key]).startswith('x') else '= '}{changes[key]} ({about})")
    if faults:
        raise PipelineError("what is changed does not fit the federation", faults)
    return WhatIf(changing.config, changing.measured(), tuple(said))


_Figure = Callable[[float], float]
"""Gives the new figure for the present one."""


def _figure(key: str, value: float | str) -> _Figure:
    text = str(value)
    try:
        number = float(text.removeprefix("x"))
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise ValueError("this is no figure", f"write a number, such as {key}=2.5, or a factor, such as {key}=x10")
    return (lambda present: present * number) if text.startswith("x") else (lambda present: number)


class _Changing:
    def __init__(self, config: FederationConfig, measured: MeasuredCosts) -> None:
        self.config = config
        self._before = measured
        self._operations = dict(measured.operations)
        self._sends = dict(measured.sends)
        self._links = dict(measured.links)
        self._sites = dict(measured.sites)

    def measured(self) -> MeasuredCosts:
        before = self._before
        return MeasuredCosts(
            self._operations.values(),
            before.statements.values(),
            self._sends.values(),
            self._links.values(),
            self._sites.values(),
            before.folds,
        )

    def change(self, key: str, figure: _Figure) -> str:
        """Change one thing; gives what it is about, such as `2 links`."""
        what, _, figures = key.rpartition(".")
        source, way, destination = what.partition(".to.")
        match figures:
            case "bandwidth" | "latency" if way:
                return self._change_links(source, destination, figures, figure)
            case "capacity":
                return self._change_capacity(what, figure)
            case "copies":
                return self._copy(what, _whole(figure(0.0), "copies"))
            case "seconds":
                return self._change_calls(what, self._change_seconds, figure)
            case "concurrency":
                return self._change_calls(what, self._change_concurrency, figure)
            case "size":
                return self._change_size(what, figure)
        raise ValueError("there is no such figure", _HINT)

    # Links

    def _change_links(self, source: str, destination: str, which: str, figure: _Figure) -> str:
        sources, destinations = self._named(source), self._named(destination)
        if len(sources) * len(destinations) > MOST_LINKS:
            raise ValueError(f"that would be more than {MOST_LINKS:,} links", "name a site")
        links = [(one, other) for one in sources for other in destinations if one != other]
        measured = self.measured()
        for link in links:
            latency, per_byte = link_cost(self.config, measured, *link)
            known = self._links.get(link) or LinkMeasure(*link)
            if which == "latency":
                self._links[link] = msgspec.structs.replace(known, latency=Mean(figure(latency), 1))
            else:
                bandwidth = figure(1 / per_byte if per_byte else math.inf)
                if not bandwidth:
                    raise ValueError("nothing would ever arrive", "give bytes per second, more than 0")
                self._links[link] = msgspec.structs.replace(known, bandwidth=Mean(bandwidth, 1))
        return count_text(len(links), "link")

    def _named(self, site: str) -> list[str]:
        if site == ALL:
            return list(self.config.sites)
        self._site(site)
        return [site]

    # Sites

    def _site(self, name: str) -> SiteConfig:
        if name not in self.config.sites:
            raise ValueError(f"the federation has no site {name!r}", did_you_mean(name, list(self.config.sites)))
        return self.config.sites[name]

    def _set_sites(self, sites: Mapping[str, SiteConfig]) -> None:
        self.config = replace(self.config, sites={**self.config.sites, **sites})

    def _change_capacity(self, what: str, figure: _Figure) -> str:
        changed = {}
        for name in self._named(what):
            site = self._site(name)
            capacity = figure(math.nan if site.capacity is None else site.capacity)
            if math.isnan(capacity):
                if what == ALL:
                    continue
                raise ValueError(f"{name} has no limit that could be multiplied", "give a number of calls at a time")
            changed[name] = msgspec.structs.replace(site, capacity=_whole(capacity, "calls at a time"))
        self._set_sites(changed)
        return count_text(len(changed), "site")

    def _copy(self, name: str, count: int) -> str:
        original = self._site(name)
        names: list[str] = []
        number = 2
        while len(names) < count:
            if f"{name}-{number}" not in self.config.sites:
                names.append(f"{name}-{number}")
            number += 1
        copies = {copy: msgspec.structs.replace(original, name=copy) for copy in names}
        others = {
            site.name: msgspec.structs.replace(
                site, send_cost={**site.send_cost, **dict.fromkeys(names, site.send_cost[name])}
            )
            for site in self.config.sites.values()
            if name in site.send_cost
        }
        self._set_sites({**others, **copies})
        for copy in names:
            self._copy_measures(name, copy)
        return ", ".join(names)

    def _copy_measures(self, name: str, copy: str) -> None:
        for operation in [record for record in self._operations.values() if record.site == name]:
            same = msgspec.structs.replace(operation, site=copy)
            self._operations[same.key] = same
        for link in [record for record in self._links.values() if name in record.key]:
            ends = [copy if end == name else end for end in link.key]
            moved = msgspec.structs.replace(link, source=ends[0], destination=ends[1])
            self._links[moved.key] = moved
        if name in self._sites:
            self._sites[copy] = msgspec.structs.replace(self._sites[name], site=copy)

    # Operations

    def _change_calls(
        self, what: str, change: Callable[[SiteConfig, str | None, AdapterSpec, _Figure], None], figure: _Figure
    ) -> str:
        site, operation = ALL, what
        before, _, after = what.partition(".")
        if what not in self.config.operations and (
            before in (ALL, *self.config.sites) or after in self.config.operations
        ):
            site, operation = before, after
            self._named(site)
        self._check_operation(operation)
        adapters = [found for found in self._adapters(operation) if site in (ALL, found[0])]
        if not adapters:
            raise ValueError(f"site {site!r} does not offer {operation!r}", self._offered(operation))
        for name, provider, adapter in adapters:
            change(self._site(name), provider, adapter, figure)
        return count_text(len({name for name, _, _ in adapters}), "site")

    def _check_operation(self, operation: str) -> None:
        if operation not in self.config.operations:
            hint = did_you_mean(operation, list(self.config.operations))
            raise ValueError(f"the federation has no operation {operation!r}", hint)

    def _offered(self, operation: str) -> str:
        return f"it is offered by {', '.join(dict.fromkeys(name for name, _, _ in self._adapters(operation)))}"

    def _adapters(self, operation: str) -> Iterator[tuple[str, str | None, AdapterSpec]]:
        for site in list(self.config.sites.values()):
            for provider in (None, *site.providers):
                adapter = (site.adapters_of(provider) or {}).get(operation)
                if adapter is not None:
                    yield site.name, provider, adapter

    def _change_seconds(self, site: SiteConfig, provider: str | None, adapter: AdapterSpec, figure: _Figure) -> None:
        known = self._record(adapter.operation, provider, site.name)
        cost = adapter.compute_cost
        if not known.usual.count and cost is not None and cost.compute_throughput and figure(1.0) != figure(2.0):
            # What depends on the size of the input is multiplied as a whole.
            factor = figure(1.0)
            throughput = cost.compute_throughput / factor if factor else None
            changed = msgspec.structs.replace(cost, fixed_time=cost.fixed_time * factor, compute_throughput=throughput)
            self._set_adapter(site, provider, msgspec.structs.replace(adapter, compute_cost=changed))
            return
        present = known.usual.value
        if not known.usual.count:
            offering = self.config.offers(adapter.operation, provider)
            elsewhere = self._before.elsewhere(adapter.operation, provider, offering)
            present = elsewhere if cost is None else cost.fixed_time
        seconds = figure(present)
        share = seconds / present if present else 1.0
        record = msgspec.structs.replace(
            known,
            seconds=Mean(seconds, 1),
            first=Mean(seconds + known.loading, known.first.count),
            variance=Mean(known.variance.value * share * share, known.variance.count),
        )
        self._operations[record.key] = record

    def _change_concurrency(
        self, site: SiteConfig, provider: str | None, adapter: AdapterSpec, figure: _Figure
    ) -> None:
        concurrency = figure(math.nan if adapter.concurrency is None else adapter.concurrency)
        if math.isnan(concurrency):
            raise ValueError("the adapter has no limit that could be multiplied", "give a number of calls at a time")
        limit = _whole(concurrency, "calls at a time")
        self._set_adapter(site, provider, msgspec.structs.replace(adapter, concurrency=limit))

    def _set_adapter(self, site: SiteConfig, provider: str | None, adapter: AdapterSpec) -> None:
        site = self.config.sites[site.name]
        if provider is None:
            changed = msgspec.structs.replace(site, interface={**site.interface, adapter.operation: adapter})
        else:
            own = site.providers[provider]
            own = msgspec.structs.replace(own, interface={**own.interface, adapter.operation: adapter})
            changed = msgspec.structs.replace(site, providers={**site.providers, provider: own})
        self._set_sites({site.name: changed})

    def _change_size(self, operation: str, figure: _Figure) -> str:
        self._check_operation(operation)
        adapters = list(self._adapters(operation))
        sites = dict.fromkeys(name for name, _, _ in adapters)
        for provider in dict.fromkeys(provider for _, provider, _ in adapters):
            present = self._before.size(operation, provider, sites)
            ours = [(name, adapter) for name, other, adapter in adapters if other == provider]
            if present is None:
                costs = [adapter.compute_cost for _, adapter in ours if adapter.compute_cost is not None]
                present = next((float(cost.fixed_size) for cost in costs if cost.fixed_size), DEFAULT_SIZE)
            for name, _ in ours:
                known = self._record(operation, provider, name)
                self._operations[known.key] = msgspec.structs.replace(known, size=Mean(figure(present), 1))
            self._scale_sends(operation, figure(present) / present if present else 1.0)
        return count_text(len(sites), "site")

    def _scale_sends(self, operation: str, factor: float) -> None:
        """What was measured of its messages grows with the value."""
        for key, send in self._sends.items():
            if send.name == operation:
                size = Mean(send.size.value * factor, send.size.count)
                self._sends[key] = msgspec.structs.replace(send, size=size)

    def _record(self, operation: str, provider: str | None, site: str) -> OperationMeasure:
        return self._operations.get((operation, provider, site)) or OperationMeasure(operation, provider, site)


def _whole(number: float, what: str) -> int:
    whole = round(number)
    if whole < 1:
        raise ValueError(f"{number:g} {what} are too few", "give a whole number from 1")
    return whole


__all__ = ["ALL", "WhatIf", "what_if"]
