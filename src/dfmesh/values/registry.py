"""Classes of users whose instances may be sent, and rebuilt by name.

A class is found by looking into this registry, never by importing what a sender names.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable
from enum import Enum, Flag
from typing import Any, NamedTuple, TypeVar

import msgspec

from dfmesh.errors import UnknownClassError
from dfmesh.values.kinds import BY_TYPE, Kind, Unsendable, declare

C = TypeVar("C", bound=type)

_NAME = ""
"""Key of the class name in a payload of fields; no field can be called so."""


class KnownClass(NamedTuple):
    """How instances of one class travel.

    Attributes:
        name: What the class is called between sites.
        has_fields: Whether `take_apart` gives a dictionary from field names to values.
        take_apart: From an instance to a value.
        build: The way back; may raise anything.
    """

    name: str
    has_fields: bool
    take_apart: Callable[[Any], Any]
    build: Callable[[Any], Any]


_BY_NAME: dict[str, KnownClass] = {}
_BY_CLASS: dict[type, KnownClass] = {}


def register_type(
    cls: C,
    *,
    name: str | None = None,
    to_value: Callable[[Any], Any] | None = None,
    from_value: Callable[[Any], Any] | None = None,
) -> C:
    """Let instances of a class be rebuilt when they arrive. May be used as a decorator.

    Dataclasses, pydantic models, enums, named tuples and msgspec structs need nothing else; other classes need
    `to_value` and `from_value`. A class registered again under its name replaces the earlier one (a notebook cell
    that is run twice). To be called in the module that defines the class, or in one that defines adapters.

    Args:
        cls: The class.
        name: What to call it between sites; `module.qualname` if left out. Must be the same at both ends.
        to_value: Takes an instance apart into a value that can be sent.
        from_value: Builds an instance from that value.

    Returns:
        The class.

    Raises:
        TypeError: instances of the class cannot be sent, or only one of the two functions is given.
    """
    if (to_value is None) != (from_value is None):
        raise TypeError(f"register_type({cls.__name__}): give both to_value and from_value, or none")
    name = name or _name_of(cls)
    if to_value is not None and from_value is not None:
        known: KnownClass | None = KnownClass(name, False, to_value, from_value)
    else:
        known = _known_class(cls, name)
    if known is None:
        kinds = "a dataclass, pydantic model, enum, NamedTuple or msgspec.Struct"
        raise TypeError(f"register_type({cls.__name__}): it is not {kinds}; give to_value and from_value")
    _remember(cls, known)
    return cls


def refuse_unregistered(cls: type) -> None:
    """Refuse an instance of a class that would only have to be registered.

    What one process knows another may not, and a class that became known by being sent would make the outcome depend
    on what was sent before.

    Raises:
        Unsendable: the class is such a one.
    """
    if _known_class(cls, "") is not None:
        name = _name_of(cls)
        raise Unsendable(f"the class {name} is not registered in this process; {_how(name)}")


def _name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _remember(cls: type, known: KnownClass) -> None:
    _BY_NAME[known.name] = known
    _BY_CLASS[cls] = known
    BY_TYPE[cls] = INSTANCE


def _known_class(cls: type, name: str) -> KnownClass | None:
    if issubclass(cls, Enum):
        return _known_enum(cls, name)
    if dataclasses.is_dataclass(cls):
        return _known_dataclass(cls, name)
    if issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple):
        return KnownClass(name, False, list, cls._make)  # type: ignore[attr-defined]
    if issubclass(cls, msgspec.Struct):
        return KnownClass(name, True, msgspec.structs.asdict, lambda fields: cls(**fields))
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and issubclass(cls, pydantic.BaseModel):
        from dfmesh.values import models

        return KnownClass(name, True, models.take_apart, models.builder(cls))
    return None


def _known_enum(cls: type[Enum], name: str) -> KnownClass:
    if issubclass(cls, Flag):
        return KnownClass(name, False, lambda member: member.value, cls)
    return KnownClass(name, False, lambda member: member.name, lambda member: cls[member])


def _known_dataclass(cls: type, name: str) -> KnownClass:
    fields = dataclasses.fields(cls)
    computed = {field.name for field in fields if not field.init}
    parameters = inspect.signature(cls).parameters.keys()
    misfit = parameters ^ {field.name for field in fields if field.init}

    def take_apart(instance: Any) -> dict[str, Any]:
        if misfit:
            names = ", ".join(sorted(misfit))
            what = f"the constructor of {cls} does not take exactly its fields ({names})"
            raise Unsendable(f"{what}; use dfmesh.values.register_type with to_value and from_value")
        try:
            return {field.name: getattr(instance, field.name) for field in fields}
        except AttributeError as error:
            raise Unsendable(f"a {cls.__name__} lacks a field: {error}") from error

    def build(values: dict[str, Any]) -> Any:
        instance = cls(**{name: value for name, value in values.items() if name not in computed})
        for name in computed & values.keys():
            object.__setattr__(instance, name, values[name])
        return instance

    return KnownClass(name, True, take_apart, build)


def _reduce(instance: Any) -> Any:
    known = _BY_CLASS[type(instance)]
    parts = known.take_apart(instance)
    return {_NAME: known.name, **parts} if known.has_fields else [known.name, parts]


def _rebuild(payload: Any) -> Any:
    if type(payload) is dict:
        name = payload.pop(_NAME)
        parts: Any = payload
    else:
        name, parts = payload
    known = _BY_NAME.get(name)
    if known is None:
        raise UnknownClassError(str(name), _how(str(name)))
    if known.has_fields != (parts is payload):
        raise ValueError(f"{name} has other parts here")
    return known.build(parts)


def _how(name: str) -> str:
    where = "put @dfmesh.register_type above it"
    if name.startswith("__main__."):
        return f"it is defined in a script: move it to a module that both ends import, and {where}"
    return f"{where}, in a module that both ends import"


def _shown(steps: list[str]) -> list[str]:
    if not steps:
        return steps
    first, *others = steps
    if first == "[1]":
        return others
    return [f".{first[2:-2]}", *others]


INSTANCE = declare(Kind(28, "instance", _reduce, _rebuild, _shown))
