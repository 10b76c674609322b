"""Whether values fit the JSON Schemas of parameters: the one check, made before the run and by sites at each call.

A schema is compiled once into a `Fit`. What JSON has no kind for (a table, a date, an instance of a class) is judged by
the Python classes that the schema names, and otherwise only where it clearly cannot stand for what the schema says.
Classes are looked for among the modules that are loaded; nothing is imported for a value.
"""

from __future__ import annotations

import math
import numbers
import re
import reprlib
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from typing import Any, NamedTuple

from dfmesh.api import Parameter
from dfmesh.config.schema import JSON_TYPES, PYTHON_TYPE

Judge = Callable[[Any], str]
"""Says why a value does not fit, as what follows its name in a sentence; empty if it does."""

_QUICK: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}
_OF_PYTHON = {"i": int, "u": int, "f": float, "b": bool, "U": str}
"""Kinds of numpy data types, and what their elements are to a schema."""

_NUMBER_LIKE = ("__float__", "__int__", "__array__", "as_py")
"""What objects have that can stand for a number, such as arrays of no dimension and Arrow scalars."""

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 60


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
            return Fit(frozenset(), lambda value: f"is {_short.repr(value)}, where nothing may be")
        if not isinstance(schema, Mapping):
            return None
        judges = [judge for judge in self._judges(schema) if judge is not None]
        typed = _typed(schema)
        if typed is None:
            return None if not judges else Fit(frozenset(), _all_of(judges))
        if not judges:
            return typed
        judge = _all_of([typed.judge, *judges])
        return Fit(frozenset(), _within(schema, typed.quick, judge) if len(judges) == 1 else judge)

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
            yield _one_of(schema["enum"])
        if "const" in schema:
            yield _one_of([schema["const"]])
        yield _bounds(schema)
        yield _lengths(schema)
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
        least, most = _limits(schema, "Items")
        if fit is None and (least, most) == _NO_LIMITS:
            return None

        def judge(value: Any) -> str:
            if not _is_array(value):
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


# Types


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
    quick = {kind for name in kinds for kind in _QUICK[name]}

    def judge(value: Any) -> str:
        cls = type(value)
        if cls in quick:
            return ""
        if any(_is_kind(value, kind) for kind in kinds):
            if issubclass(cls, always):
                quick.add(cls)
            return ""
        if any(_is_instance(value, name) for name in classes):
            quick.add(cls)
            return ""
        if not _is_plain(_scalar(value)):
            return f"is a {_name_of(cls)}, expected {expected}"
        return f"is {_shown(value)} ({_name_of(cls)}), expected {expected}"

    return Fit(quick, judge)


def _is_kind(value: Any, kind: str) -> bool:
    """Whether a value that is no exact instance of what JSON has can stand for a kind of JSON."""
    value = _scalar(value)
    cls = type(value)
    if _is_boolean(cls):
        return kind == "boolean"
    if isinstance(value, numbers.Number):
        return kind == "number" or (kind == "integer" and _is_whole(value))
    if isinstance(value, str):
        return kind == "string"
    if value is None:
        return kind == "null"
    if _is_array(value):
        return kind == "array"
    if isinstance(value, Mapping):
        return kind == "object"
    if kind in ("number", "integer", "boolean"):
        return any(hasattr(cls, name) for name in _NUMBER_LIKE)
    return kind != "null"


def _scalar(value: Any) -> Any:
    """Give the element of an array without dimensions; any other value as it is."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value


def _is_boolean(cls: type) -> bool:
    return issubclass(cls, bool) or (cls.__module__ == "numpy" and cls.__name__ in ("bool_", "bool"))


def _is_whole(value: Any) -> bool:
    if isinstance(value, numbers.Integral):
        return True
    return isinstance(value, numbers.Real | Decimal) and bool(value == value // 1)


def _is_array(value: Any) -> bool:
    if isinstance(value, list | tuple | Set | range):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray) and value.ndim > 0


def _is_plain(value: Any) -> bool:
    return any(isinstance(value, kinds) for kinds in _QUICK.values())


def _is_instance(value: Any, name: str) -> bool:
    """Whether a value is an instance of a class named in a schema; so is any but JSON's own where nobody can tell."""
    cls = type(value)
    if any(_name_of(base) == name for base in cls.__mro__):
        return True
    found, known = _find(name)
    if known:
        try:
            return isinstance(value, found)
        except TypeError:  # No class: a name that is there to be read, such as that of a type alias.
            return True
    return not _is_plain(value)


