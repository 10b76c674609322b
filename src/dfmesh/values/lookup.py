"""Finds the kind of a value that is about to be sent."""

from __future__ import annotations

import collections.abc
import io
import types
from typing import Any

from dfmesh.values import libraries, registry, standard  # noqa: F401 - `standard` fills the table
from dfmesh.values.kinds import BY_TYPE, Kind, Unsendable

_BUILTINS = (bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset)

_ADVICE: tuple[tuple[tuple[type, ...], str], ...] = (
    ((types.GeneratorType, types.AsyncGeneratorType), "send list(...) of it, or let the adapter itself be a generator"),
    ((types.CoroutineType, collections.abc.Awaitable), "await it and send what it gives"),
    ((io.IOBase,), "send what is in the file, as bytes or text"),
    ((BaseException,), "raise it, or send str(error)"),
    ((types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType, type), "send data, not code"),
    ((collections.abc.Iterator, collections.abc.KeysView, collections.abc.ValuesView), "send list(...) of it"),
    ((collections.abc.ItemsView,), "send list(...) of it"),
)


_PANDAS_ADVICE = {
    "Timestamp": "send value.to_pydatetime(), or an array of datetime64",
    "Timedelta": "send value.to_pytimedelta(), or an array of timedelta64",
    "NaTType": "send None in its place",
    "NAType": "send None in its place",
    "Categorical": "send pandas.Series(value)",
}


def kind_of(value: Any) -> Kind:
    """Find the kind of a value that is not of a plain type.

    Raises:
        Unsendable: there is none.
    """
    cls = type(value)
    kind = BY_TYPE.get(cls) or libraries.find_kind(cls)
    if kind is None:
        registry.refuse_unregistered(cls)
        raise Unsendable(f"{cls} cannot be sent between sites; {_advice(value)}")
    return kind


def _advice(value: Any) -> str:
    if type(value).__module__.partition(".")[0] == "pandas":
        name = type(value).__name__
        if name.endswith("Index"):
            return "send it as a column, value.to_series()"
        if name in _PANDAS_ADVICE:
            return _PANDAS_ADVICE[name]
    for kinds, advice in _ADVICE:
        if isinstance(value, kinds):
            return advice
    for base in _BUILTINS:
        if isinstance(value, base):
            how = f"register_type({type(value).__name__}, to_value={base.__name__}, from_value={type(value).__name__})"
            return f"send {base.__name__}(...) of it, or make it known with dfmesh.values.{how}"
    return "send plain data, a dataclass or a model, or make the class known with dfmesh.values.register_type"
