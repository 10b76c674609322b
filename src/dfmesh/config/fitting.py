"""Whether values fit the JSON Schemas of parameters: the one check, made before the run and by sites at each call.

A schema is compiled once into a `Fit`. What JSON has no kind for (a table, a date, an instance of a class) is judged by
the Python classes that the schema names, and otherwise only where it clearly cannot stand for what the schema says.
Classes are looked for among the modules that are loaded; nothing is imported for a value.
"""

from __future__ import annotations

import numbers
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dfmesh.api import Parameter
from dfmesh.config.fitting_kinds import (
    JSON_CLASSES,
    SHORT,
    is_array,
    is_instance,
    is_kind,
    is_plain,
    name_of,
    scalar,
    shown,
)
from dfmesh.config.fitting_limits import NO_LIMITS, Judge, bounds, lengths, limits, one_of, within
from dfmesh.config.schema import JSON_TYPES, PYTHON_TYPE

_OF_PYTHON = {"i": int, "u": int, "f": float, "b": bool, "U": str}
"""Kinds of numpy data types, and what their elements are to a schema."""


class Fit(NamedTuple):
    """A compiled schema.

    Attributes:
        quick: Types whose instances fit, without a further look; those of derived types may or may not.
        judge: Judges a value of any type.
    """

    quick: set[type] | frozenset[type]
    judge: Judge


def fit_of(parameter: Parameter) -> Fit | None:
    """Compile what a parameter takes; None if it takes anything.

    None fits a parameter that may be left out and has no other default: that is what an adapter gets then.
    """
    fit = compile_fit(parameter.schema)
    if fit is None or parameter.required or (parameter.has_default and parameter.default is not None):
        return fit
    judge = fit.judge
    return Fit(fit.quick | {type(None)}, lambda value: "" if value is None else judge(value))


def kind_fit(schema: Mapping[str, Any], kind: type) -> Fit | None:
    """Compile what a schema says about the type alone, for a value whose parts are not known yet.

    Args:
        schema: What `compile_fit` takes.
        kind: Type of the value.

    Returns:
        None if it says nothing, or the value is of no kind that JSON has.
    """
    return _typed(schema) if kind in (list, tuple, dict) else None


def schema_mismatch(value: Any, schema: Mapping[str, Any]) -> str:
    """Say why a value does not fit a schema; empty if it does.

    Args:
        value: The value.
        schema: What `compile_fit` takes.
    """
    fit = compile_fit(schema)
    return "" if fit is None else fit.judge(value)


def compile_fit(schema: Any) -> Fit | None:
    """Compile a schema; None if everything fits.

    Looked at are `type` (also Python classes), `enum`, `const`, `anyOf`, `oneOf` (as `anyOf`), `allOf`, `minimum`,
    `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`, `minLength`, `maxLength`, `pattern`, `minItems`,
    `maxItems`, `items`, `properties`, `required` and `$ref` to `$defs`. Elements of an array are looked at one by one
    only if `items` asks for more than their data type says.

    Args:
        schema: As the federation file has it, references put in.
    """
    return _Compiler(schema).compile(schema) if isinstance(schema, Mapping) and schema else None


