"""What a user's script touches: federations, sessions, jobs, results."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dfmesh.session.compiling import default_homesite
from dfmesh.session.dfm_job import STATUS_PLACE, DfmJob, ErrorToken, StopToken
from dfmesh.session.federation import Federation
from dfmesh.session.host import Host
from dfmesh.session.hosted_jobs import JobSummary
from dfmesh.session.job import Job, JobProgress, JobStatus
from dfmesh.session.job_log import JobLog, LogLine
from dfmesh.session.results import ResultItem, Results
from dfmesh.session.session import Session

if TYPE_CHECKING:
    from dfmesh.session.discovery_result import DiscoveryResult, NodeDiscovery
    from dfmesh.session.prediction import Prediction
    from dfmesh.session.simulation import SimulationResult, simulate

_LATE = {
    "DiscoveryResult": "discovery_result",
    "NodeDiscovery": "discovery_result",
    "Prediction": "prediction",
    "SimulationResult": "simulation",
    "simulate": "simulation",
}
"""Names that few scripts use, with their modules, which would delay all others."""

__all__ = [
    "STATUS_PLACE",
    "DfmJob",
    "DiscoveryResult",
    "ErrorToken",
    "Federation",
    "Host",
    "Job",
    "JobLog",
    "JobProgress",
    "JobStatus",
    "JobSummary",
    "LogLine",
    "NodeDiscovery",
    "Prediction",
    "ResultItem",
    "Results",
    "Session",
    "SimulationResult",
    "StopToken",
    "default_homesite",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Load a name that few use when it is first used."""
    module = _LATE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
