"""Which site offers which operation, as people see it."""

from __future__ import annotations

from dfmesh.config import FederationConfig

_MOST_COLUMNS = 8


def offers(federation: FederationConfig) -> tuple[list[str], list[list[str]]]:
    """Give a table: a row per operation, a column per site, or all sites in one column where they are many.

    A cell says how a site offers an operation: itself (✓), by providers (their names), or not at all.

    Args:
        federation: The federation.

    Returns:
        Titles and rows.
    """
    sites = list(federation.sites)
    cells = {operation: [_offer(federation, site, operation) for site in sites] for operation in federation.operations}
    if len(sites) <= _MOST_COLUMNS:
        return ["operation", *sites], [[operation, *offered] for operation, offered in cells.items()]
    listed = {
        operation: [
            site if cell == "✓" else f"{site} ({cell})" for site, cell in zip(sites, offered, strict=True) if cell
        ]
        for operation, offered in cells.items()
    }
    return ["operation", "sites"], [[operation, ", ".join(named)] for operation, named in listed.items()]


def _offer(federation: FederationConfig, site: str, operation: str) -> str:
    found = federation.sites[site]
    providers = [name for name, provider in found.providers.items() if operation in provider.interface]
    return ", ".join((["✓"] if operation in found.interface else []) + providers)


__all__ = ["offers"]
