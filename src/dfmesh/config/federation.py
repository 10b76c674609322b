"""A whole federation file."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dfmesh.api import Parameter, did_you_mean, operation_class
from dfmesh.config.arguments import Surroundings
from dfmesh.config.documents import Document, Item
from dfmesh.config.interface import InterfaceReader
from dfmesh.config.mistakes import TooManyFaultsError
from dfmesh.config.model import AdapterSpec, OperationSpec, SiteConfig
from dfmesh.config.namespace import Operations
from dfmesh.config.operations import read_operations
from dfmesh.config.reader import Reader
from dfmesh.config.schema import SchemaReader
from dfmesh.config.sites import SitesReader
from dfmesh.errors import ConfigError, DfmeshError, Fault, SourceLocation

FORMAT_VERSION = "1.0.0"
_SECTIONS = {
    "dfm": True,
    "info": False,
    "provision": False,
    "schemas": False,
    "operations": False,
    "interfaces": False,
    "sites": False,
}
_VERSION = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class FederationConfig:
    """What a federation file says.

    Attributes:
        path: The file, absolute.
        name: `info.name`, else `info.code-package`, else the file's name up to the first dot.
        info: The `info` section.
        schemas: Self-contained JSON Schemas by name.
        operations: Operations by name, in declared order.
        sites: Sites by name, in declared order.
        provision: The `provision` section, which dfmesh keeps for tools that deploy federations.
        ops: The operations as classes: `ops.weather.Bin`.
        digest: Digest of the file and those that it refers to; it changes with any of them.
    """

    path: Path
    name: str
    info: dict[str, Any]
    schemas: dict[str, dict[str, Any]]
    operations: dict[str, OperationSpec]
    sites: dict[str, SiteConfig]
    provision: dict[str, Any]
    ops: Operations
    digest: str = ""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FederationConfig:
        """Read a federation file and the files it refers to.

        Args:
            path: The file, usually `*.dfm.yaml`.

        Returns:
            The federation.

        Raises:
            ConfigError: If it has mistakes; `faults` lists all of them, with their places.
        """
        name = os.fspath(path)
        reader = Reader()
        try:
            config = _read(name, reader)
        except TooManyFaultsError:
            config = None
        except RecursionError:
            config = None
            reader.faults.append(Fault("is nested too deeply to be read from here", SourceLocation(name, 1, 1)))
        if reader.faults or config is None:
            count = len(reader.faults)
            raise ConfigError(f"{name} has {count} mistake{'s' * (count != 1)}", reader.faults)
        return config

    @property
    def directory(self) -> Path:
        """The directory of the file, from which adapters are imported."""
        return self.path.parent

    @property
    def api_version(self) -> str:
        """Version of the federation's own interface; empty if the file does not say."""
        return str(self.info.get("api-version", self.info.get("api_version", "")))

    @property
    def has_residency(self) -> bool:
        """Whether any site or adapter says where its results may go."""
        return any(
            site.residency is not None or any(adapter.residency is not None for adapter in interface.values())
            for site in self.sites.values()
            for interface in (site.interface, *(provider.interface for provider in site.providers.values()))
        )

    def offers(self, operation: str, provider: str | None = None, among: Collection[str] | None = None) -> list[str]:
        """Tell which sites offer an operation.

        Args:
            operation: Its name.
            provider: Provider that shall offer it; None for the sites' own interfaces.
            among: Sites that are asked about; None for all.

        Returns:
            Names of sites, in declared order.
        """
        asked: Iterable[str] = self.sites
        if among is not None and len(among) == 1:  # One site of thousands is not looked for among all of them.
            asked = filter(self.sites.__contains__, among)
        elif among is not None:
            asked = filter(set(among).__contains__, self.sites)
        return [name for name in asked if operation in (self.sites[name].adapters_of(provider) or {})]

    def adapter(self, site: str, operation: str, provider: str | None = None) -> AdapterSpec:
        """Give the adapter that carries out an operation at a site.

        Args:
            site: Name of the site.
            operation: Name of the operation.
            provider: Provider in the site; None for its own interface.

        Raises:
            DfmeshError: If there is no such site, provider, or adapter; it says what there is.
        """
        found = self.sites.get(site)
        if found is None:
            raise DfmeshError(f"federation {self.name!r} has no site {site!r}: {did_you_mean(site, list(self.sites))}")
        adapters = found.adapters_of(provider)
        if adapters is None:
            hint = did_you_mean(provider or "", list(found.providers))
            raise DfmeshError(f"site {site!r} has no provider {provider!r}: {hint}")
        if operation not in adapters:
            where = f"provider {provider!r} of site {site!r}" if provider else f"site {site!r}"
            raise DfmeshError(f"{where} does not offer {operation!r}: {did_you_mean(operation, list(adapters))}")
        return adapters[operation]