def _find(name: str) -> tuple[Any, bool]:
    """Look for what a dotted name means among the modules that are loaded, and say whether it was found."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:count]))
        if found is None:
            continue
        try:
            for part in parts[count:]:
                found = getattr(found, part)
        except AttributeError:
            continue
        return found, True
    return None, False


def _name_of(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _shown(value: Any) -> str:
    return _short.repr(_scalar(value))


# What else a schema may say


def _one_of(allowed: Sequence[Any]) -> Judge:
    def judge(value: Any) -> str:
        value = _scalar(value)
        if not (_is_plain(value) or isinstance(value, numbers.Number)) or value in allowed:
            return ""
        return f"is {_shown(value)}, expected one of {', '.join(map(repr, allowed))}"

    return judge


_BOUNDS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "minimum": (lambda value, bound: value < bound, "below the minimum"),
    "maximum": (lambda value, bound: value > bound, "above the maximum"),
    "exclusiveMinimum": (lambda value, bound: value <= bound, "expected more than"),
    "exclusiveMaximum": (lambda value, bound: value >= bound, "expected less than"),
    "multipleOf": (lambda value, bound: bound and value % bound, "expected a multiple of"),
}


def _bounds(schema: Mapping[str, Any]) -> Judge | None:
    bounds = [
        (fails, schema[key], text) for key, (fails, text) in _BOUNDS.items() if type(schema.get(key)) in (int, float)
    ]
    if not bounds:
        return None

    def judge(value: Any) -> str:
        if type(value) is not int and type(value) is not float:
            value = _scalar(value)
            if not isinstance(value, numbers.Real) or _is_boolean(type(value)):
                return ""
        for fails, bound, text in bounds:
            if fails(value, bound):
                return f"is {_shown(value)}, {text} {bound!r}"
        return ""

    return judge


def _within(schema: Mapping[str, Any], types: Set[type], judge: Judge) -> Judge:
    """Let plain numbers between `minimum` and `maximum` pass quickly, where that is all that is asked for."""
    asked = {key for key in schema if key in _BOUNDS}
    bounds = [schema.get("minimum", -math.inf), schema.get("maximum", math.inf)]
    if not asked or asked - {"minimum", "maximum"} or any(type(bound) not in (int, float) for bound in bounds):
        return judge
    least, most = bounds
    numeric = {int, float} & types

    def judge_number(value: Any) -> str:
        if type(value) in numeric and least <= value <= most:
            return ""
        return judge(value)

    return judge_number


_NO_LIMITS = (0, sys.maxsize)


def _limits(schema: Mapping[str, Any], what: str) -> tuple[int, int]:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    return least if type(least) is int else 0, most if type(most) is int else sys.maxsize


def _lengths(schema: Mapping[str, Any]) -> Judge | None:
    least, most = _limits(schema, "Length")
    pattern = _pattern(schema.get("pattern"))
    if (least, most) == _NO_LIMITS and pattern is None:
        return None

    def judge(value: Any) -> str:
        if not isinstance(value, str):
            return ""
        if not least <= len(value) <= most:
            wanted = f"at least {least}" if len(value) < least else f"at most {most}"
            return f"is {_short.repr(value)} of {len(value)} characters, expected {wanted}"
        if pattern is not None and not pattern.search(value):
            return f"is {_short.repr(value)}, expected what matches {pattern.pattern!r}"
        return ""

    return judge


def _pattern(text: Any) -> re.Pattern[str] | None:
    """Compile a pattern; None for one that is written in another dialect than Python's."""
    try:
        return re.compile(text) if isinstance(text, str) and text else None
    except re.error:
        return None


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
