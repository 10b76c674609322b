"""Targets: the kinds of places where a federation runs."""

from __future__ import annotations

from dfmesh.config import FederationConfig
from dfmesh.errors import SessionError
from dfmesh.targets.protocol import FederationRunner, OnOutput

TARGETS = ("local", "inproc")
"""Names of the targets there are."""


def make_runner(
    target: str, config: FederationConfig, homesite: str, on_output: OnOutput | None = None
) -> FederationRunner:
    """Make the runner of a target; it is not started yet.

    Args:
        target: One of `TARGETS`.
        config: The federation.
        homesite: Site to which the client talks.
        on_output: Gets what processes of sites print; None if nobody wants it.

    Raises:
        SessionError: there is no such target.
    """
    if target == "inproc":
        from dfmesh.targets.inproc import InprocFederationRunner

        return InprocFederationRunner(config, homesite)
    if target == "local":
        from dfmesh.targets.local.runner import LocalFederationRunner

        return LocalFederationRunner(config, homesite, on_output=on_output)
    raise SessionError(f"there is no target {target!r}; there is {', '.join(TARGETS)}")


__all__ = ["TARGETS", "FederationRunner", "OnOutput", "make_runner"]
