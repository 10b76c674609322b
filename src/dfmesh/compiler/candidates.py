"""Which sites can run an operation."""

from __future__ import annotations

from dfmesh.api import BestOf, Operation, Reduce
from dfmesh.config import FederationConfig


def candidates(statement: Operation | Reduce, federation: FederationConfig) -> tuple[str, ...]:
    """Give the sites that offer an operation, take its arguments, and that the user allows, in declared order."""
    offering = federation.offers(statement.operation, statement.provider)
    if isinstance(statement.site, str):
        allowed: list[str] | None = [statement.site]
    else:
        listed = statement.site.sites if isinstance(statement.site, BestOf) else None
        allowed = None if listed is None else list(listed)
    own = {parameter.name for parameter in federation.operations[statement.operation].parameters}
    extra = set(statement.arguments) - own
    return tuple(
        site
        for site in offering
        if (allowed is None or site in allowed) and extra <= exposed(statement, federation, site)
    )


def exposed(statement: Operation | Reduce, federation: FederationConfig, site: str) -> set[str]:
    """Name the parameters that a site's adapter takes besides those of the operation."""
    adapter = federation.adapter(site, statement.operation, statement.provider)
    return {parameter.name for parameter in adapter.exposed}