class _Compiler:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._definitions: Mapping[str, Any] = root.get("$defs") or {}
        self._compiled: dict[str, Fit | None] = {}

    def compile(self, schema: Any) -> Fit | None:
        if schema is False:
            return Fit(frozenset(), lambda value: f"is {SHORT.repr(value)}, where nothing may be")
        if not isinstance(schema, Mapping):
            return None
        judges = [judge for judge in self._judges(schema) if judge is not None]
        typed = _typed(schema)
        if typed is None:
            return None if not judges else Fit(frozenset(), _all_of(judges))
        if not judges:
            return typed
        judge = _all_of([typed.judge, *judges])
        return Fit(frozenset(), within(schema, typed.quick, judge) if len(judges) == 1 else judge)

    def _judges(self, schema: Mapping[str, Any]) -> Iterator[Judge | None]:
        if isinstance(schema.get("$ref"), str):
            yield self._referenced(schema["$ref"].rpartition("/")[2])
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                yield self._any_of(schema[key])
        for part in schema.get("allOf") or ():
            fit = self.compile(part)
            yield None if fit is None else fit.judge
        if "enum" in schema:
            yield one_of(schema["enum"])
        if "const" in schema:
            yield one_of([schema["const"]])
        yield bounds(schema)
        yield lengths(schema)
        yield self._elements(schema)
        yield self._fields(schema)

    def _referenced(self, name: str) -> Judge:
        def judge(value: Any) -> str:
            if name not in self._compiled:
                self._compiled[name] = self.compile(self._definitions.get(name))
            fit = self._compiled[name]
            return "" if fit is None else fit.judge(value)

        return judge

    def _any_of(self, options: Sequence[Any]) -> Judge | None:
        fits = [self.compile(option) for option in options]
        judges = [fit.judge for fit in fits if fit is not None]
        if len(judges) < len(fits):
            return None

        def judge(value: Any) -> str:
            found: list[str] = []
            for option in judges:
                misfit = option(value)
                if not misfit:
                    return ""
                found.append(misfit)
            return _joined(found)

        return judge

    def _elements(self, schema: Mapping[str, Any]) -> Judge | None:
        fit = self.compile(schema.get("items"))
        least, most = limits(schema, "Items")
        if fit is None and (least, most) == NO_LIMITS:
            return None

        def judge(value: Any) -> str:
            if not is_array(value):
                return ""
            if not least <= len(value) <= most:
                wanted = f"at least {least}" if len(value) < least else f"at most {most}"
                return f"has {len(value)} elements, expected {wanted}"
            return "" if fit is None else _first_misfit(value, fit)

        return judge

    def _fields(self, schema: Mapping[str, Any]) -> Judge | None:
        properties = schema.get("properties")
        fits = {name: self.compile(one) for name, one in (properties or {}).items()}
        required = schema.get("required")
        needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        judged = {name: fit.judge for name, fit in fits.items() if fit is not None}
        if not judged and not needed:
            return None

        def judge(value: Any) -> str:
            if not isinstance(value, Mapping):
                return ""
            for name in needed:
                if name not in value:
                    return f"has no {name!r}"
            for name, item in value.items():
                found = judged[name](item) if name in judged else ""
                if found:
                    return f"[{name!r}] {found}"
            return ""

        return judge


def _all_of(judges: Sequence[Judge]) -> Judge:
    if len(judges) == 1:
        return judges[0]

    def judge(value: Any) -> str:
        for one in judges:
            found = one(value)
            if found:
                return found
        return ""

    return judge


def _joined(found: Sequence[str]) -> str:
    """Say in one sentence why none of several options fits."""
    parts = [misfit.partition(", expected ") for misfit in found]
    if len({head for head, _, _ in parts}) == 1 and all(wanted for _, _, wanted in parts):
        return f"{parts[0][0]}, expected {' or '.join(dict.fromkeys(wanted for _, _, wanted in parts))}"
    return "; ".join(dict.fromkeys(found))


def _typed(schema: Mapping[str, Any]) -> Fit | None:
    """Compile what a schema says about the type."""
    named = schema.get("type", schema.get(PYTHON_TYPE))
    names = [named] if isinstance(named, str) else list(named or ())
    if not names:
        return None
    kinds = [name for name in names if name in JSON_TYPES]
    classes = [name for name in names if name not in JSON_TYPES]
    expected = " or ".join(names)
    # Of these all instances fit, if one does; of others, such as a float for an integer, it depends on the value.
    always = (numbers.Number, str) if "number" in kinds else (numbers.Integral, str)
    quick = {kind for name in kinds for kind in JSON_CLASSES[name]}

    def judge(value: Any) -> str:
        cls = type(value)
        if cls in quick:
            return ""
        if any(is_kind(value, kind) for kind in kinds):
            if issubclass(cls, always):
                quick.add(cls)
            return ""
        if any(is_instance(value, name) for name in classes):
            quick.add(cls)
            return ""
        if not is_plain(scalar(value)):
            return f"is a {name_of(cls)}, expected {expected}"
        return f"is {shown(value)} ({name_of(cls)}), expected {expected}"

    return Fit(quick, judge)


def _first_misfit(value: Any, fit: Fit) -> str:
    numpy_kind = getattr(getattr(value, "dtype", None), "kind", "")
    if numpy_kind and value.ndim == 1 and _OF_PYTHON.get(numpy_kind) in fit.quick:
        return ""
    if not numpy_kind and fit.quick.issuperset(map(type, value)):
        return ""
    for index, item in enumerate(value):
        if type(item) not in fit.quick:
            found = fit.judge(item)
            if found:
                return f"[{index}] {found}"
    return ""


def is_stream(value: Any) -> bool:
    """Whether a value is read item by item, so that nobody can judge it as a whole."""
    return isinstance(value, Iterator | AsyncIterator)
