"""The `sites` section."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dfmesh.config.arguments import Properties, Surroundings
from dfmesh.config.documents import Item, location_of
from dfmesh.config.interface import InterfaceReader, dotted_path, read_constructor, read_residency
from dfmesh.config.misplaced import put_back
from dfmesh.config.model import (
    AdapterSpec,
    CacheConfig,
    OperationSpec,
    ProviderConfig,
    SecretsVaultConfig,
    SendCost,
    SiteConfig,
)
from dfmesh.config.operations import optional_text
from dfmesh.config.reader import Reader

SITE_PROPERTIES = ("name", "federation_name", "api_version", "info", "directory")
"""Properties that every site has."""
PROVIDER_PROPERTIES = ("name", "info", "site")
"""Properties that every provider has."""

_NAME = re.compile(r"[\w-]+")
_SITE_NAME = re.compile(r"[\w-]+(\.[\w-]+)*")
_SITE_KEYS = dict.fromkeys(
    (
        "info",
        "impl",
        "interface",
        "providers",
        "cache_config",
        "secrets_vault",
        "send_cost",
        "capacity",
        "residency",
        "accepts_pickle",
        "python",
    ),
    False,
)
_PROVIDER_KEYS = dict.fromkeys(("info", "impl", "interface"), False)
_CACHE_KEYS = dict.fromkeys(("protocol", "storage_options", "base_path"), False)
_VAULT_KEYS = dict.fromkeys(("path", "args"), False)
_SEND_COST_KEYS = dict.fromkeys(("fixed_time", "bandwidth", "price_per_byte"), False)


class SitesReader:
    """Reads sites with their providers."""

    def __init__(self, reader: Reader, interfaces: InterfaceReader, operations: Mapping[str, OperationSpec]) -> None:
        self._reader = reader
        self._interfaces = interfaces
        self._operations = operations

    def read(self, item: Item) -> dict[str, SiteConfig]:
        """Read the `sites` section.

        Args:
            item: Where it stands.

        Returns:
            Sites by name, in declared order.
        """
        entries = put_back(self._reader.entries(item) or {}, _SITE_KEYS, "site", self._reader)
        for name, entry in entries.items():
            self._check_name(entry, "site", name, _SITE_NAME)
        return {name: self._site(name, entry, list(entries)) for name, entry in entries.items()}

    def _check_name(self, entry: Item, what: str, name: str, pattern: re.Pattern[str]) -> None:
        if not pattern.fullmatch(name):
            hint = "use letters, digits, - and _"
            self._reader.fault(entry, f"{name!r} is no name for a {what}", hint, at=entry.key)

    def _site(self, name: str, entry: Item, site_names: list[str]) -> SiteConfig:
        reader = self._reader
        fields = reader.fields(entry, _SITE_KEYS, "a site") or {}
        info = reader.mapping_data(fields["info"]) if "info" in fields else {}
        impl = read_constructor(fields["impl"], reader) if _is_given(fields, "impl") else None
        providers = self._provider_fields(fields.get("providers"))
        surroundings = Surroundings(
            self._operations,
            Properties((*SITE_PROPERTIES, *info), _is_given(fields, "impl")),
            {provider: self._provider_properties(found) for provider, (_, found) in providers.items()},
            site_names,
        )
        return SiteConfig(
            name=name,
            info=info,
            impl=impl,
            interface=self._interface(fields, surroundings),
            providers={
                provider: self._provider(provider, item, found, surroundings)
                for provider, (item, found) in providers.items()
            },
            cache_config=self._cache(fields["cache_config"]) if _is_given(fields, "cache_config") else CacheConfig(),
            secrets_vault=self._vault(fields["secrets_vault"])
            if _is_given(fields, "secrets_vault")
            else SecretsVaultConfig(),
            send_cost=self._send_costs(fields["send_cost"], site_names) if "send_cost" in fields else {},
            location=location_of(entry.place),
            capacity=self._capacity(fields),
            residency=read_residency(fields, reader, site_names),
            python=optional_text(fields, "python", reader),
            accepts_pickle=bool("accepts_pickle" in fields and reader.flag(fields["accepts_pickle"])),
        )

    def _capacity(self, fields: dict[str, Item]) -> int | None:
        if not _is_given(fields, "capacity"):
            return None
        number = self._reader.number(fields["capacity"], "operations at the same time", whole=True, positive=True)
        return None if number is None else int(number)

    def _interface(self, fields: dict[str, Item], surroundings: Surroundings) -> dict[str, AdapterSpec]:
        return self._interfaces.read(fields["interface"], surroundings) if "interface" in fields else {}

    # -- providers

    def _provider_fields(self, item: Item | None) -> dict[str, tuple[Item, dict[str, Item]]]:
        entries = {} if item is None else self._reader.entries(item) or {}
        entries = put_back(entries, _PROVIDER_KEYS, "provider", self._reader)
        for name, entry in entries.items():
            self._check_name(entry, "provider", name, _NAME)
        return {
            name: (entry, self._reader.fields(entry, _PROVIDER_KEYS, "a provider") or {})
            for name, entry in entries.items()
        }

    def _provider_properties(self, fields: dict[str, Item]) -> Properties:
        info = self._reader.mapping_data(fields["info"]) if "info" in fields else {}
        return Properties((*PROVIDER_PROPERTIES, *info), _is_given(fields, "impl"))

    def _provider(self, name: str, entry: Item, fields: dict[str, Item], surroundings: Surroundings) -> ProviderConfig:
        reader = self._reader
        return ProviderConfig(
            name=name,
            info=reader.mapping_data(fields["info"]) if "info" in fields else {},
            impl=read_constructor(fields["impl"], reader) if _is_given(fields, "impl") else None,
            interface=self._interface(fields, surroundings),
            location=location_of(entry.place),
        )

    # -- cache, vault, costs

    def _cache(self, item: Item) -> CacheConfig:
        fields = self._reader.fields(item, _CACHE_KEYS, "a cache") or {}
        options = fields.get("storage_options")
        return CacheConfig(
            protocol=optional_text(fields, "protocol", self._reader) or "file",
            storage_options={} if options is None else self._reader.mapping_data(options),
            base_path=optional_text(fields, "base_path", self._reader),
        )

    def _vault(self, item: Item) -> SecretsVaultConfig:
        fields = self._reader.fields(item, _VAULT_KEYS, "a secrets vault") or {}
        path = dotted_path(fields["path"], self._reader) if _is_given(fields, "path") else None
        args = self._reader.mapping_data(fields["args"]) if "args" in fields else {}
        return SecretsVaultConfig(path, args, location_of(item.node))

    def _send_costs(self, item: Item, site_names: list[str]) -> dict[str, SendCost]:
        costs = {}
        for name, entry in (self._reader.entries(item) or {}).items():
            if name not in site_names:
                message = f"there is no site {name!r} to send to"
                self._reader.unknown_name(entry._replace(node=entry.key or entry.node), message, name, site_names)
                continue
            fields = self._reader.fields(entry, _SEND_COST_KEYS, "a send cost") or {}
            costs[name] = SendCost(
                fixed_time=self._amount(fields, "fixed_time", "seconds", positive=False) or 0.0,
                bandwidth=self._amount(fields, "bandwidth", "bytes per second", positive=True),
                price_per_byte=self._amount(fields, "price_per_byte", "money per byte", positive=False) or 0.0,
            )
        return costs

    def _amount(self, fields: dict[str, Item], key: str, unit: str, *, positive: bool) -> float | None:
        return self._reader.number(fields[key], unit, positive=positive) if _is_given(fields, key) else None


def _is_given(fields: dict[str, Item], key: str) -> bool:
    return key in fields and not fields[key].is_null
