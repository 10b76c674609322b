"""Federation files (`*.dfm.yaml`): sites, operations, adapters."""

from dfmesh.config.federation import FederationConfig
from dfmesh.config.model import (
    AdapterSpec,
    ArgumentSource,
    CacheConfig,
    ComputeCost,
    Constant,
    ConstructorCall,
    FromParameter,
    FromProvider,
    FromSecrets,
    FromSite,
    OperationSpec,
    ProviderConfig,
    ResidencyRule,
    SecretsVaultConfig,
    SendCost,
    SiteConfig,
)
from dfmesh.config.namespace import Operations
from dfmesh.config.operation_interface import interface_of

__all__ = [
    "AdapterSpec",
    "ArgumentSource",
    "CacheConfig",
    "ComputeCost",
    "Constant",
    "ConstructorCall",
    "FederationConfig",
    "FromParameter",
    "FromProvider",
    "FromSecrets",
    "FromSite",
    "OperationSpec",
    "Operations",
    "ProviderConfig",
    "ResidencyRule",
    "SecretsVaultConfig",
    "SendCost",
    "SiteConfig",
    "interface_of",
]
