"""The engine: runs NetIRs at sites. Pure state machines inside, asyncio around them."""

from dfmesh.engine.call_log import CallLog, NoCallLog
from dfmesh.engine.carrier import Carrier
from dfmesh.engine.job_runner import CLIENT_PREFIX, SUPERVISOR, JobRunner
from dfmesh.engine.net_runner import NetRunner
from dfmesh.engine.site_loss import lost_failures

__all__ = ["CLIENT_PREFIX", "SUPERVISOR", "CallLog", "Carrier", "JobRunner", "NetRunner", "NoCallLog", "lost_failures"]
