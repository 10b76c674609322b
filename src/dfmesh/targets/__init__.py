"""Targets: the kinds of places where a federation runs."""

from __future__ import annotations

from dfmesh.config import FederationConfig
from dfmesh.errors import SessionError
from dfmesh.targets.protocol import FederationRunner

TARGETS = ("local", "inproc")
"""Names of the targets there are."""


def make_runner(target: str, config: FederationConfig, homesite: str) -> FederationRunner:
    """Make the runner of a target; it is not started yet.

    Args:
        target: One of `TARGETS`.
        config: The federation.
        homesite: Site to which the client talks.

    Raises:
        SessionError: there is no such target.
    """
    if target == "inproc":
        from dfmesh.targets.inproc import InprocFederationRunner

        return InprocFederationRunner(config, homesite)
    if target == "local":
        from dfmesh.targets.local.runner import LocalFederationRunner

        return LocalFederationRunner(config, homesite)
    raise SessionError(f"there is no target {target!r}; there is {', '.join(TARGETS)}")


__all__ = ["TARGETS", "FederationRunner", "make_runner"]