def _read(name: str, reader: Reader) -> FederationConfig | None:
    document = _open(name, reader)
    if document is None or document.root is None:
        return None
    root = Item(document.root, "", document, None)
    if not root.is_mapping:
        reader.expected(root, f"a federation (a mapping that begins with 'dfm: {FORMAT_VERSION}')")
        return None
    # keys that begin with x- are the user's own, for references to point to
    sections = reader.fields(root.without(lambda key: key.startswith("x-")), _SECTIONS, "a federation") or {}
    _check_format(sections, reader)
    nothing = root.without(lambda _key: True)
    schemas, info = SchemaReader(reader), _read_info(sections, reader)
    schema_entries = reader.entries(sections.get("schemas", nothing)) or {}
    resolved = {key: schemas.read(entry) for key, entry in schema_entries.items()}
    operations = read_operations(sections.get("operations", nothing), reader, schemas)
    interfaces = InterfaceReader(reader, schemas)
    sites = SitesReader(reader, interfaces, operations).read(sections.get("sites", nothing))
    _check_interfaces(sections.get("interfaces", nothing), reader, interfaces, operations)
    provision = reader.mapping_data(sections["provision"]) if "provision" in sections else {}
    if reader.faults:
        return None
    return FederationConfig(
        path=Path(name).absolute(),
        name=_name(info, name),
        info=info,
        schemas=resolved,
        operations=operations,
        sites=sites,
        provision=provision,
        ops=_classes(operations, sites),
        digest=reader.documents.digest,
    )


def _open(name: str, reader: Reader) -> Document | None:
    try:
        document = reader.documents.open(name)
    except OSError as error:
        folder = "" if os.path.isabs(name) else f" in {os.getcwd()}"
        reader.faults.append(Fault(f"cannot read {name}{folder}: {error.strerror}"))
        return None
    if document is not None and document.root is None:
        reader.faults.append(Fault(f"{name} is empty", hint=f"begin with 'dfm: {FORMAT_VERSION}'"))
    return document


def _check_format(sections: dict[str, Item], reader: Reader) -> None:
    item = sections.get("dfm")
    if item is not None and (not item.is_scalar or item.node.value != FORMAT_VERSION):
        reader.expected(item, f"{FORMAT_VERSION} (the version of this format)")


def _read_info(sections: dict[str, Item], reader: Reader) -> dict[str, Any]:
    item = sections.get("info")
    if item is None:
        return {}
    info = reader.mapping_data(item)
    if not info:
        return {}
    entries = reader.entries(item) or {}
    for key, entry in entries.items():
        spelled = key.replace("_", "-")
        if spelled in ("api-version", "code-package", "description", "name"):
            text = reader.text(entry) if not entry.is_null else None
            if text is not None and spelled == "api-version" and not _VERSION.fullmatch(text):
                reader.expected(entry, "a version X.Y.Z", "such as 0.1.0")
            if text is not None and spelled == "code-package" and not all(map(str.isidentifier, text.split("."))):
                reader.expected(entry, "the name of a Python package")
    return info


def _name(info: dict[str, Any], file: str) -> str:
    for key in ("name", "code-package", "code_package"):
        if info.get(key):
            return str(info[key])
    return os.path.basename(file).partition(".")[0] or "federation"


def _check_interfaces(
    item: Item, reader: Reader, interfaces: InterfaceReader, operations: dict[str, OperationSpec]
) -> None:
    """Check shared interfaces also where no site uses them; what sites use has been read by then."""
    for entry in (reader.entries(item) or {}).values():
        interfaces.read(entry, Surroundings(operations))


def _classes(operations: dict[str, OperationSpec], sites: dict[str, SiteConfig]) -> Operations:
    classes = {}
    exposed = _exposed_parameters(sites)
    for name, spec in operations.items():
        parameters = (*spec.parameters, *exposed.get(name, {}).values())
        classes[name] = operation_class(name, parameters, spec.description, spec.returns)
    return Operations(classes)


def _exposed_parameters(sites: dict[str, SiteConfig]) -> dict[str, dict[str, Parameter]]:
    """Parameters that some sites add to operations, by operation and name; they say at which sites."""
    found: dict[str, dict[str, list[tuple[str, Parameter]]]] = {}
    for site in sites.values():
        for adapters in (site.interface, *(provider.interface for provider in site.providers.values())):
            for spec in adapters.values():
                for parameter in spec.exposed:
                    found.setdefault(spec.operation, {}).setdefault(parameter.name, []).append((site.name, parameter))
    return {
        operation: {name: _joined(offers) for name, offers in by_name.items()} for operation, by_name in found.items()
    }


def _joined(offers: list[tuple[str, Parameter]]) -> Parameter:
    sites = ", ".join(dict.fromkeys(site for site, _ in offers))
    schemas: list[dict[str, Any]] = []
    for _, parameter in offers:
        if parameter.schema not in schemas:
            schemas.append(parameter.schema)
    first = offers[0][1]
    schema = first.schema if len(schemas) == 1 else {"anyOf": schemas}
    return replace(first, schema=schema, description=f"{first.description} (only at {sites})".strip())
