"""Kinds of the standard library."""

from __future__ import annotations

import os
import pathlib
import re
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from dfmesh.values.kinds import Blob, Kind, Unsendable, declare, drop_first, flat_view

_FACTORIES = {kind.__name__: kind for kind in (list, dict, set, tuple, int, float, str, bool, bytes)}
_ZONE_KEY = re.compile(r"[A-Za-z0-9_+\-]+(/[A-Za-z0-9_+\-]+)*")
_MAX_FRACTION_BITS = 1 << 16


def _rebuild_bytes(payload: Any) -> bytes:
    view = memoryview(payload)
    owner = view.obj
    return owner if type(owner) is bytes and len(owner) == view.nbytes else bytes(view)


declare(Kind(8, "bytes", Blob, _rebuild_bytes))
declare(Kind(9, "bytearray", lambda value: Blob(memoryview(value)), bytearray), bytearray)


def _reduce_memoryview(value: memoryview) -> list[Any]:
    flat = flat_view(value if value.c_contiguous else value.tobytes())
    payload = [value.format, list(value.shape or ()), Blob(flat)]
    try:
        _rebuild_memoryview([*payload[:2], flat])
    except (TypeError, ValueError) as error:
        raise Unsendable(f"a memoryview of format {value.format!r} cannot be sent; send an array or bytes") from error
    return payload


def _rebuild_memoryview(payload: Any) -> memoryview:
    form, shape, data = payload
    view = memoryview(data).toreadonly()
    return view if form == "B" and shape == [len(view)] else view.cast(form, shape)


declare(Kind(10, "memoryview", _reduce_memoryview, _rebuild_memoryview), memoryview)

declare(Kind(11, "complex", lambda value: [value.real, value.imag], lambda payload: complex(*payload)), complex)
declare(Kind(12, "range", lambda value: [value.start, value.stop, value.step], lambda items: range(*items)), range)
declare(Kind(13, "slice", lambda value: [value.start, value.stop, value.step], lambda items: slice(*items)), slice)
declare(Kind(14, "decimal", str, lambda text: Decimal(_checked(text, str))), Decimal)
declare(Kind(15, "uuid", lambda value: value.bytes, lambda data: UUID(bytes=bytes(_checked(data, bytes)))), UUID)


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _reduce_fraction(value: Fraction) -> list[int]:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_FRACTION_BITS:
        raise Unsendable(
            f"a Fraction of more than {_MAX_FRACTION_BITS} bits cannot be sent; send its parts as integers"
        )
    return [value.numerator, value.denominator]


def _rebuild_fraction(payload: Any) -> Fraction:
    parts = [_checked(part, int) for part in payload]
    if any(part.bit_length() > _MAX_FRACTION_BITS for part in parts):
        raise ValueError("too large")
    return Fraction(*parts)


declare(Kind(16, "fraction", _reduce_fraction, _rebuild_fraction), Fraction)


# Dates and times


def _zone_of(value: datetime | time) -> tzinfo | bool | None:
    zone = value.tzinfo
    if zone is UTC:
        return True
    if zone is None or type(zone) in (timezone, ZoneInfo):
        return zone
    raise Unsendable(f"time zone {zone!r} of {type(zone)} cannot be sent; use datetime.timezone or zoneinfo.ZoneInfo")


def _reduce_datetime(value: datetime) -> list[Any]:
    day = [value.year, value.month, value.day]
    return [*day, value.hour, value.minute, value.second, value.microsecond, value.fold, _zone_of(value)]


def _rebuild_datetime(payload: Any) -> datetime:
    year, month, day, hour, minute, second, microsecond, fold, zone = payload
    zone = UTC if zone is True else zone
    return datetime(year, month, day, hour, minute, second, microsecond, zone, fold=fold)


def _reduce_time(value: time) -> list[Any]:
    return [value.hour, value.minute, value.second, value.microsecond, value.fold, _zone_of(value)]


def _rebuild_time(payload: Any) -> time:
    hour, minute, second, microsecond, fold, zone = payload
    return time(hour, minute, second, microsecond, UTC if zone is True else zone, fold=fold)


