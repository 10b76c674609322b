"""Which sites can run an operation."""

from __future__ import annotations

from dfmesh.api import BestOf, Operation, Reduce, TryFromCache
from dfmesh.config import FederationConfig
from dfmesh.values import PickledObject


def candidates(statement: Operation | Reduce, federation: FederationConfig) -> tuple[str, ...]:
    """Give the sites that offer an operation, take its arguments, and that the user allows, in declared order."""
    name = operation_name(statement.operation, federation)
    offering = federation.offers(name, statement.provider, allowed_sites(statement))
    own = {parameter.name for parameter in federation.operations[name].parameters}
    extra = set(statement.arguments) - own
    pickled = has_pickled(statement)
    return tuple(
        site
        for site in offering
        if (not extra or extra <= exposed(statement, federation, site))
        and (not pickled or federation.sites[site].accepts_pickle)
    )


def has_pickled(statement: Operation | Reduce) -> bool:
    """Tell whether an argument is a pickled object, which only some sites take."""
    return any(type(value) is PickledObject for value in statement.arguments.values())


def allowed_sites(statement: Operation | Reduce) -> list[str] | None:
    """Give the sites that the user names; None for any."""
    if isinstance(statement.site, str):
        return [statement.site]
    listed = statement.site.sites if isinstance(statement.site, BestOf) else None
    return None if listed is None else list(listed)


def operation_name(name: str, federation: FederationConfig) -> str:
    """Give the federation's own name of an operation.

    A document that DFM wrote may have more before it (package, site): the name is that of the one operation with
    which it ends.

    Args:
        name: As it stands in the pipeline.
        federation: Its operations.

    Returns:
        Name of an operation of the federation, or the name as it was if it is none, or not clear.
    """
    if name in federation.operations:
        return name
    found = [known for known in federation.operations if name.endswith(f".{known}")]
    return found[0] if len(found) == 1 else name


def exposed(statement: Operation | Reduce, federation: FederationConfig, site: str) -> set[str]:
    """Name the parameters that a site's adapter takes besides those of the operation."""
    adapter = federation.adapter(site, operation_name(statement.operation, federation), statement.provider)
    return {parameter.name for parameter in adapter.exposed}


def cache_sites(statement: TryFromCache, federation: FederationConfig) -> tuple[str, ...] | None:
    """Give the sites whose cache may be used, in declared order; None for any."""
    if isinstance(statement.site, str):
        return (statement.site,)
    listed = statement.site.sites
    return None if listed is None else tuple(site for site in federation.sites if site in listed)
