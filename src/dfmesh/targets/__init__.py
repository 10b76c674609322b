"""Targets: the kinds of places where a federation runs."""

from __future__ import annotations

from dfmesh.config import FederationConfig
from dfmesh.errors import SessionError
from dfmesh.targets.protocol import DirectRunner, FederationRunner, HostingRunner, OnOutput

TARGETS = ("local", "inproc", "up")
"""Names of the targets there are."""


def make_runner(
    target: str, config: FederationConfig, homesite: str, on_output: OnOutput | None = None
) -> FederationRunner:
    """Make the runner of a target; it is not started yet.

    Args:
        target: One of `TARGETS`; `up:NAME` for a host that was given a name.
        config: The federation.
        homesite: Site to which the client talks.
        on_output: Gets what processes of sites print; None if nobody wants it. In target `up` the host keeps it.

    Raises:
        SessionError: there is no such target.
    """
    if is_hosted(target):
        return make_hosting_runner(target, config, homesite)
    if target == "inproc":
        from dfmesh.targets.inproc import InprocFederationRunner

        return InprocFederationRunner(config, homesite)
    if target == "local":
        from dfmesh.targets.local.runner import LocalFederationRunner

        return LocalFederationRunner(config, homesite, on_output=on_output)
    raise SessionError(f"there is no target {target!r}; there is {', '.join(TARGETS)}")


def is_hosted(target: str) -> bool:
    """Whether jobs of a target outlive their client."""
    return target.partition(":")[0] == "up"


def make_hosting_runner(target: str, config: FederationConfig, homesite: str | None) -> HostingRunner:
    """Make the runner of a target whose jobs outlive their client; it is not started yet.

    Args:
        target: `up`, or `up:NAME`.
        config: The federation.
        homesite: Site to which the client wants to talk; None for the one that the host has.
    """
    from dfmesh.targets.up.runner import UpFederationRunner

    return UpFederationRunner(config, target.partition(":")[2] or None, homesite=homesite)


__all__ = [
    "TARGETS",
    "DirectRunner",
    "FederationRunner",
    "HostingRunner",
    "OnOutput",
    "is_hosted",
    "make_hosting_runner",
    "make_runner",
]