def _reduce_zone(value: timezone) -> list[Any]:
    name = value.tzname(None)
    offset = value.utcoffset(None)
    return [offset, None if timezone(offset).tzname(None) == name else name]


def _rebuild_zone(payload: Any) -> timezone:
    offset, name = payload
    return timezone(offset) if name is None else timezone(offset, name)


def _reduce_zone_info(value: ZoneInfo) -> str:
    if value.key is None:
        raise Unsendable("a ZoneInfo read from a file has no name and cannot be sent; use ZoneInfo('Area/City')")
    return value.key


def _rebuild_zone_info(key: Any) -> ZoneInfo:
    if not _ZONE_KEY.fullmatch(key):
        raise ValueError(f"{key!r} is not the name of a time zone")
    return ZoneInfo(key)


def _rebuild_date(payload: Any) -> date:
    year, month, day = payload
    return date(year, month, day)


declare(Kind(17, "date", lambda value: [value.year, value.month, value.day], _rebuild_date), date)
declare(Kind(18, "time", _reduce_time, _rebuild_time), time)
declare(Kind(19, "datetime", _reduce_datetime, _rebuild_datetime), datetime)
declare(
    Kind(
        20,
        "timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda items: timedelta(*(_checked(item, int) for item in items)),
    ),
    timedelta,
)
declare(Kind(21, "timezone", _reduce_zone, _rebuild_zone), timezone)
declare(Kind(22, "zoneinfo", _reduce_zone_info, _rebuild_zone_info), ZoneInfo)


# Paths. A concrete path that comes from another kind of system arrives as a pure one.

_WINDOWS = (pathlib.PureWindowsPath, pathlib.WindowsPath)
_CONCRETE = (pathlib.PosixPath, pathlib.WindowsPath)


def _reduce_path(value: pathlib.PurePath) -> list[Any]:
    text = str(value)
    if isinstance(value, _WINDOWS) and pathlib.PureWindowsPath(text) != value:
        # Half a network path, such as //server/, is read as another one by some versions of Python.
        raise Unsendable(f"{value!r} is not a whole path; give server and share, as in //server/share")
    return [isinstance(value, _WINDOWS), type(value) in _CONCRETE, text]


def _rebuild_path(payload: Any) -> pathlib.PurePath:
    windows, concrete, text = payload
    if concrete and windows == (os.name == "nt"):
        return pathlib.Path(text)
    return pathlib.PureWindowsPath(text) if windows else pathlib.PurePosixPath(text)


declare(Kind(23, "path", _reduce_path, _rebuild_path), pathlib.PurePosixPath, *_WINDOWS, pathlib.PosixPath)


# Containers. Values inside them are encoded like all others.


def _reduce_defaultdict(value: defaultdict[Any, Any]) -> list[Any]:
    factory = value.default_factory
    if factory is None:
        return [None, dict(value)]
    name = getattr(factory, "__name__", "")
    if _FACTORIES.get(name) is not factory:
        raise Unsendable(f"a defaultdict whose factory is {factory!r} cannot be sent; send dict(value)")
    return [name, dict(value)]


def _rebuild_defaultdict(payload: Any) -> defaultdict[Any, Any]:
    name, items = payload
    return defaultdict(None if name is None else _FACTORIES[name], _checked(items, dict))


def _rebuild_counter(payload: Any) -> Counter[Any]:
    counter: Counter[Any] = Counter()
    dict.update(counter, _checked(payload, dict))
    return counter


declare(Kind(24, "ordered-dict", dict, lambda items: OrderedDict(_checked(items, dict))), OrderedDict)
declare(Kind(25, "default-dict", _reduce_defaultdict, _rebuild_defaultdict, drop_first), defaultdict)
declare(Kind(26, "counter", dict, _rebuild_counter), Counter)
declare(
    Kind(27, "deque", lambda value: [value.maxlen, list(value)], lambda items: deque(items[1], items[0]), drop_first),
    deque,
)
