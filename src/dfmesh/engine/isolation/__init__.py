"""Adapters whose calls run in processes of their own: `isolation: process` in the federation file."""

from dfmesh.engine.adapters.raised import RemoteRaised
from dfmesh.engine.isolation.remote_call import RemoteStream
from dfmesh.engine.isolation.worker_process import AdapterProcessError
from dfmesh.engine.isolation.worker_processes import WorkerProcesses

__all__ = ["AdapterProcessError", "RemoteRaised", "RemoteStream", "WorkerProcesses"]
