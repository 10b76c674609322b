"""All adapters of one site, loaded when first used."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from dfmesh.config import (
    AdapterSpec,
    ConstructorCall,
    FederationConfig,
    FromProvider,
    FromSecrets,
    FromSite,
    ProviderConfig,
    SiteConfig,
    interface_of,
)
from dfmesh.engine.adapters.adapter import Adapter
from dfmesh.engine.adapters.binding import Binding
from dfmesh.engine.adapters.calling import AdapterKind, Signature, awaiting, find_kind
from dfmesh.engine.adapters.context import (
    Provider,
    ProviderWithOwnObject,
    Site,
    SiteContext,
    SiteWithOwnObject,
    Vault,
)
from dfmesh.engine.adapters.errors import AdapterArgumentError, AdapterLoadError
from dfmesh.engine.adapters.hidden_secrets import HIDDEN_SECRETS
from dfmesh.engine.adapters.loading import guarded, load_object
from dfmesh.engine.adapters.raised import OwnCode
from dfmesh.engine.adapters.secrets import SecretsVault
from dfmesh.errors import DfmeshError, SourceLocation

P = TypeVar("P", bound=Provider)


class SiteAdapters:
    """The adapters, providers, secrets and own objects of one site.

    Nothing is imported before it is needed, so that a heavy or broken package harms only those who call it. Each
    adapter class is made once per provider and constructor arguments, and serves all jobs. May be used from several
    threads.

    Attributes:
        own_code: Tells the owners' code from that of libraries.
    """

    def __init__(self, config: FederationConfig, site: str) -> None:
        """Prepare for a site.

        Args:
            config: The federation.
            site: Name of the site.

        Raises:
            AdapterLoadError: If the federation has no such site.
        """
        found = config.sites.get(site)
        if found is None:
            raise AdapterLoadError("", f"{config.path} has no site {site!r}; it has {', '.join(config.sites)}")
        self._config: FederationConfig = config
        self._site_config: SiteConfig = found
        self.own_code = OwnCode(config, site)
        self._lock = threading.RLock()
        self._adapters: dict[tuple[str, str | None], Adapter] = {}
        self._instances: dict[tuple[str | None, str, str], Any] = {}
        self._providers: dict[str, Provider] = {}
        self._interfaces: dict[str, str] = {}
        self._parameters: dict[tuple[str, str | None], frozenset[str]] = {}
        self._site: Site | None = None
        self._vault: Vault | None = None

    @property
    def config(self) -> FederationConfig:
        """The federation, as this site knows it."""
        return self._config

    @property
    def site_name(self) -> str:
        """Name of the site."""
        return self._site_config.name

    @property
    def accepts_pickle(self) -> bool:
        """Whether the site's owner lets its adapters take pickled objects."""
        return self._site_config.accepts_pickle

    def offers(self, operation: str, provider: str | None = None) -> bool:
        """Whether the site's configuration offers an operation; nothing is loaded for that.

        Args:
            operation: Name of the operation.
            provider: Provider of the site; None for its own interface.
        """
        return operation in (self._site_config.adapters_of(provider) or {})

    def is_idempotent(self, operation: str, provider: str | None = None) -> bool:
        """Whether the site's owner says that an operation it offers may be run again; arguments as in `offers`."""
        spec = (self._site_config.adapters_of(provider) or {}).get(operation)
        return spec is not None and spec.idempotent

    def isolated(self, operation: str, provider: str | None = None) -> AdapterSpec | None:
        """Give the adapter's entry in the federation file if its calls are to run in processes of their own, else None.

        Args:
            operation: Name of the operation.
            provider: Provider of the site; None for its own interface.
        """
        spec = (self._site_config.adapters_of(provider) or {}).get(operation)
        return spec if spec is not None and spec.isolation == "process" else None

    def interface(self, operation: str) -> str:
        """Give the text of the `OperationInterface` of an operation as this site's configuration has it.

        Args:
            operation: Name of an operation of the federation.
        """
        text = self._interfaces.get(operation)
        if text is None:
            text = self._interfaces[operation] = interface_of(self._config.operations[operation]).to_text()
        return text

    def parameters(self, operation: str, provider: str | None = None) -> frozenset[str]:
        """Give the names of the parameters of an operation that the site offers; here it may have more than elsewhere.

        Args:
            operation: Name of the operation.
            provider: Provider of the site; None for its own interface.
        """
        names = self._parameters.get((operation, provider))
        if names is None:
            exposed = (self._site_config.adapters_of(provider) or {})[operation].exposed
            every = (*self._config.operations[operation].parameters, *exposed)
            names = self._parameters[operation, provider] = frozenset(parameter.name for parameter in every)
        return names

    @property
    def capacity(self) -> int | None:
        """How many operations the site can run at the same time; None if its owner does not say."""
        return self._site_config.capacity

    def loaded(self, operation: str, provider: str | None = None) -> Adapter | None:
        """Give the adapter of an operation if it has been loaded, else None; the arguments are as in `find`."""
        return self._adapters.get((operation, provider))

    def find(self, operation: str, provider: str | None = None) -> Adapter:
        """Give the adapter of an operation, loaded if this is the first use.

        Args:
            operation: Name of the operation.
            provider: Provider of the site; None for its own interface.

        Raises:
            AdapterLoadError: If the site does not offer it or it cannot be loaded.
        """
        adapter = self._adapters.get((operation, provider))
        if adapter is not None:
            return adapter
        with self._lock:
            if (operation, provider) not in self._adapters:
                self._adapters[operation, provider] = self._load(operation, provider)
            return self._adapters[operation, provider]

    def import_modules(self, operations: Iterable[tuple[str, str | None]]) -> None:
        """Import what adapters are named by in the federation file, without making anything of them.

        One that cannot be imported is passed over; whoever calls it will be told.

        Args:
            operations: Names of operations, each with the provider.
        """
        for operation, provider in operations:
            spec = (self._site_config.adapters_of(provider) or {}).get(operation)
            if spec is not None:
                with suppress(AdapterLoadError):
                    load_object(spec.path, self._config.directory, spec.location)

    def _load(self, operation: str, provider: str | None) -> Adapter:
        try:
            spec = self._config.adapter(self._site_config.name, operation, provider)
        except DfmeshError as error:
            raise AdapterLoadError("", str(error)) from None
        found = load_object(spec.path, self._config.directory, spec.location)
        parameters = self._config.operations[operation].parameters
        target, call = self._callable(found, spec, provider)
        kind, certain = find_kind(call, spec.is_async)
        signature = Signature(call)
        called = awaiting(call) if kind is AdapterKind.COROUTINE and not certain else call
        binding = Binding(spec, parameters, called, signature, self._fetch)
        return Adapter(spec, kind, target, call, binding)

    # -- what is called

    def _callable(self, found: Any, spec: AdapterSpec, provider: str | None) -> tuple[Any, Callable[..., Any]]:
        """The site's object and what to call of it: `body`, or the object itself."""
        if inspect.isclass(found):
            found = self._instance(found, spec, provider)
            body = getattr(found, "body", found)
        elif hasattr(found, "body") and not inspect.isroutine(found):
            body = found.body
        else:
            return found, self._function(found, spec, provider)
        if not callable(body):
            raise AdapterLoadError(spec.path, "it has no method 'body'", spec.location)
        return found, body

    def _instance(self, cls: type, spec: AdapterSpec, provider: str | None) -> Any:
        key = (provider, spec.path, json.dumps(spec.constructor_args, sort_keys=True))
        if key not in self._instances:
            call = ConstructorCall(spec.path, spec.constructor_args, spec.location)
            self._instances[key] = self._construct(cls, call, self._surroundings(cls, provider, spec.constructor_args))
        return self._instances[key]

    def _function(self, found: Any, spec: AdapterSpec, provider: str | None) -> Callable[..., Any]:
        """A plain function, with constructor arguments and, if it asks for them, `site` and `provider` given."""
        if not callable(found):
            reason = f"it is of type {type(found).__name__}; an adapter is a function or a class with 'body'"
            raise AdapterLoadError(spec.path, reason, spec.location)
        mapped = {*(spec.arguments or ()), *spec.constructor_args}
        given = {**self._surroundings(found, provider, mapped), **spec.constructor_args}
        return partial(found, **given) if given else found

    def _surroundings(self, call: Callable[..., Any], provider: str | None, given: Any) -> dict[str, Any]:
        """`site` and `provider`, as far as a callable names them and they are not given otherwise."""
        wanted = [name for name in Signature(call).names if name in ("site", "provider") and name not in given]
        values: dict[str, Any] = {}
        if "site" in wanted:
            values["site"] = self.site
        if "provider" in wanted:
            values["provider"] = None if provider is None else self.provider(provider)
        return values

    def _construct(self, cls: Callable[..., Any], call: ConstructorCall, surroundings: Mapping[str, Any]) -> Any:
        return guarded(call.path, call.location, "making it failed", lambda: cls(**surroundings, **call.args))

    # -- site, providers, secrets

    @property
    def site(self) -> Site:
        """The site as its adapters see it.

        Raises:
            AdapterLoadError: If the site's own class cannot be loaded.
        """
        with self._lock:
            if self._site is None:
                self._site = self._make_site()
            return self._site

    def _make_site(self) -> Site:
        config, federation = self._site_config, self._config
        context = SiteContext(
            this_site=config.name,
            federation_name=federation.name,
            api_version=federation.api_version,
            directory=federation.directory,
            info=config.info,
            open_vault=self._open_vault,
        )
        facts: dict[str, Any] = {
            "dfm_context": context,
            "cache_config": config.cache_config,
            "secrets_vault_config": config.secrets_vault,
        }
        impl = config.impl
        if impl is None:
            return Site(**facts)
        found = load_object(impl.path, federation.directory, impl.location)
        if inspect.isclass(found) and issubclass(found, Site):
            made: Site = self._construct(found, impl, facts)
            return made
        site = SiteWithOwnObject(**facts)
        site.own_object = self._construct(found, impl, {"site": site} if "site" in Signature(found).names else {})
        return site

    def provider(self, name: str) -> Provider:
        """Give a provider of the site as its adapters see it.

        Args:
            name: Name of the provider.

        Raises:
            AdapterLoadError: If there is none, or its own class cannot be loaded.
        """
        with self._lock:
            if name not in self._providers:
                config = self._site_config.providers.get(name)
                if config is None:
                    raise AdapterLoadError("", f"site {self._site_config.name!r} has no provider {name!r}")
                self._providers[name] = self._make_provider(config)
            return self._providers[name]

    def _make_provider(self, config: ProviderConfig) -> Provider:
        impl = config.impl
        if impl is None:
            return _introduced(Provider, config, site=self.site)
        found = load_object(impl.path, self._config.directory, impl.location)
        if inspect.isclass(found) and issubclass(found, Provider):
            made: Provider = self._construct(partial(_introduced, found, config), impl, {"site": self.site})
            return made
        provider = _introduced(ProviderWithOwnObject, config, site=self.site)
        wanted = {"site": self.site} if "site" in Signature(found).names else {}
        provider.own_object = self._construct(found, impl, wanted)
        return provider

    def _open_vault(self) -> Vault:
        with self._lock:
            if self._vault is None:
                config = self._site_config.secrets_vault
                args = dict(config.args)
                if config.path is None:
                    self._vault = SecretsVault(**args)
                else:
                    call = ConstructorCall(config.path, args, self._vault_location())
                    self._vault = self._construct(self.vault_class(config.path), call, {})
            return self._vault

    def _vault_location(self) -> SourceLocation:
        return self._site_config.secrets_vault.location or SourceLocation(str(self._config.path), 1)

    def vault_class(self, path: str) -> Any:
        """Load the class of the site's own vault; none is opened.

        Args:
            path: Its dotted path.

        Raises:
            AdapterLoadError: If it cannot be loaded, or has no `secret_for_key`.
        """
        location = self._vault_location()
        found = load_object(path, self._config.directory, location)
        if inspect.isclass(found) and not hasattr(found, "secret_for_key"):
            raise AdapterLoadError(path, "it has no method `secret_for_key(key)`", location)
        return found

    def _fetch(self, source: FromSecrets | FromProvider | FromSite) -> Callable[[], Any]:
        """A function that gives the current value of a secret or property."""
        if isinstance(source, FromSecrets):
            return partial(self._secret, source.key)
        if isinstance(source, FromSite):
            return partial(_property, lambda: self.site, source.property)
        return partial(_property, partial(self.provider, source.provider), source.property)

    def _secret(self, key: str) -> str:
        secret = self.site.secret_for_key(key)
        HIDDEN_SECRETS.remember(secret)
        return secret


def _introduced(cls: type[P], config: ProviderConfig, **keywords: Any) -> P:
    """Make a provider that knows its name and properties already in its constructor."""
    provider = cls.__new__(cls, **keywords) if cls.__new__ is not object.__new__ else cls.__new__(cls)
    provider.name = config.name
    provider.info = config.info
    provider.__init__(**keywords)  # type: ignore[misc]
    return provider


def _property(owner: Callable[[], Any], name: str) -> Any:
    found = owner()
    try:
        return getattr(found, name)
    except AttributeError as error:
        raise AdapterArgumentError(f"{type(found).__name__} {found.name!r}: {error}") from error
