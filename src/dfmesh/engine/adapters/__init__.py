"""A site's own code: adapters, providers, site objects, secrets vaults."""

from dfmesh.engine.adapters.adapter import Adapter
from dfmesh.engine.adapters.calling import AdapterKind
from dfmesh.engine.adapters.context import Provider, Site, SiteContext, Vault
from dfmesh.engine.adapters.errors import AdapterArgumentError, AdapterLoadError, SecretError
from dfmesh.engine.adapters.present_call import CallStopped, ThisCall, this_call
from dfmesh.engine.adapters.raised import OwnCode, Raised, describe, describe_own
from dfmesh.engine.adapters.secrets import SecretsVault
from dfmesh.engine.adapters.site import SiteAdapters
from dfmesh.engine.adapters.storage import StoragePath

__all__ = [
    "Adapter",
    "AdapterArgumentError",
    "AdapterKind",
    "AdapterLoadError",
    "CallStopped",
    "OwnCode",
    "Provider",
    "Raised",
    "SecretError",
    "SecretsVault",
    "Site",
    "SiteAdapters",
    "SiteContext",
    "StoragePath",
    "ThisCall",
    "Vault",
    "describe",
    "describe_own",
    "this_call",
]
