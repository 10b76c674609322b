"""Checks of values that are known before the run against the JSON Schemas of the operations."""

from __future__ import annotations

from typing import Any

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


def schema_mismatch(value: Any, schema: dict[str, Any]) -> str:
    """Say why a value does not fit a schema; empty if it does.

    Only values of JSON's own kinds are judged: an array, a table or a date may well stand for what the schema
    says, and the adapter is the one to know.

    Args:
        value: The value.
        schema: `type`, `enum`, `anyOf`, `items`, `properties`, `minimum`, `maximum` are looked at.
    """
    if type(value) not in (str, int, float, bool, list, tuple, dict, type(None)) or not schema:
        return ""
    if "anyOf" in schema or "oneOf" in schema:
        options = schema.get("anyOf") or schema.get("oneOf") or []
        found = [schema_mismatch(value, option) for option in options]
        return "" if not found or "" in found else found[0]
    if "enum" in schema and value not in schema["enum"]:
        return f"is {value!r}, expected one of {', '.join(map(repr, schema['enum']))}"
    kinds = schema.get("type")
    if kinds and not any(_is_kind(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        expected = kinds if isinstance(kinds, str) else " or ".join(kinds)
        return f"is {value!r} ({type(value).__name__}), expected {expected}"
    return _out_of_range(value, schema) or _inside(value, schema)


def _is_kind(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, (object,)))


def _out_of_range(value: Any, schema: dict[str, Any]) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if "minimum" in schema and value < schema["minimum"]:
            return f"is {value!r}, below the minimum {schema['minimum']!r}"
        if "maximum" in schema and value > schema["maximum"]:
            return f"is {value!r}, above the maximum {schema['maximum']!r}"
    return ""


def _inside(value: Any, schema: dict[str, Any]) -> str:
    if isinstance(value, list | tuple) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            if mismatch := schema_mismatch(item, schema["items"]):
                return f"[{index}] {mismatch}"
    if isinstance(value, dict) and isinstance(schema.get("properties"), dict):
        for name, item in value.items():
            if mismatch := schema_mismatch(item, schema["properties"].get(name, {})):
                return f"[{name!r}] {mismatch}"
    return ""
