"""What a user's script touches: federations, sessions, jobs, results."""

from dfmesh.session.dfm_job import STATUS_PLACE, DfmJob, ErrorToken, StopToken
from dfmesh.session.discovery_result import DiscoveryResult, NodeDiscovery
from dfmesh.session.federation import Federation
from dfmesh.session.host import Host
from dfmesh.session.hosted_jobs import JobSummary
from dfmesh.session.job import Job, JobProgress, JobStatus
from dfmesh.session.job_log import JobLog, LogLine
from dfmesh.session.prediction import Prediction
from dfmesh.session.results import ResultItem, Results
from dfmesh.session.session import Session, default_homesite
from dfmesh.session.simulation import SimulationResult, simulate

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
