"""What adapters are told about where they run: their site and provider."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dfmesh.config import CacheConfig, SecretsVaultConfig
from dfmesh.config.federation_folder import federation_folder
from dfmesh.engine.adapters.hidden_secrets import HIDDEN_SECRETS
from dfmesh.engine.adapters.storage import StoragePath, storage_directory


class Vault(Protocol):
    """What has the secrets of a site."""

    def secret_for_key(self, key: str) -> str:
        """Give the secret of a name."""
        ...


@dataclass(frozen=True, slots=True)
class SiteContext:
    """Facts about a site that its federation file gives.

    Attributes:
        this_site: Name of the site.
        federation_name: Name of the federation.
        api_version: Version of the federation's interface.
        directory: Directory of the federation file.
        info: The site's properties.
        open_vault: Gives the site's vault.
    """

    this_site: str
    federation_name: str
    api_version: str
    directory: Path
    info: Mapping[str, Any]
    open_vault: Callable[[], Vault] = field(repr=False)


class Site:
    """The site in which an adapter runs; given to adapters as `site`.

    The properties that the federation file lists under `info` are attributes. A class of your own, named as the
    site's `impl`, may inherit from this one and add more.
    """

    def __init__(
        self, dfm_context: SiteContext, cache_config: CacheConfig, secrets_vault_config: SecretsVaultConfig
    ) -> None:
        """Keep what the federation file says; subclasses pass these three through.

        Args:
            dfm_context: Facts about the site.
            cache_config: Where it caches.
            secrets_vault_config: Which vault it has.
        """
        self.dfm_context = dfm_context
        self.cache_config = cache_config
        self.secrets_vault_config = secrets_vault_config

    @property
    def name(self) -> str:
        """Name of the site."""
        return self.dfm_context.this_site

    @property
    def federation_name(self) -> str:
        """Name of the federation."""
        return self.dfm_context.federation_name

    @property
    def api_version(self) -> str:
        """Version of the federation's interface; empty if its file does not say."""
        return self.dfm_context.api_version

    @property
    def directory(self) -> Path:
        """Directory of the federation file."""
        return self.dfm_context.directory

    @property
    def info(self) -> Mapping[str, Any]:
        """The site's properties as the federation file has them."""
        return self.dfm_context.info

    @property
    def site(self) -> Site:
        """The site itself."""
        return self

    def __getattr__(self, name: str) -> Any:
        context = self.__dict__.get("dfm_context")
        if context is not None and name in context.info:
            return context.info[name]
        raise AttributeError(f"the site has no property {name!r}", name=name, obj=self)

    def secret_for_key(self, key: str) -> str:
        """Give a secret of the site.

        Args:
            key: Its name in the vault.

        Raises:
            SecretError: If it is not there.
        """
        secret = self.dfm_context.open_vault().secret_for_key(key)
        HIDDEN_SECRETS.remember(secret)
        return secret

    def cache_storage(self, subpath: str | os.PathLike[str] | None = None) -> Path | StoragePath:
        """Give the directory in which the site caches, made if it is not there.

        Args:
            subpath: A directory in it.

        Returns:
            A `pathlib.Path` for local files, else something used like one.
        """
        config = self.cache_config
        local = config.protocol in ("file", "local")
        folder = f"{federation_folder(self.federation_name)}/{self.name}"
        base = config.base_path or (f"{_user_cache()}/{folder}" if local else f"/{folder}")
        if local:
            base = str(self.directory / Path(base).expanduser())
        path = f"{base.rstrip('/')}/{os.fspath(subpath)}" if subpath else base
        if local and not config.base_path:
            _close_to_others(Path(base))
        return storage_directory(config.protocol, config.storage_options, path)

    @contextmanager
    def telemetry_span(self, name: str, attributes: Mapping[str, Any] | None = None) -> Iterator[None]:
        """Mark a part of an adapter's work. dfmesh measures calls by itself; DFM adapters may use this."""
        yield None


def _user_cache() -> str:
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "dfmesh")


def _close_to_others(directory: Path) -> None:
    """Take the rights of others away from a directory of dfmesh's own that an older one made, if there is one."""
    with suppress(OSError):
        if directory.stat().st_mode & 0o077:
            directory.chmod(0o700)


class Provider:
    """A named group of adapters in a site; given to its adapters as `provider`.

    The properties that the federation file lists under `info` are attributes. A class of your own, named as the
    provider's `impl`, may inherit from this one and hold what its adapters share, such as a connection.
    """

    name: str = ""
    info: Mapping[str, Any] = {}

    def __init__(self, site: Site) -> None:
        """Keep the site.

        Args:
            site: The site that the provider belongs to.
        """
        self._site = site

    @property
    def site(self) -> Site:
        """The site that the provider belongs to."""
        return self._site

    def __getattr__(self, name: str) -> Any:
        info = self.__dict__.get("info", {})
        if name in info:
            return info[name]
        raise AttributeError(
            f"provider {self.__dict__.get('name', '')!r} has no property {name!r}", name=name, obj=self
        )


class SiteWithOwnObject(Site):
    """A site whose `impl` is no Site: adapters see the attributes of both, those of the object first."""

    own_object: Any = None

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("own_object")
        if own is not None and not name.startswith("__") and hasattr(own, name):
            return getattr(own, name)
        return super().__getattr__(name)


class ProviderWithOwnObject(Provider):
    """A provider whose `impl` is no Provider: adapters see the attributes of both."""

    own_object: Any = None

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("own_object")
        if own is not None and not name.startswith("__") and hasattr(own, name):
            return getattr(own, name)
        return super().__getattr__(name)
