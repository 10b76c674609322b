"""Values in JSON documents: plain values as they are, all others as tagged dictionaries.

A tagged dictionary is `{"@value": <tag>, "of": <payload>}`. A dictionary of the user that has keys such as pipeline
documents use for their own marks is tagged, too, so that it is never taken for one.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from typing import Any

from dfmesh.errors import ValueDecodingError, ValueEncodingError
from dfmesh.values import decoding
from dfmesh.values.encoding import check_nesting, encode_carefully, explain, short
from dfmesh.values.kinds import BY_TAG, Blob, Unsendable
from dfmesh.values.lookup import kind_of
from dfmesh.values.plain import MAX_DEPTH

TAG, PAYLOAD = "@value", "of"
_MARKS = ("@", "dfm_")
_MAX_EXACT_INT = 1 << 63
_MAX_DOCUMENT_DEPTH = 4 * MAX_DEPTH


def to_json(value: Any) -> Any:
    """Turn a value into an object that any JSON library writes.

    Raises:
        ValueEncodingError: a part of the value may not be sent; says which, why and what to do.
    """
    try:
        return _Writer().write(value)
    except Unsendable as error:
        raise ValueEncodingError(explain(error)) from error.__cause__
    except RecursionError:
        raise ValueEncodingError("value is nested too deeply to be encoded from here; flatten it") from None


def from_json(document: Any) -> Any:
    """Give the value back that `to_json` turned into `document`.

    Raises:
        ValueDecodingError: a tagged dictionary in it is not one of a value.
    """
    try:
        return _read(document, 0)
    except RecursionError as error:
        raise decoding.no_value(error) from error


class _Writer:
    def __init__(self) -> None:
        self.depth = 0
        self.parts = 0

    def write(self, value: Any) -> Any:
        known = _WRITTEN.get(type(value))
        if known is not None:
            return known(self, value)
        kind = kind_of(value)
        try:
            return _tagged(kind.tag, self.write(kind.take_apart(value)))
        except Unsendable as error:
            error.blame(kind, value)
            raise

    def enter(self) -> None:
        self.depth += 1
        self.parts += 1
        check_nesting(self.depth, self.parts)

    def int(self, value: int) -> Any:
        return value if -_MAX_EXACT_INT <= value < _MAX_EXACT_INT else _tagged("int", hex(value))

    def float(self, value: float) -> Any:
        if math.isfinite(value):
            return value
        text = repr(value)
        bits = struct.pack(">d", value)
        return _tagged("float", text if bits == struct.pack(">d", float(text)) else f"0x{bits.hex()}")

    def text(self, value: str) -> Any:
        try:
            value.encode()
        except UnicodeEncodeError:
            return _tagged("text", _base64(value.encode("utf-8", "surrogatepass")))
        return value

    def data(self, value: bytes) -> Any:
        return _tagged("bytes", _base64(value))

    def list(self, value: Any) -> Any:
        self.enter()
        written: Any = []
        try:
            for item in value:
                written.append(self.write(item))
        except Unsendable as error:
            error.steps.append(f"[{len(written)}]")
            error.owners.append(id(value))
            raise
        self.depth -= 1
        return written

    def tuple(self, value: Any) -> Any:
        return _tagged("tuple", self.list(value))

    def dict(self, value: Any) -> Any:
        self.enter()
        items: Any = []
        key: Any = None
        try:
            for key, item in value.items():
                items.append((self.write(key), self.write(item)))
        except Unsendable as error:
            error.steps.append(f"[{short(key)}]")
            error.owners.append(id(value))
            raise
        self.depth -= 1
        if all(type(key) is str and not key.startswith(_MARKS) for key, _ in items):
            return dict(items)
        return _tagged("dict", [part for pair in items for part in pair])

    def set(self, value: Any) -> Any:
        # In the order of the binary form, which is the same in every run.
        items = list(value)
        try:
            written = self.list(items)
        except Unsendable as error:
            error.steps, error.owners = [" (an element)"], [id(value)]
            raise
        places = sorted(range(len(items)), key=lambda place: encode_carefully(items[place], False)[0])
        return _tagged(type(value).__name__, [written[place] for place in places])


def _tagged(tag: str, payload: Any) -> dict[str, Any]:
    return {TAG: tag, PAYLOAD: payload}


def _base64(data: Any) -> str:
    return base64.b64encode(data).decode("ascii")


_WRITTEN: dict[type, Callable[[_Writer, Any], Any]] = {
    type(None): lambda _, value: value,
    bool: lambda _, value: value,
    int: _Writer.int,
    float: _Writer.float,
    str: _Writer.text,
    bytes: _Writer.data,
    Blob: lambda writer, blob: writer.data(blob.data),
    list: _Writer.list,
    tuple: _Writer.tuple,
    dict: _Writer.dict,
    set: _Writer.set,
    frozenset: _Writer.set,
}


def _parse_int(text: str) -> int:
    return int(text, 16)


def _parse_float(text: str) -> float:
    if not text.startswith("0x"):
        return float(text)
    value: float = struct.unpack(">d", bytes.fromhex(text[2:]))[0]
    return value


def _parse_text(text: str) -> str:
    return str(_parse_base64(text), "utf-8", "surrogatepass")


def _parse_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_REBUILT: dict[str, Callable[[Any], Any]] = {
    "bytes": _parse_base64,
    "int": _parse_int,
    "float": _parse_float,
    "text": _parse_text,
    "tuple": tuple,
    "dict": decoding.rebuild_pairs,
    "set": decoding.rebuild_set,
    "frozenset": lambda payload: frozenset(decoding.rebuild_set(payload)),
}


def _read(document: Any, depth: int) -> Any:
    if depth > _MAX_DOCUMENT_DEPTH:
        raise ValueDecodingError(f"a document has a value nested more than {_MAX_DOCUMENT_DEPTH} levels deep")
    if isinstance(document, list):
        return [_read(item, depth + 1) for item in document]
    if not isinstance(document, dict):
        return document
    if TAG not in document:
        return {key: _read(item, depth + 1) for key, item in document.items()}
    return _rebuild(document, depth)


def _rebuild(document: dict[str, Any], depth: int) -> Any:
    tag = document[TAG]
    if len(document) != 2 or PAYLOAD not in document:
        raise ValueDecodingError(
            f"a dictionary with the key {TAG!r} must have {PAYLOAD!r} and nothing else: {document!r:.200}"
        )
    payload = _read(document[PAYLOAD], depth + 1)
    rebuild = _rebuilder(tag)
    if rebuild is None:
        raise ValueDecodingError(
            f"a document has a value of unknown kind {tag!r:.60}; was it written by a newer dfmesh?"
        )
    try:
        return rebuild(payload)
    except ValueDecodingError:
        raise
    except Exception as error:
        # Constructors of any type may refuse a payload that somebody made up, in any way they like.
        raise ValueDecodingError(
            f"a part of kind {tag!r} in a document cannot be rebuilt: {type(error).__name__}: {error}"
        ) from error


def _rebuilder(tag: Any) -> Callable[[Any], Any] | None:
    if not isinstance(tag, str):
        return None
    return _REBUILT.get(tag) or (BY_TAG[tag].rebuild if tag in BY_TAG else None)
