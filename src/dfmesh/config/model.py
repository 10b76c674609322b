"""What a federation file says, as frozen data: operations, sites, providers, adapters, costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dfmesh.errors import SourceLocation

if TYPE_CHECKING:
    from dfmesh.api import Parameter


ISOLATIONS = ("none", "process")
"""Where the calls of an adapter may run: in the process of the site, or in processes of their own."""


class ComputeCost(msgspec.Struct, frozen=True):
    """What one call of an adapter costs, and how large its result is.

    Attributes:
        fixed_time: Seconds that a call takes whatever its input.
        compute_throughput: Bytes of input handled per second; None if the time does not depend on the input.
        fixed_size: Bytes of result whatever the input.
        output_factor: Bytes of result per byte of input, added to `fixed_size`.
        price_per_second: Money for a second of computing, in any one currency.
    """

    fixed_time: float = 0.0
    compute_throughput: float | None = None
    fixed_size: int = 0
    output_factor: float = 0.0
    price_per_second: float = 0.0


class SendCost(msgspec.Struct, frozen=True):
    """What it costs to send a value from one site to another.

    Attributes:
        fixed_time: Seconds per value whatever its size.
        bandwidth: Bytes per second; None if the time does not depend on the size.
        price_per_byte: Money for a byte sent, in the currency of the computing prices.
    """

    fixed_time: float = 0.0
    bandwidth: float | None = None
    price_per_byte: float = 0.0


class ResidencyRule(msgspec.Struct, frozen=True):
    """To which sites results may go.

    Attributes:
        sites: Names of sites; the site that makes a result always may have it.
        location: Where the rule stands in the federation file.
    """

    sites: tuple[str, ...]
    location: SourceLocation


class FromParameter(msgspec.Struct, frozen=True):
    """An adapter argument that is a parameter of the operation."""

    parameter: str


class Constant(msgspec.Struct, frozen=True):
    """An adapter argument that the site's owner has fixed."""

    value: Any
    exposed_as: str | None = None


class FromSecrets(msgspec.Struct, frozen=True):
    """An adapter argument that comes from the site's secrets vault."""

    key: str
    exposed_as: str | None = None


class FromProvider(msgspec.Struct, frozen=True):
    """An adapter argument that is a property of one of the site's providers."""

    provider: str
    property: str
    exposed_as: str | None = None


class FromSite(msgspec.Struct, frozen=True):
    """An adapter argument that is a property of the site."""

    property: str
    exposed_as: str | None = None


ArgumentSource = FromParameter | Constant | FromSecrets | FromProvider | FromSite


class ConstructorCall(msgspec.Struct, frozen=True):
    """A Python object to be made at a site: dotted path of its class, keyword arguments of its constructor."""

    path: str
    args: dict[str, Any]
    location: SourceLocation


class AdapterSpec(msgspec.Struct, frozen=True):
    """How one site (or one provider of it) carries out one operation.

    Attributes:
        operation: Name of the operation, such as `weather.Bin`.
        path: Dotted path of the adapter's class or function.
        constructor_args: Keyword arguments of the class's constructor.
        arguments: Where each keyword of the adapter comes from; None if each operation parameter is
            handed over under its own name.
        compute_cost: What a call costs; None if the file does not say.
        is_async: What the file says about `is-async`; None if nothing. The adapter itself decides.
        returns: What the adapter returns, as text; None if the file does not say.
        exposed: Optional parameters that the operation has only here.
        description: What the site's owner says about this adapter.
        location: Where the adapter stands in the federation file.
        residency: To which sites its results may go; None if the site's own rule holds.
        idempotent: Whether running it again with the same arguments gives the same and does no harm.
        isolation: One of `ISOLATIONS`: whether its calls run in the site's own process or in others.
        concurrency: Calls of it that may compute at the same time at this site; None if the owner does not say.
    """

    operation: str
    path: str
    constructor_args: dict[str, Any]
    arguments: dict[str, ArgumentSource] | None
    compute_cost: ComputeCost | None
    is_async: bool | None
    returns: str | None
    exposed: tuple[Parameter, ...]
    description: str
    location: SourceLocation
    residency: ResidencyRule | None = None
    idempotent: bool = False
    isolation: str = "none"
    concurrency: int | None = None


class OperationSpec(msgspec.Struct, frozen=True):
    """The public signature of an operation.

    Attributes:
        name: Dotted name, such as `weather.Bin`.
        parameters: In declared order.
        returns: What it returns, as text; None if the file does not say.
        description: What it does; empty if the file does not say.
        location: Where it stands in the federation file.
        idempotent: Whether all adapters of it are that do not say otherwise.
        version: What its owner calls this version of it; None if the file does not say.
    """

    name: str
    parameters: tuple[Parameter, ...]
    returns: str | None
    description: str
    location: SourceLocation
    idempotent: bool = False
    version: str | None = None


class CacheConfig(msgspec.Struct, frozen=True):
    """Where a site keeps cached values.

    Attributes:
        protocol: Protocol of an fsspec file system, such as `file`, `memory` or `s3`.
        storage_options: Keyword arguments of that file system.
        base_path: Directory in it; None for the user's own cache directory.
    """

    protocol: str = "file"
    storage_options: Mapping[str, Any] = msgspec.field(default_factory=dict)
    base_path: str | None = None


class SecretsVaultConfig(msgspec.Struct, frozen=True):
    """Which vault a site reads its secrets from.

    Attributes:
        path: Dotted path of the vault's class; None for environment variables.
        args: Keyword arguments of its constructor.
        location: Where it stands in the federation file; None if it does not.
    """

    path: str | None = None
    args: Mapping[str, Any] = msgspec.field(default_factory=dict)
    location: SourceLocation | None = None


class ProviderConfig(msgspec.Struct, frozen=True):
    """A named group of adapters in a site, with the properties and the object they share."""

    name: str
    info: dict[str, Any]
    impl: ConstructorCall | None
    interface: dict[str, AdapterSpec]
    location: SourceLocation


class SiteConfig(msgspec.Struct, frozen=True):
    """One owner's part of the federation.

    Attributes:
        name: Name of the site.
        info: Properties that the owner wrote down; adapters see them as attributes of `site`.
        impl: The owner's own site class; None if there is none.
        interface: Adapters that the site offers without a provider, by operation name.
        providers: Its providers by name.
        cache_config: Where it caches.
        secrets_vault: Where its secrets are.
        send_cost: Cost of sending to other sites, by their name.
        location: Where it stands in the federation file.
        capacity: Calls that may compute at the same time there, whatever the adapter; None if the owner does not say.
        residency: To which sites the results of its adapters may go; None if to all.
        accepts_pickle: Whether its adapters take pickled objects, which may run any code of whoever made them.
        python: Interpreter that runs it on target `local`, a path or a name; None for that of the client.
    """

    name: str
    info: dict[str, Any]
    impl: ConstructorCall | None
    interface: dict[str, AdapterSpec]
    providers: dict[str, ProviderConfig]
    cache_config: CacheConfig
    secrets_vault: SecretsVaultConfig
    send_cost: dict[str, SendCost]
    location: SourceLocation
    capacity: int | None = None
    residency: ResidencyRule | None = None
    accepts_pickle: bool = False
    python: str | None = None

    def adapters_of(self, provider: str | None) -> dict[str, AdapterSpec] | None:
        """The adapters of a provider, or of the site itself; None if there is no such provider."""
        if provider is None:
            return self.interface
        found = self.providers.get(provider)
        return None if found is None else found.interface
