"""Interfaces: which adapter carries out which operation, and where its arguments come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any, Final

import msgspec

from dfmesh.api import Parameter, did_you_mean
from dfmesh.config.documents import Item, location_of
from dfmesh.config.misplaced import put_back
from dfmesh.config.model import (
    ISOLATIONS,
    AdapterSpec,
    ArgumentSource,
    ComputeCost,
    Constant,
    ConstructorCall,
    FromParameter,
    FromProvider,
    FromSecrets,
    FromSite,
    OperationSpec,
    ResidencyRule,
)
from dfmesh.config.operations import check_parameter_name, optional_flag, optional_text, read_parameter
from dfmesh.config.reader import Reader
from dfmesh.config.schema import SchemaReader

OPERATION_POINTER: Final = "#/operations/"
_ADAPTER_KEYS = {
    "adapter": True,
    "description": False,
    "returns": False,
    "is_async": False,
    "args": False,
    "compute_cost": False,
    "residency": False,
    "idempotent": False,
    "isolation": False,
    "concurrency": False,
}
_CALL_KEYS = {"path": True, "args": False}
_COST_KEYS = dict.fromkeys(
    ("fixed_time", "compute_throughput", "fixed_size", "output_factor", "price_per_second"), False
)
_SOURCE_KEYS = ("from_param", "const", "from_secrets", "from_provider", "from_site")
_ARGUMENT_KEYS = dict.fromkeys((*_SOURCE_KEYS, "expose_as", "doc"), False)
_EXPOSED_KEYS = {
    "param": True,
    "type": False,
    "description": False,
    "accepts_literal_input": False,
    "accepts_node_input": False,
    "accepts_place_input": False,
    "discoverable": False,
}
_SOURCES_TEXT = "one of from-param, const, from-secrets, from-provider, from-site"


class Properties(msgspec.Struct, frozen=True):
    """The properties of a site or provider that an argument may come from.

    Attributes:
        names: Those that the file tells of.
        is_open: Whether its own class may have more.
    """

    names: tuple[str, ...]
    is_open: bool


class Surroundings(msgspec.Struct, frozen=True):
    """What the adapters of an interface may refer to. `site` is None for an interface that no site uses yet."""

    operations: Mapping[str, OperationSpec]
    site: Properties | None = None
    providers: Mapping[str, Properties] = msgspec.field(default_factory=dict)
    sites: Sequence[str] | None = None


def operation_name(key: str) -> str:
    """The operation that an interface key means: `#/operations/weather.Bin` and `weather.Bin` are the same."""
    return key.removeprefix(OPERATION_POINTER)


def dotted_path(item: Item, reader: Reader) -> str | None:
    """Read the dotted path of a Python class or function."""
    text = reader.text(item)
    if text is None:
        return None
    parts = text.split(".")
    if len(parts) < 2 or not all(part.isidentifier() and not iskeyword(part) for part in parts):
        hint = "write module.name, such as weather.adapters.Bin"
        reader.fault(item, f"{text!r} is no dotted path of a Python class or function", hint)
    return text


def read_constructor(item: Item, reader: Reader) -> ConstructorCall | None:
    """Read a path, or a mapping of `path` and `args`."""
    found = reader.follow(item)
    if found is None:
        return None
    args: dict[str, Any] = {}
    at: Item | None = found
    if found.is_mapping:
        fields = reader.fields(found, _CALL_KEYS, "a constructor call") or {}
        args = reader.mapping_data(fields["args"]) if "args" in fields else {}
        at = fields.get("path")
    path = None if at is None else dotted_path(at, reader)
    return None if path is None else ConstructorCall(path, args, location_of((at or found).node))


def read_residency(fields: Mapping[str, Item], reader: Reader, sites: Sequence[str] | None) -> ResidencyRule | None:
    """Read `residency`, a list of sites; an empty one keeps results where they are made.

    Args:
        fields: Of a site or an adapter.
        reader: Takes the faults.
        sites: Names of all sites; None where they are not known, and are not checked.
    """
    item = fields.get("residency")
    if item is None or item.is_null:
        return None
    names = []
    for element in reader.elements(item):
        name = reader.text(element)
        if name is not None and sites is not None and name not in sites:
            reader.unknown_name(element, f"there is no site {name!r}", name, list(sites))
        elif name is not None:
            names.append(name)
    return ResidencyRule(tuple(names), location_of(item.key or item.node))


class InterfaceReader:
    """Reads the interfaces of sites and providers."""

    def __init__(self, reader: Reader, schemas: SchemaReader) -> None:
        self._reader = reader
        self._schemas = schemas

    def read(self, item: Item, surroundings: Surroundings) -> dict[str, AdapterSpec]:
        """Read an interface.

        Args:
            item: Where it stands.
            surroundings: What its adapters may refer to.

        Returns:
            Adapters by operation name, in declared order, without those that have no usable path.
        """
        interface = {}
        named = self._reader.entries(item, operation_name) or {}
        own = {key: True for key in _ADAPTER_KEYS if key not in surroundings.operations}
        for name, entry in put_back(named, own, "operation", self._reader).items():
            operation = surroundings.operations.get(name)
            if operation is None:
                message = f"there is no operation {name!r}"
                hint = did_you_mean(name, list(surroundings.operations))
                self._reader.fault(entry, message, hint, at=entry.key)
                continue
            spec = self._adapter(operation, entry, surroundings)
            if spec is not None:
                interface[name] = spec
        return interface

    def _adapter(self, operation: OperationSpec, entry: Item, surroundings: Surroundings) -> AdapterSpec | None:
        reader, item = self._reader, self._reader.follow(entry)
        if item is None:
            return None
        is_short = item.is_scalar and not item.is_null
        fields = {"adapter": item} if is_short else reader.fields(item, _ADAPTER_KEYS, "an adapter") or {}
        call = read_constructor(fields["adapter"], reader) if "adapter" in fields else None
        arguments, exposed = self._arguments(operation, fields.get("args"), surroundings)
        cost, idempotent = fields.get("compute_cost"), optional_flag(fields, "idempotent", reader)
        spec = AdapterSpec(
            operation=operation.name,
            path=call.path if call else "",
            constructor_args=call.args if call else {},
            arguments=arguments,
            compute_cost=None if cost is None or cost.is_null else self._compute_cost(cost),
            is_async=optional_flag(fields, "is_async", reader),
            returns=optional_text(fields, "returns", reader),
            exposed=exposed,
            description=optional_text(fields, "description", reader) or "",
            location=call.location if call else location_of(entry.node),
            residency=read_residency(fields, reader, surroundings.sites),
            idempotent=operation.idempotent if idempotent is None else idempotent,
            isolation=self._isolation(fields),
            concurrency=self._concurrency(fields),
        )
        return spec if call else None

    def _isolation(self, fields: dict[str, Item]) -> str:
        text = optional_text(fields, "isolation", self._reader)
        if text is not None and text not in ISOLATIONS:
            self._reader.expected(fields["isolation"], " or ".join(ISOLATIONS))
        return text if text in ISOLATIONS else ISOLATIONS[0]

    def _concurrency(self, fields: dict[str, Item]) -> int | None:
        item = fields.get("concurrency")
        if item is None or item.is_null:
            return None
        number = self._reader.number(item, "calls at the same time", whole=True, positive=True)
        return None if number is None else int(number)

    def _compute_cost(self, item: Item) -> ComputeCost:
        fields = self._reader.fields(item, _COST_KEYS, "a compute cost") or {}
        return ComputeCost(
            fixed_time=self._amount(fields, "fixed_time", "seconds") or 0.0,
            compute_throughput=self._amount(fields, "compute_throughput", "bytes per second", positive=True),
            fixed_size=int(self._amount(fields, "fixed_size", "bytes") or 0),
            output_factor=self._amount(fields, "output_factor", "bytes of output per byte of input") or 0.0,
            price_per_second=self._amount(fields, "price_per_second", "money per second") or 0.0,
        )

    def _amount(self, fields: dict[str, Item], key: str, unit: str, *, positive: bool = False) -> float | None:
        item = fields.get(key)
        return None if item is None or item.is_null else self._reader.number(item, unit, positive=positive)

    # -- arguments

    def _arguments(
        self, operation: OperationSpec, item: Item | None, surroundings: Surroundings
    ) -> tuple[dict[str, ArgumentSource] | None, tuple[Parameter, ...]]:
        if item is None or item.is_null:
            return None, ()
        if item.is_scalar:
            if item.node.value not in ("from-operation", "from_operation"):
                self._reader.expected(item, "'from-operation' or a mapping of the adapter's arguments")
            return None, ()
        arguments: dict[str, ArgumentSource] = {}
        exposed: dict[str, Parameter] = {}
        for keyword, entry in (self._reader.entries(item) or {}).items():
            source = self._source(operation, entry, surroundings, exposed)
            if source is not None:
                arguments[keyword] = source
        return arguments, tuple(exposed.values())

    def _source(
        self, operation: OperationSpec, entry: Item, surroundings: Surroundings, exposed: dict[str, Parameter]
    ) -> ArgumentSource | None:
        item = self._reader.follow(entry)
        if item is None:
            return None
        if item.is_scalar:
            return self._short_source(operation, item)
        if item.is_sequence:
            self._reader.expected(item, _SOURCES_TEXT, "to pass a list write 'const: [...]'")
            return None
        fields = self._reader.fields(item, _ARGUMENT_KEYS, "an argument") or {}
        sources = [key for key in _SOURCE_KEYS if key in fields]
        if len(sources) != 1:
            self._wrong_source_count(item, fields, sources)
            return None
        name = self._exposed(operation, fields, sources[0], exposed)
        return self._given_source(operation, sources[0], fields[sources[0]], surroundings, name)

    def _short_source(self, operation: OperationSpec, item: Item) -> ArgumentSource | None:
        """A bare name is a parameter; a bare number, truth value or null is a constant."""
        value = self._reader.data(item)
        if not isinstance(value, str):
            return Constant(value)
        return self._from_parameter(operation, item, "to pass a text write 'const: \"...\"'")

    def _wrong_source_count(self, item: Item, fields: dict[str, Item], sources: list[str]) -> None:
        if sources:
            message = f"has both {sources[0].replace('_', '-')} and {sources[1].replace('_', '-')}"
            self._reader.fault(fields[sources[1]], message, "keep one", at=fields[sources[1]].key)
        elif len(fields) == len(self._reader.entries(item) or {}):  # else an unknown key has been recorded
            self._reader.fault(item, f"expected {_SOURCES_TEXT}", at=item.key)

    def _given_source(
        self, operation: OperationSpec, kind: str, item: Item, surroundings: Surroundings, exposed_as: str | None
    ) -> ArgumentSource | None:
        if kind == "const":
            return Constant(self._reader.data(item), exposed_as)
        if kind == "from_param":
            return self._from_parameter(operation, item)
        text = self._reader.text(item)
        if text is None:
            return None
        if kind == "from_secrets":
            return FromSecrets(text, exposed_as)
        if kind == "from_site":
            self._check_property(item, "the site", text, surroundings.site)
            return FromSite(text, exposed_as)
        return self._from_provider(item, text, surroundings, exposed_as)

    def _from_parameter(self, operation: OperationSpec, item: Item, hint: str = "") -> FromParameter | None:
        name = self._reader.text(item)
        known = [parameter.name for parameter in operation.parameters]
        if name is None:
            return None
        if name not in known:
            message = f"{operation.name} has no parameter {name!r}"
            if hint:
                self._reader.fault(item, message, hint)
            else:
                self._reader.unknown_name(item, message, name, known)
        return FromParameter(name)

    def _from_provider(
        self, item: Item, text: str, surroundings: Surroundings, exposed_as: str | None
    ) -> FromProvider | None:
        provider, _, name = text.partition(".")
        if not provider or not name:
            self._reader.fault(item, f"expected provider.property, found {text!r}", "such as archive.base_url")
            return None
        if surroundings.site is not None and provider not in surroundings.providers:
            known = list(surroundings.providers)
            self._reader.unknown_name(item, f"the site has no provider {provider!r}", provider, known)
        else:
            self._check_property(item, f"provider {provider!r}", name, surroundings.providers.get(provider))
        return FromProvider(provider, name, exposed_as)

    def _check_property(self, item: Item, owner: str, name: str, properties: Properties | None) -> None:
        if properties is not None and not properties.is_open and name not in properties.names:
            message = f"{owner} has no property {name!r}"
            self._reader.unknown_name(item, message, name, list(properties.names))

    # -- expose-as

    def _exposed(
        self, operation: OperationSpec, fields: dict[str, Item], kind: str, exposed: dict[str, Parameter]
    ) -> str | None:
        item = fields.get("expose_as")
        if item is None or item.is_null:
            return None
        if kind == "from_param":
            hint = "the user gives it through the parameter already"
            self._reader.fault(item, "an argument that is a parameter cannot be exposed", hint, at=item.key)
            return None
        parameter = self._exposed_parameter(item)
        if parameter is None:
            return None
        if all(parameter.name != own.name for own in operation.parameters):
            exposed[parameter.name] = parameter
        return parameter.name

    def _exposed_parameter(self, item: Item) -> Parameter | None:
        """Read `expose-as`: a parameter's name, or a mapping with its name, type and description."""
        if item.is_scalar:
            name = self._reader.text(item)
            if name is None:
                return None
            check_parameter_name(name, item._replace(key=item.node), self._reader)
            return Parameter(name=name, required=False)
        fields = self._reader.fields(item, _EXPOSED_KEYS, "an exposed parameter") or {}
        name = self._reader.text(fields["param"]) if "param" in fields else None
        if name is None:
            return None
        at = fields["param"]
        check_parameter_name(name, at._replace(key=at.node), self._reader)
        read = read_parameter("exposed", item.without("param".__eq__), self._reader, self._schemas, required=False)
        return Parameter(name=name, schema=read.schema, required=False, description=read.description)
