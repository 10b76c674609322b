"""What a site objects to in the part of a job that it is asked to run."""

from __future__ import annotations

from collections.abc import Iterator

from dfmesh.engine.adapters import SiteAdapters
from dfmesh.engine.residency import residency_objections
from dfmesh.netir import Call, NetIR, Reduce, check_part
from dfmesh.netir.interface import interface_differences

_CALLS = (Call, Reduce)
"""Actions that call an adapter. (Made once: a union of the two would be made anew each time.)"""


MAX_FAULTS = 20
"""Faults of a net that are told."""


def objections(net: NetIR, site: str, homesite: str, adapters: SiteAdapters) -> list[str]:
    """Say why a site will not run a net; nothing is loaded for that.

    Args:
        net: What it is asked to run.
        site: Its name.
        homesite: Site whose jobs it takes part in.
        adapters: What it offers.
    """
    if net.site != site or net.homesite != homesite:
        return [f"the net is for site {net.site!r} with homesite {net.homesite!r}"]
    faults = check_part(net)
    if faults:
        return [f"cannot run its part of the plan: {fault.message}" for fault in faults[:MAX_FAULTS]]
    missing = [
        f"does not offer {_named(operation, provider)}"
        for operation, provider in net.operations()
        if not adapters.offers(operation, provider)
    ]
    if missing:
        return missing
    return (
        _other_interfaces(net, adapters)
        or residency_objections(net, adapters)
        or [
            f"does not say that {_named(operation, provider)} is idempotent, as the job takes it to be"
            for operation, provider in _repeatable(net)
            if not adapters.is_idempotent(operation, provider)
        ]
    )


def _other_interfaces(net: NetIR, adapters: SiteAdapters) -> list[str]:
    """Operations that mean something else to the client than to the site."""
    found = []
    for operation, _ in net.operations():
        stated = net.interfaces.get(operation)
        here = adapters.interface(operation)
        if stated is not None and stated != here:
            spec = adapters.config.operations[operation]
            differences = "; ".join(interface_differences(here, stated))
            found.append(
                f"offers {operation} otherwise than the pipeline was compiled against: {differences} ({spec.location})"
            )
    return list(dict.fromkeys(found)) or list(dict.fromkeys(_unknown_parameters(net, adapters)))


def _unknown_parameters(net: NetIR, adapters: SiteAdapters) -> Iterator[str]:
    for transition in net.transitions:
        action = transition.action
        if not isinstance(action, _CALLS):
            continue
        known = adapters.parameters(action.operation, action.provider)
        merged = (action.left, action.right) if isinstance(action, Reduce) else ()
        if not (known.issuperset(action.arguments) and known.issuperset(merged)):
            for name in sorted({*action.arguments, *merged} - known):
                operation = _named(action.operation, action.provider)
                yield f"has no parameter {name!r} of {operation}, which the pipeline gives"


def _repeatable(net: NetIR) -> dict[tuple[str, str | None], None]:
    actions = [transition.action for transition in net.transitions]
    return {
        (action.operation, action.provider): None
        for action in actions
        if isinstance(action, _CALLS) and action.idempotent
    }


def _named(operation: str, provider: str | None) -> str:
    return operation + (f" by provider {provider!r}" if provider else "")
