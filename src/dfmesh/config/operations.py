"""The `schemas` and `operations` sections."""

from __future__ import annotations

import re
from typing import Any

from dfmesh.api import RESERVED_PARAMETERS, Parameter
from dfmesh.config.documents import Item, location_of
from dfmesh.config.fitting import schema_mismatch
from dfmesh.config.misplaced import put_back
from dfmesh.config.model import OperationSpec
from dfmesh.config.reader import Reader
from dfmesh.config.schema import PYTHON_TYPE, SchemaReader

OPERATION_NAME = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*")
_OPERATION_KEYS = dict.fromkeys(
    (
        "type",
        "title",
        "description",
        "parameters",
        "properties",
        "required",
        "returns",
        "examples",
        "deprecated",
        "idempotent",
        "version",
    ),
    False,
)
_BARE_OBJECT_KEYS = frozenset({"type", "description", "title", "default", "examples", "discoverable"})


def read_operations(item: Item, reader: Reader, schemas: SchemaReader) -> dict[str, OperationSpec]:
    """Read the `operations` section.

    Args:
        item: Where it stands.
        reader: Collects the faults.
        schemas: Reads the parameters' schemas.

    Returns:
        Operations by name, in declared order.
    """
    operations = {}
    entries = put_back(reader.entries(item) or {}, _OPERATION_KEYS, "operation", reader)
    for name, entry in entries.items():
        if not OPERATION_NAME.fullmatch(name):
            reader.fault(entry, f"{name!r} is no name for an operation", "write it like weather.Bin", at=entry.key)
        operations[name] = _read_operation(name, entry, reader, schemas)
    _check_namespaces(operations, entries, reader)
    return operations


def _check_namespaces(operations: dict[str, OperationSpec], entries: dict[str, Item], reader: Reader) -> None:
    inside: dict[str, str] = {}  # of the names that begin with each name, the first
    for other in operations:
        namespace, dot, _ = other.rpartition(".")
        while dot:
            inside.setdefault(namespace, other)
            namespace, dot, _ = namespace.rpartition(".")
    for name in operations:
        if name in inside:
            message = f"{name!r} is an operation and the beginning of {inside[name]!r}"
            reader.fault(entries[name], message, "rename one of them", at=entries[name].key)


def _read_operation(name: str, entry: Item, reader: Reader, schemas: SchemaReader) -> OperationSpec:
    location = location_of(entry.place)
    fields = reader.fields(entry, _OPERATION_KEYS, "an operation") or {}
    if "type" in fields and reader.text(fields["type"]) not in (None, "object"):
        reader.expected(fields["type"], "'object' (or no type)")
    if "parameters" in fields and "properties" in fields:
        reader.fault(fields["properties"], "has both 'parameters' and 'properties'", "they are the same: keep one")
    declared = fields.get("parameters") or fields.get("properties")
    parameters = _read_parameters(declared, fields.get("required"), reader, schemas)
    return OperationSpec(
        name=name,
        parameters=parameters,
        returns=optional_text(fields, "returns", reader),
        description=optional_text(fields, "description", reader) or "",
        location=location,
        idempotent=bool(optional_flag(fields, "idempotent", reader)),
        version=_version(fields, reader),
    )


def _version(fields: dict[str, Item], reader: Reader) -> str | None:
    """A text or a number: `version: 2` and `version: "2"` are the same."""
    item = fields.get("version")
    if item is not None and item.is_scalar and item.node.tag.endswith((":int", ":float")):
        return str(item.node.value)
    return optional_text(fields, "version", reader)


def optional_flag(fields: dict[str, Item], key: str, reader: Reader) -> bool | None:
    """True or false of a key that may be missing or null."""
    item = fields.get(key)
    return None if item is None or item.is_null else reader.flag(item)


def optional_text(fields: dict[str, Item], key: str, reader: Reader) -> str | None:
    """The text of a key that may be missing or null."""
    item = fields.get(key)
    return None if item is None or item.is_null else reader.text(item)


def _read_parameters(
    declared: Item | None, required: Item | None, reader: Reader, schemas: SchemaReader
) -> tuple[Parameter, ...]:
    entries = {} if declared is None else reader.entries(declared) or {}
    needed = set(entries) if required is None or required.is_null else _read_required(required, entries, reader)
    return tuple(
        read_parameter(name, entry, reader, schemas, required=name in needed) for name, entry in entries.items()
    )


def _read_required(required: Item, entries: dict[str, Item], reader: Reader) -> set[str]:
    needed = set()
    for element in reader.elements(required):
        name = reader.text(element)
        if name is not None and name not in entries:
            reader.unknown_name(element, f"{name!r} is required but no parameter", name, entries)
        needed.add(name or "")
    return needed


def read_parameter(name: str, entry: Item, reader: Reader, schemas: SchemaReader, *, required: bool) -> Parameter:
    """Read one parameter.

    Args:
        name: Its name.
        entry: Its schema.
        reader: Collects the faults.
        schemas: Reads the schema.
        required: Whether it must be given if it has no default.
    """
    check_parameter_name(name, entry, reader)
    schema = schemas.read(entry) if not entry.is_null else {}
    has_default = "default" in schema
    default = schema.get("default")
    if has_default and default is not None:
        # A file can only write plain values: what the adapter makes of one in place of an object is the owner's matter.
        plain = {key: value for key, value in schema.items() if key != PYTHON_TYPE}
        if mismatch := schema_mismatch(default, plain):
            at = (reader.entries(entry) or {}).get("default", entry)
            reader.fault(at, f"the default {default!r} of {name!r} does not fit its schema", f"it {mismatch}")
    return Parameter(
        name=name,
        schema=_any_object(schema),
        required=required and not has_default,
        default=default,
        has_default=has_default,
        description=schema.get("description", ""),
    )


def check_parameter_name(name: str, entry: Item, reader: Reader) -> None:
    """Record a fault if a parameter cannot be called so."""
    if name in RESERVED_PARAMETERS or name.startswith("dfm_"):
        hint = f"every operation takes {name!r} besides its parameters; rename the parameter"
        reader.fault(entry, f"the parameter name {name!r} is reserved", hint, at=entry.key)
    elif not name or any(character.isspace() for character in name):
        reader.fault(entry, f"{name!r} is no name for a parameter", "use letters, digits and _", at=entry.key)


def _any_object(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop a bare `type: object`: in this format it says "any Python object", not "a mapping"."""
    if schema.get("type") == "object" and all(key in _BARE_OBJECT_KEYS or key.startswith("accepts-") for key in schema):
        return {key: value for key, value in schema.items() if key != "type"}
    return schema
