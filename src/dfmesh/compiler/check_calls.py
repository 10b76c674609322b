"""What can be wrong with the call of an operation: its name, its sites, its arguments, its options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dfmesh.api import (
    NO_DEFAULT,
    Advise,
    BestOf,
    ForEach,
    NodeRef,
    Operation,
    Parameter,
    PlaceParam,
    Reduce,
    Statement,
    did_you_mean,
    find_references,
    likeliest,
)
from dfmesh.compiler.candidates import allowed_sites, candidates, exposed, has_pickled, operation_name
from dfmesh.compiler.check_options import at_most, is_int, is_number, shown
from dfmesh.compiler.fits import part_fit
from dfmesh.compiler.layout import Layout
from dfmesh.compiler.report import Report
from dfmesh.config import FederationConfig
from dfmesh.config.fitting import Fit, fit_of, kind_fit
from dfmesh.netir import Port

MOST_ELEMENTS = 10_000
"""Elements of a constant sequence that are checked before the run; the site checks all."""


class CallChecker:
    """Checks calls against what a federation offers."""

    def __init__(
        self,
        federation: FederationConfig,
        report: Report,
        layout: Layout,
        *,
        discovery: bool = False,
    ) -> None:
        """Prepare.

        Args:
            federation: What it offers.
            report: Takes the faults.
            layout: The statements of the pipeline.
            discovery: As in `validate`.
        """
        self.federation = federation
        self.discovery = discovery
        self.fault = report.fault
        self._layout = layout
        self._fits: dict[int, tuple[Parameter, Fit | None]] = {}

    def check(self, statement: Operation | Reduce) -> None:
        """Check everything that does not depend on other statements."""
        name = operation_name(statement.operation, self.federation)
        if name not in self.federation.operations:
            hint = did_you_mean(name, list(self.federation.operations))
            self.fault(statement, f"the federation has no operation {name!r}", hint)
            return
        self._check_options(statement, name)
        if not self._check_sites(statement, name):
            return
        named = self._check_arguments(statement, name)
        if not named or self.discovery or candidates(statement, self.federation):
            return
        offering = self._offering(statement, name)
        if has_pickled(statement) and not any(self.federation.sites[site].accepts_pickle for site in offering):
            what = f"{name} is given a PickledObject, which is not taken by {' or '.join(offering)}"
            self.fault(statement, what, "their owners could set accepts_pickle: true, and trust whoever calls")
            return
        extra = sorted(self._extra_arguments(statement, name))
        what = f"no site takes all of {', '.join(extra)} for {name}"
        self.fault(statement, what, "; ".join(self._who_takes(statement, name)))

    def _check_options(self, statement: Operation | Reduce, name: str) -> None:
        retries: Any = statement.retries
        timeout: Any = statement.timeout
        if not is_int(retries) or retries < 0:
            self.fault(
                statement, f"{name}: retries={shown(retries)}", f"give a whole number, 0 or more{at_most(retries)}"
            )
        if timeout is not None and not (is_number(timeout) and timeout > 0):
            self.fault(statement, f"{name}: timeout={shown(timeout)}", "give seconds above 0, or None")

    # Sites

    def _check_sites(self, statement: Operation | Reduce, name: str) -> bool:
        """Check where the call may run; False if nothing more can be said about it."""
        if isinstance(statement.site, Advise):
            if self.discovery:
                return True
            self.fault(statement, f"{name}: site=Advise() is for session.discover(...)", "name a site, or use BestOf()")
            return False
        if not self.check_site_option(statement, statement.site, name):
            return False
        provider: Any = statement.provider
        if not isinstance(provider, str | None):
            self.fault(statement, f"{name}: provider={provider!r}", "give the name of a provider")
            return False
        allowed = allowed_sites(statement)
        if self.discovery or self.federation.offers(name, statement.provider, allowed):
            return True
        offering = self.federation.offers(name, statement.provider)
        where = f"provider {statement.provider!r} of " if statement.provider else ""
        which = "any site" if allowed is None else " or ".join(map(repr, allowed))
        hint = f"it is offered by {', '.join(offering)}" if offering else self._other_interfaces(name)
        self.fault(statement, f"{name} is not offered by {where}{which}", hint)
        return False

    def check_site_option(self, statement: Statement, site: Any, name: str) -> bool:
        """Check that `site=` names sites of the federation."""
        if isinstance(site, list | tuple):
            self.fault(
                statement,
                f"{name}: site={site!r} is a list",
                f"to let the compiler choose, write site=BestOf({list(site)!r})",
            )
            return False
        if not isinstance(site, str | BestOf):
            self.fault(statement, f"{name}: site={site!r}", "give a site's name, or BestOf([...])")
            return False
        sites: Any = site.sites if isinstance(site, BestOf) else [site]
        if sites is None:
            return True
        if isinstance(sites, str) or not all(isinstance(one, str) for one in sites):
            self.fault(statement, f"{name}: site={site!r}", f"give a list of names: BestOf([{sites!r}])")
            return False
        unknown = [one for one in sites if one not in self.federation.sites]
        for one in unknown:
            hint = did_you_mean(one, list(self.federation.sites))
            self.fault(statement, f"the federation has no site {one!r}", hint)
        if not sites:
            self.fault(statement, f"{name}: BestOf([]) leaves no site", "name sites, or write BestOf() for any")
        return bool(sites) and not unknown

    def _other_interfaces(self, name: str) -> str:
        found = [
            f"{site.name} (provider={provider.name!r})" if provider else f"{site.name} (without a provider)"
            for site in self.federation.sites.values()
            for provider in [None, *site.providers.values()]
            if name in (provider or site).interface
        ]
        return f"it is offered by {', '.join(found)}" if found else "no site offers it"

    # Arguments

    def _check_arguments(self, statement: Operation | Reduce, name: str) -> bool:
        """Check names and types of the arguments; False if a name is unknown."""
        parameters = {parameter.name: parameter for parameter in self.federation.operations[name].parameters}
        given = set(statement.arguments)
        if isinstance(statement, Reduce):
            folded = self._folded(statement, name, list(parameters))
            if folded is None:
                return False
            given |= folded
        known = {extra for site in self._offering(statement, name) for extra in self._exposed(statement, site)}
        unknown = sorted(given - parameters.keys() - known)
        meant = set()
        for extra in unknown:
            takers = [site for site in self.federation.sites if self._takes(site, statement, name, extra)]
            if takers:
                at = ", ".join(self._offering(statement, name))
                self.fault(statement, f"{name} has no parameter {extra!r} at {at}", f"{', '.join(takers)} has it")
                continue
            names = [*parameters, *sorted(known)]
            meant.add(likeliest(extra, names))
            hint = did_you_mean(extra, names) if names else "it has no parameters"
            self.fault(statement, f"{name} has no parameter {extra!r}", hint)
        for parameter in parameters.values():
            if parameter.required and parameter.name not in given | meant:
                hint = _description(parameter) or f"give {parameter.name}=..."
                self.fault(statement, f"{name} needs the parameter {parameter.name!r}", hint)
        self._check_types(statement, name, parameters)
        return not unknown

    def _folded(self, statement: Reduce, name: str, names: list[str]) -> set[str] | None:
        """Give the parameters that take the values that are folded; None if there are none."""
        folded = names[:2]
        if len(folded) < 2:
            hint = "give an operation whose first two parameters are the value so far and the next one"
            self.fault(statement, f"{name} has fewer than two parameters and cannot reduce", hint)
            return None
        for twice in [parameter for parameter in folded if parameter in statement.arguments]:
            hint = f"its first two parameters, {' and '.join(folded)}, are the values that are folded"
            self.fault(statement, f"{name} is given {twice!r} twice", hint)
        return set(folded)

    def _check_types(self, statement: Operation | Reduce, name: str, parameters: dict[str, Parameter]) -> None:
        for key, value in statement.arguments.items():
            own = parameters.get(key)
            several = [own] if own is not None else self._exposed_parameters(statement, name, key)
            # Sites may expose a parameter in different ways; it is a fault if it fits none of them.
            found = [(one, self._mismatch(value, one)) for one in several]
            if found and all(mismatch for _, mismatch in found):
                parameter, mismatch = found[0]
                self.fault(statement, f"{name}: {mismatch}", _description(parameter))

    def _mismatch(self, value: Any, parameter: Parameter) -> str:
        """Say what is wrong with an argument as far as its value is known; empty if nothing is."""
        fit = self._fit(parameter)
        if fit is None or isinstance(value, Advise):
            return ""
        key = parameter.name
        if isinstance(value, PlaceParam):
            mismatch = "" if value.default is NO_DEFAULT else part_fit(fit, value.select).judge(value.default)
            return f"the default of parameter {value.place!r}, taken for {key!r}, {mismatch}" if mismatch else ""
        if isinstance(value, NodeRef):
            part = part_fit(fit, value.select)
            mismatch = "" if value.port is not Port.ELEMENT else self._misfit_in_loop(value, part)
            return f"{key} {mismatch}" if mismatch else ""
        if next(find_references(value), None) is not None:
            fit = kind_fit(parameter.schema, type(value))
        mismatch = "" if fit is None else fit.judge(value)
        return f"{key} {mismatch}" if mismatch else ""

    def _misfit_in_loop(self, element: NodeRef, fit: Fit) -> str:
        """Say which element of a loop does not fit, if what it iterates is known."""
        loop = self._layout.known.get(element.node)
        sequence = loop.seq if isinstance(loop, ForEach) else None
        named = ""
        if isinstance(sequence, PlaceParam) and not sequence.select:
            named, sequence = f" of the default of parameter {sequence.place!r}", sequence.default
        if isinstance(sequence, dict):
            sequence = list(sequence.items())
        if not isinstance(sequence, list | tuple | range):
            return ""
        for index, item in enumerate(sequence[:MOST_ELEMENTS]):
            if type(item) in fit.quick or next(find_references(item), None) is not None:
                continue
            if mismatch := fit.judge(item):
                return f"{mismatch} (element {index}{named} of the loop)"
        return ""

    def _fit(self, parameter: Parameter) -> Fit | None:
        # The parameter is kept with what is known of it, so that no other gets its identity.
        known = self._fits.get(id(parameter))
        if known is None:
            known = self._fits[id(parameter)] = (parameter, fit_of(parameter))
        return known[1]

    def _exposed_parameters(self, statement: Operation | Reduce, name: str, key: str) -> list[Parameter]:
        sites = self._offering(statement, name)
        adapters = [self.federation.adapter(site, name, statement.provider) for site in sites]
        return [parameter for adapter in adapters for parameter in adapter.exposed if parameter.name == key]

    def _offering(self, statement: Operation | Reduce, name: str) -> list[str]:
        return self.federation.offers(name, statement.provider, allowed_sites(statement))

    def _exposed(self, statement: Operation | Reduce, site: str) -> set[str]:
        return exposed(statement, self.federation, site)

    def _takes(self, site: str, statement: Operation | Reduce, name: str, extra: str) -> bool:
        offered = self.federation.offers(name, statement.provider)
        return site in offered and extra in self._exposed(statement, site)

    def _extra_arguments(self, statement: Operation | Reduce, name: str) -> set[str]:
        return set(statement.arguments) - {parameter.name for parameter in self.federation.operations[name].parameters}

    def _who_takes(self, statement: Operation | Reduce, name: str) -> Iterator[str]:
        extra = self._extra_arguments(statement, name)
        for site in self._offering(statement, name):
            taken = sorted(extra & self._exposed(statement, site))
            if taken:
                yield f"{site} takes {', '.join(taken)}"


def _description(parameter: Parameter) -> str:
    return " ".join(parameter.description.split())
