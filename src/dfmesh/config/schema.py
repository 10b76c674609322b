"""JSON Schemas of the federation file, with their references put in."""

from __future__ import annotations

from typing import Any

from dfmesh.api import did_you_mean
from dfmesh.config.documents import Item
from dfmesh.config.reader import Chain, Reader
from dfmesh.config.text_pattern import PatternError, matcher

JSON_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
PYTHON_TYPE = "x-python-type"
"""Where a Python class named as `type` is kept, since JSON Schema has no place for it."""

_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMAS = frozenset(
    {"items", "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
MAX_SCHEMAS = 100_000
"""Schemas that are read for one federation, those that are referred to each time anew if they contain themselves."""

MAX_NESTING = 128
"""Schemas inside one another; a reference and what it points to are two."""

_TEXTS = frozenset({"description", "title", "format"})
_FLAGS = {
    "accepts_literal_input": "accepts-literal-input",
    "accepts_node_input": "accepts-node-input",
    "accepts_place_input": "accepts-place-input",
}


class SchemaReader:
    """Makes self-contained JSON Schemas.

    A reference is replaced by what it points to. Only a schema that contains itself keeps references, to its
    own `$defs`.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._resolved: dict[int, Any] = {}
        self._recursions = 0
        self._root: Item | None = None
        self._defs: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._count = 0
        self._too_much = False

    def read(self, item: Item) -> dict[str, Any]:
        """Read one schema.

        Args:
            item: Where it stands.

        Returns:
            The schema; an empty one (anything) if it has mistakes, which have been recorded.
        """
        self._root, self._defs, self._names = item, {}, {}
        schema = self._schema(item, (), 0, ())
        if not isinstance(schema, dict):
            return {}
        if self._names.get(id(item.node)):
            self._defs[self._names[id(item.node)]] = dict(schema)
        return {**schema, "$defs": self._defs} if self._defs else schema

    def _schema(self, item: Item, inside: tuple[int, ...], start: int, chain: Chain) -> Any:
        # inside: what contains this, by identity; from start on, what leads here by references alone
        if item.node.tag.endswith(":bool"):
            return self._reader.flag(item)
        if not item.is_mapping:
            self._reader.expected(item, "a JSON Schema (a mapping)")
            return {}
        if id(item.node) in inside:
            self._reader.fault(item, "contains itself through an anchor", "use $ref for that", at=item.place)
            return {}
        if not self._affords(item, inside):
            return {}
        inside = (*inside, id(item.node))
        entries, reference = self._split(item)
        own = {_FLAGS.get(key, key): self._keyword(key, entry, inside) for key, entry in entries.items()}
        self._place_types(own)
        for section in ("$defs", "definitions"):  # they are put in where they are used
            own.pop(section, None)
        if reference is None:
            return own
        return {**self._referenced(reference, item, inside, start, chain), **own}

    def _affords(self, item: Item, inside: tuple[int, ...]) -> bool:
        """Tell whether one more schema may be read: schemas that refer to one another in circles multiply."""
        self._count += 1
        if not self._too_much and len(inside) > MAX_NESTING:
            self._too_much = True
            self._reader.fault(item, f"schemas are nested more than {MAX_NESTING} levels deep")
        if not self._too_much and self._count > MAX_SCHEMAS:
            self._too_much = True
            self._reader.fault(item, f"with all that is referred to there are more than {MAX_SCHEMAS:,} schemas")
        return not self._too_much

    def _split(self, item: Item) -> tuple[dict[str, Item], Item | None]:
        """Entries without the `$ref` to one schema, and that."""
        for key, value in item.node.value:
            if key.id == "scalar" and key.value == "$ref" and value.id == "scalar":
                entries = self._reader.entries(item.without("$ref".__eq__))
                return entries or {}, Item(value, f"{item.path}.$ref", item.document, key)
        return self._reader.entries(item) or {}, None

    def _referenced(
        self, reference: Item, item: Item, inside: tuple[int, ...], start: int, chain: Chain
    ) -> dict[str, Any]:
        text = self._reader.text(reference)
        found = None if text is None else self._look_up(text, reference, item.path, chain)
        if found is None:
            return {}
        target, chain = found
        identity = id(target.node)
        if identity in self._resolved:
            return dict(self._resolved[identity])
        if identity in inside[start:]:
            self._reader.circle(reference, chain)
            return {}
        if identity in inside:
            self._recursions += 1
            return {"$ref": f"#/$defs/{self._name(identity, chain)}"}
        return self._inlined(target, inside, start, chain)

    def _inlined(self, target: Item, inside: tuple[int, ...], start: int, chain: Chain) -> dict[str, Any]:
        before, identity, root = self._recursions, id(target.node), self._root
        if _has_definitions(target):
            self._root = target
        schema = self._schema(target, inside, start, chain)
        self._root = root
        if not isinstance(schema, dict):
            return {} if schema else {"not": {}}
        if self._recursions == before:
            self._resolved[identity] = schema
        elif identity in self._names:
            self._defs[self._names[identity]] = schema
        return dict(schema)

    def _look_up(self, text: str, reference: Item, path: str, chain: Chain) -> tuple[Item, Chain] | None:
        # A schema pasted in with definitions of its own means them, not the file's.
        if text.startswith(("#/$defs/", "#/definitions/")) and self._root is not None:
            section, _, name = text[2:].partition("/")
            for key, definitions in self._root.node.value if self._root.is_mapping else ():
                if key.value != section or definitions.id != "mapping":
                    continue
                for own_key, node in definitions.value:
                    if own_key.value == name:
                        return self._own_definition(Item(node, path, self._root.document, own_key), text, chain)
        return self._reader.look_up(text, reference, path, chain)

    def _own_definition(self, target: Item, text: str, chain: Chain) -> tuple[Item, Chain] | None:
        step = (target.document.name, text[1:])
        if step in chain:
            self._reader.fault(target, f"{text} is only a reference to itself", at=target.node)
            return None
        return target, (*chain, step)

    def _name(self, identity: int, chain: Chain) -> str:
        if identity not in self._names:
            name = base = chain[-1][1].rpartition("/")[2] or "root"
            number = 1
            while name in self._names.values():
                number += 1
                name = f"{base}_{number}"
            self._names[identity] = name
        return self._names[identity]

    def _keyword(self, key: str, entry: Item, inside: tuple[int, ...]) -> Any:
        reader = self._reader
        if key in _MAPS:
            return {
                name: self._schema(one, inside, len(inside), ()) for name, one in (reader.entries(entry) or {}).items()
            }
        if key in _LISTS or (key == "items" and entry.is_sequence):
            return [self._schema(one, inside, len(inside), ()) for one in reader.elements(entry)]
        if key in _SCHEMAS:
            return self._schema(entry, inside, len(inside), ())
        if key == "type":
            return self._types(entry)
        if key in _TEXTS:
            return reader.text(entry) or ""
        if key == "pattern":
            return self._pattern(entry)
        if key == "required" and not entry.node.tag.endswith(":bool"):
            return reader.texts(entry)
        if key == "enum":
            return [reader.data(one) for one in reader.elements(entry)]
        if key in _FLAGS or key in _FLAGS.values() or key == "discoverable":
            return reader.flag(entry)
        return reader.data(entry)

    def _pattern(self, entry: Item) -> str:
        pattern = self._reader.text(entry) or ""
        try:
            matcher(pattern)
        except PatternError as error:
            self._reader.fault(entry, f"{pattern!r} cannot be matched: {error}", "write it otherwise, or leave it out")
        return pattern

    def _types(self, entry: Item) -> str | list[str]:
        items = self._reader.elements(entry) if entry.is_sequence else [entry]
        names = [name for name in (self._type(item) for item in items) if name is not None]
        return names if entry.is_sequence else names[0] if names else []

    def _type(self, item: Item) -> str | None:
        name = "null" if item.is_null else self._reader.text(item)
        if name is None or name in JSON_TYPES or _is_python_type(name):
            return name
        hint = f"{did_you_mean(name, JSON_TYPES)}; a Python class is written package.module.Class"
        self._reader.fault(item, f"{name!r} is no type", hint)
        return None

    @staticmethod
    def _place_types(schema: dict[str, Any]) -> None:
        """Move Python classes out of `type`, which then says nothing about the JSON form of values."""
        types = schema.get("type")
        if types == []:
            del schema["type"]
        names = [types] if isinstance(types, str) else types or []
        python = [name for name in names if name not in JSON_TYPES]
        if python:
            del schema["type"]
            schema[PYTHON_TYPE] = python[0] if len(names) == 1 else names


def _has_definitions(item: Item) -> bool:
    return item.is_mapping and any(key.value in ("$defs", "definitions") for key, _value in item.node.value)


def _is_python_type(name: str) -> bool:
    parts = name.split(".")
    return len(parts) > 1 and all(part.isidentifier() for part in parts)
