"""What a session, or a federation without one, compiles pipelines with: the homesite and the measured costs."""

from __future__ import annotations

from collections.abc import Iterable

from dfmesh.api import Pipeline, did_you_mean
from dfmesh.compiler import CompiledPipeline, Objective, ObjectiveName, compile_pipeline
from dfmesh.config import FederationConfig
from dfmesh.errors import SessionError
from dfmesh.session.cost_store import CostStore
from dfmesh.session.given_arguments import refuse, sites_problem


def default_homesite(federation: FederationConfig) -> str:
    """Choose where a client attaches if it does not say: `info.homesite`, else `app`, else the first site."""
    named = federation.info.get("homesite")
    if isinstance(named, str):
        return named
    return "app" if "app" in federation.sites else next(iter(federation.sites), "")


def chosen_homesite(federation: FederationConfig, wanted: str | None) -> str:
    """Give the site where a client attaches.

    Args:
        federation: The federation.
        wanted: What the user says; None for the default.

    Raises:
        SessionError: there is no such site.
    """
    homesite = wanted or default_homesite(federation)
    if homesite not in federation.sites:
        hint = did_you_mean(homesite, list(federation.sites))
        raise SessionError(f"{federation.path} has no site {homesite!r} to be the homesite: {hint}")
    return homesite


def compile_with(
    costs: CostStore | None,
    pipeline: Pipeline,
    federation: FederationConfig,
    homesite: str,
    *,
    restrict_to_sites: Iterable[str] | None = None,
    objective: ObjectiveName = "time",
) -> CompiledPipeline:
    """Compile a pipeline by what earlier jobs have cost.

    Args:
        costs: What they have cost; None to go by what the federation file declares.
        pipeline: What the user wrote.
        federation: The federation.
        homesite: Where the client attaches.
        restrict_to_sites: Sites that may take part, besides the homesite; None for all.
        objective: What the sites are chosen for.

    Raises:
        PipelineError: the pipeline has faults; all of them are listed.
        TypeError: `restrict_to_sites` is no list of names.
    """
    refuse(sites_problem(restrict_to_sites, "restrict_to_sites"))
    return compile_pipeline(
        pipeline,
        federation,
        homesite,
        restrict_to_sites=restrict_to_sites,
        measured=None if costs is None else costs.costs(),
        objective=Objective(objective),
    )


__all__ = ["chosen_homesite", "compile_with", "default_homesite"]
