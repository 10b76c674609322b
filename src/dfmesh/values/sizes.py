"""An estimate of how many bytes a value takes on the wire."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from itertools import islice
from typing import Any

_SAMPLE = 64
_MAX_DEPTH = 16
_ATOM = 9
_ATOMS = frozenset({type(None), bool, int, float})


def size_of(value: Any) -> int:
    """Estimate the encoded size of a value, in bytes.

    Arrays, tables, text and bytes are measured; of a long container only a sample of the parts is looked at, so the
    cost does not grow with the value. Values that cannot be sent have a size, too.
    """
    return _size(value, _MAX_DEPTH)


def _size(value: Any, levels: int) -> int:
    if type(value) in _ATOMS:
        return _ATOM
    if isinstance(value, (str, bytes, bytearray)):
        return len(value) + 5
    nbytes = getattr(value, "nbytes", None)
    if type(nbytes) is int:
        return nbytes + 32
    if levels == 0:
        return _ATOM
    if isinstance(value, Mapping):
        return _sampled(value, levels) + _sampled(value.values(), levels)
    if isinstance(value, (list, tuple, set, frozenset)):
        return _sampled(value, levels)
    return _size_of_instance(value, levels)


def _sampled(parts: Collection[Any], levels: int) -> int:
    count = len(parts)
    if count <= _SAMPLE:
        return 3 + sum(_size(part, levels - 1) for part in parts)
    if isinstance(parts, (list, tuple)):
        sample = [parts[index * count // _SAMPLE] for index in range(_SAMPLE)]
    else:
        sample = list(islice(parts, _SAMPLE))
    return 5 + count * sum(_size(part, levels - 1) for part in sample) // _SAMPLE


def _size_of_instance(value: Any, levels: int) -> int:
    cls = type(value)
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    else:
        names = [*getattr(cls, "model_fields", ()), *getattr(cls, "__struct_fields__", ())]
    if names:
        return len(cls.__qualname__) + sum(len(name) + _size(getattr(value, name, None), levels - 1) for name in names)
    usage = getattr(value, "memory_usage", None) if cls.__module__.startswith("pandas.") else None
    if usage is None:
        return _ATOM
    total = usage(index=True)
    return int(getattr(total, "sum", lambda: total)())
