"""What two owners mean by an operation: the same text for the same interface, and the differences of two in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

MAX_DIFFERENCES = 5
"""Differences that are told; one would be enough to refuse."""

_LONGEST = 60


class ParameterInterface(msgspec.Struct, frozen=True, omit_defaults=True):
    """A parameter of an operation.

    Attributes:
        schema: JSON Schema, without what is only for people.
        required: Whether it must be given.
        has_default: Whether there is a default.
        default: What it is if the user gives nothing.
    """

    schema: dict[str, Any]
    required: bool = False
    has_default: bool = False
    default: Any = None


class OperationInterface(msgspec.Struct, frozen=True, omit_defaults=True):
    """What callers and sites have to agree on.

    Attributes:
        parameters: By name.
        returns: What it returns, as the federation file says it.
        version: What the federation file calls this version of it.
    """

    parameters: dict[str, ParameterInterface]
    returns: str = ""
    version: str = ""

    def to_text(self) -> str:
        """Give JSON that is the same for equal interfaces."""
        return msgspec.json.encode(self, order="deterministic").decode()


def interface_differences(here: str, there: str) -> list[str]:
    """Say in words how two interfaces differ.

    Args:
        here: Text of the one of the site that says so.
        there: Text of the one that the pipeline was compiled against. May be anything, it comes from a peer.

    Returns:
        Such as `parameter 'hour': integer here, string at the client`; a few of them at most.
    """
    try:
        own = msgspec.json.decode(here, type=OperationInterface)
        theirs = msgspec.json.decode(there, type=OperationInterface)
        found = list(_differences(own, theirs))
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return ["what the pipeline was compiled against cannot be read"]
    more = [f"and {len(found) - MAX_DIFFERENCES} more"] if len(found) > MAX_DIFFERENCES else []
    return [*found[:MAX_DIFFERENCES], *more] or ["they are written differently"]


def _differences(here: OperationInterface, there: OperationInterface) -> Iterator[str]:
    if here.version != there.version:
        yield f"version {here.version or 'not given'} here, {there.version or 'not given'} at the client"
    for name, own in here.parameters.items():
        theirs = there.parameters.get(name)
        if theirs is None:
            yield f"parameter {name!r} is not known to the client" + (", and is required here" if own.required else "")
            continue
        yield from (f"parameter {name!r}{text}" for text in _parameter_differences(own, theirs))
    for name in there.parameters:
        if name not in here.parameters:
            yield f"parameter {_short(name)} is not known here"
    if here.returns != there.returns:
        yield f"the result: {_named(here.returns)} here, {_named(there.returns)} at the client"


def _parameter_differences(here: ParameterInterface, there: ParameterInterface) -> Iterator[str]:
    if here.required != there.required:
        first, second = ("required", "optional") if here.required else ("optional", "required")
        yield f": {first} here, {second} at the client"
    if (here.has_default, here.default) != (there.has_default, there.default):
        yield f": default {_default(here)} here, {_default(there)} at the client"
    yield from _schema_differences(here.schema, there.schema, "")


def _schema_differences(here: Mapping[str, Any], there: Mapping[str, Any], path: str) -> Iterator[str]:
    for key in dict.fromkeys([*here, *there]):
        own, theirs = here.get(key), there.get(key)
        if own == theirs and (key in here) == (key in there):
            continue
        where = path if key == "type" else f"{path}.{key}"
        if isinstance(own, dict) and isinstance(theirs, dict):
            yield from _schema_differences(own, theirs, where)
        else:
            yield f"{where}: {_named(own)} here, {_named(theirs)} at the client"


def _default(parameter: ParameterInterface) -> str:
    return _short(parameter.default) if parameter.has_default else "not given"


def _named(value: Any) -> str:
    if value is None or value == "":
        return "not given"
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 3]}..."
    return _short(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
