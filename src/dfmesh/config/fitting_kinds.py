"""Which of JSON's kinds a Python value can stand for, and whether it is an instance of a class named in a schema."""

from __future__ import annotations

import numbers
import reprlib
import sys
from collections.abc import Mapping, Set
from decimal import Decimal
from typing import Any

JSON_CLASSES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}
"""Classes of Python's own that JSON has a kind for."""

_NUMBER_LIKE = ("__float__", "__int__", "__array__", "as_py")
"""What objects have that can stand for a number, such as arrays of no dimension and Arrow scalars."""

SHORT = reprlib.Repr()
"""Writes values for messages."""

SHORT.maxstring = SHORT.maxother = SHORT.maxlong = 60


def is_kind(value: Any, kind: str) -> bool:
    """Whether a value that is no exact instance of what JSON has can stand for a kind of JSON."""
    value = scalar(value)
    cls = type(value)
    if is_boolean(cls):
        return kind == "boolean"
    if isinstance(value, numbers.Number):
        return kind == "number" or (kind == "integer" and _is_whole(value))
    if isinstance(value, str):
        return kind == "string"
    if value is None:
        return kind == "null"
    if is_array(value):
        return kind == "array"
    if isinstance(value, Mapping):
        return kind == "object"
    if kind in ("number", "integer", "boolean"):
        return any(hasattr(cls, name) for name in _NUMBER_LIKE)
    return kind != "null"


def scalar(value: Any) -> Any:
    """Give the element of an array without dimensions; any other value as it is."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value


def is_boolean(cls: type) -> bool:
    """Whether it is a class of truth values, Python's or numpy's."""
    return issubclass(cls, bool) or (cls.__module__ == "numpy" and cls.__name__ in ("bool_", "bool"))


def _is_whole(value: Any) -> bool:
    if isinstance(value, numbers.Integral):
        return True
    return isinstance(value, numbers.Real | Decimal) and bool(value == value // 1)


def is_array(value: Any) -> bool:
    """Whether a value has elements that JSON would write in an array."""
    if isinstance(value, list | tuple | Set | range):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray) and value.ndim > 0


def is_plain(value: Any) -> bool:
    """Whether a value is of a class that JSON has a kind for."""
    return any(isinstance(value, kinds) for kinds in JSON_CLASSES.values())


def is_instance(value: Any, name: str) -> bool:
    """Whether a value is an instance of a class named in a schema; so is any but JSON's own where nobody can tell."""
    cls = type(value)
    if any(name_of(base) == name for base in cls.__mro__):
        return True
    found, known = _find(name)
    if known:
        try:
            return isinstance(value, found)
        except TypeError:  # No class: a name that is there to be read, such as that of a type alias.
            return True
    return not is_plain(value)


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


def name_of(cls: type) -> str:
    """Name a class as a schema does."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def shown(value: Any) -> str:
    """Write a value for a message, cut short."""
    return SHORT.repr(scalar(value))
