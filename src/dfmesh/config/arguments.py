"""Where the arguments of an adapter come from, and which of them callers may give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dfmesh.api import Parameter
from dfmesh.config.documents import Item
from dfmesh.config.model import (
    ArgumentSource,
    Constant,
    FromParameter,
    FromProvider,
    FromSecrets,
    FromSite,
    OperationSpec,
)
from dfmesh.config.operations import check_parameter_name, read_parameter
from dfmesh.config.reader import Reader
from dfmesh.config.schema import SchemaReader

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


class ArgumentsReader:
    """Reads the `args` of adapters."""

    def __init__(self, reader: Reader, schemas: SchemaReader) -> None:
        self._reader = reader
        self._schemas = schemas

    def read(
        self, operation: OperationSpec, item: Item | None, surroundings: Surroundings
    ) -> tuple[dict[str, ArgumentSource] | None, tuple[Parameter, ...]]:
        """Read `args` of an adapter.

        Args:
            operation: What the adapter carries out.
            item: Where they stand; None if the file does not say.
            surroundings: What they may refer to.

        Returns:
            Where each keyword of the adapter comes from, None if each parameter of the operation is handed over under
            its own name; and the parameters that the operation has only here.
        """
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
