"""The careful encoder: values that are not plain, to MessagePack with extensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from msgspec import Raw
from msgspec.msgpack import Encoder, Ext

from dfmesh.errors import ValueEncodingError
from dfmesh.values import kinds
from dfmesh.values.kinds import Blob, Unsendable
from dfmesh.values.lookup import kind_of
from dfmesh.values.plain import ATOMS, LARGE, MAX_DEPTH, TEXT_ATOMS

encode = Encoder().encode

MAX_PARTS = 1 << 22
"""Containers in one value, counted as often as they are met: a few lines of Python can share one list 2**60 times."""

BYTES_CODE = 8
_ONLY_TUPLES = {tuple}
Buffer = bytes | memoryview


def encode_carefully(value: Any, out_of_band: bool) -> tuple[bytes, list[Buffer]]:
    """Encode any value; gives its head and its large buffers (none unless `out_of_band`).

    Raises:
        ValueEncodingError: a part may not be sent; says which, why and what to do.
    """
    buffers: list[Buffer] = []
    try:
        try:
            head = encode(Lowering(buffers if out_of_band else None).lower(value))
        except (OverflowError, UnicodeEncodeError):
            buffers.clear()
            head = encode(Lowering(buffers if out_of_band else None, careful=True).lower(value))
    except Unsendable as error:
        raise ValueEncodingError(explain(error)) from error.__cause__
    except RecursionError:
        raise ValueEncodingError("value is nested too deeply to be encoded from here; flatten it") from None
    return head, buffers


def explain(error: Unsendable) -> str:
    """Say where in the value the part is that cannot be sent, and why."""
    steps = error.steps[::-1]
    owners = error.owners[::-1]
    first_seen: dict[int, int] = {}
    for depth, owner in enumerate(owners):
        if first_seen.setdefault(owner, depth) != depth:
            start = first_seen[owner]
            place, inner = "".join(steps[:start]), "".join(steps[:depth])
            return f"value{place} contains itself (at value{inner}); send a value without cycles"
    place = "".join(steps) if len(steps) <= 20 else f"{''.join(steps[:8])}...{''.join(steps[-4:])}"
    return f"value{place}: {error.reason}"


def check_nesting(depth: int, parts: int) -> None:
    """Refuse values that are too deep, or have too many containers.

    Raises:
        Unsendable: it is so.
    """
    if depth > MAX_DEPTH:
        raise Unsendable(f"nested more than {MAX_DEPTH} levels deep; flatten it")
    if parts > MAX_PARTS:
        raise Unsendable(f"more than {MAX_PARTS} containers in one value; send an array or an Arrow table")


class Lowering:
    """Turns one value into something that MessagePack encodes: atoms, lists, dictionaries and extensions.

    Args:
        buffers: Where large buffers go; None keeps them in place.
        careful: Check integers and text, too. A value that has them is rare and met in the first attempt.
    """

    __slots__ = ("buffers", "careful", "depth", "parts")

    def __init__(self, buffers: list[Buffer] | None, careful: bool = False) -> None:
        self.buffers = buffers
        self.careful = careful
        self.depth = 0
        self.parts = 0

    def lower(self, value: Any) -> Any:
        """Turn a value, or a payload, into something that MessagePack encodes.

        Raises:
            Unsendable: it, or a part of it, may not be sent.
        """
        known = _LOWERED.get(type(value))
        if known is not None:
            return known(self, value)
        kind = kind_of(value)
        try:
            data = encode(self.lower(kind.take_apart(value)))
        except Unsendable as error:
            error.blame(kind, value)
            raise
        return Ext(kind.code, data)

    def enter(self) -> None:
        """Go one level down."""
        self.depth += 1
        self.parts += 1
        check_nesting(self.depth, self.parts)

    def lower_int(self, value: int) -> Any:
        """Keep an integer of 64 bits; a larger one becomes its bytes, least significant first."""
        if not self.careful or -(1 << 63) <= value < 1 << 64:
            return value
        return Ext(kinds.BIG_INT, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))

    def lower_text(self, value: str) -> Any:
        """Keep Unicode text; text with lone surrogates (undecodable file names) becomes an extension."""
        if self.careful:
            try:
                value.encode()
            except UnicodeEncodeError:
                return Ext(kinds.ODD_TEXT, value.encode("utf-8", "surrogatepass"))
        return value

    def lower_bytes(self, value: bytes) -> Any:
        """Keep bytes in place unless there are many."""
        if self.buffers is None or len(value) < LARGE:
            return value
        return Ext(BYTES_CODE, encode(self.lower_blob(Blob(value))))

    def lower_blob(self, blob: Blob) -> Any:
        """Put a large buffer aside and refer to it."""
        data = blob.data
        if self.buffers is None or len(data) < LARGE:
            return data
        self.buffers.append(data if type(data) is bytes else memoryview(data).toreadonly())
        return Ext(kinds.BUFFER, encode(len(self.buffers) - 1))

    def lower_list(self, value: list[Any]) -> Any:
        """Lower the items; a list of atoms stays the object it is, one of flat tuples has a short form."""
        if not self.careful:
            found = set(map(type, value))
            if found <= TEXT_ATOMS:
                return value
            if found == _ONLY_TUPLES and TEXT_ATOMS.issuperset(map(type, chain.from_iterable(value))):
                return Ext(kinds.TUPLES, encode(value))
        return self.lower_items(value, value)

    def lower_items(self, items: Iterable[Any], owner: Any) -> list[Any]:
        """Lower items one by one into a new list."""
        self.enter()
        lowered: list[Any] = []
        lower = self.lower
        try:
            for item in items:
                lowered.append(lower(item))  # noqa: PERF401 - its length tells where an error was
        except Unsendable as error:
            error.steps.append(f"[{len(lowered)}]")
            error.owners.append(id(owner))
            raise
        self.depth -= 1
        return lowered

    def lower_tuple(self, value: tuple[Any, ...]) -> Ext:
        """Make the extension whose data is the tuple as an array."""
        if not self.careful and TEXT_ATOMS.issuperset(map(type, value)):
            return Ext(kinds.TUPLE, encode(value))
        return Ext(kinds.TUPLE, encode(self.lower_items(value, value)))

    def lower_dict(self, value: dict[Any, Any]) -> Any:
        """Lower the values; keys that are not atoms make it an extension of pairs."""
        atoms = ATOMS.issuperset(map(type, value))
        if atoms and not self.careful and TEXT_ATOMS.issuperset(map(type, value.values())):
            return value
        self.enter()
        lowered: dict[Any, Any] = {}
        key: Any = None
        try:
            for key, item in value.items():
                lowered[key] = self.lower(item)
        except Unsendable as error:
            error.steps.append(f"[{short(key)}]")
            error.owners.append(id(value))
            raise
        result = lowered if atoms and not self.careful else self.lower_keys(lowered, value)
        self.depth -= 1
        return result

    def lower_keys(self, lowered: dict[Any, Any], owner: dict[Any, Any]) -> Any:
        """Lower the keys of a dictionary whose values are lowered already."""
        pairs: list[Any] = []
        in_place = Lowering(None, self.careful)
        in_place.depth = self.depth
        try:
            for key, item in lowered.items():
                pairs += (in_place.lower(key), item)
        except Unsendable as error:
            error.steps, error.owners = [f" (key {short(key)})"], [id(owner)]
            raise
        if ATOMS.issuperset(map(type, pairs[::2])):
            return lowered
        return Ext(kinds.PAIRS, encode(pairs))

    def lower_set(self, value: set[Any] | frozenset[Any]) -> Ext:
        """Make the extension whose data is the elements, sorted by their encoding."""
        code = kinds.SET if type(value) is set else kinds.FROZENSET
        if not self.careful and TEXT_ATOMS.issuperset(map(type, value)):
            return Ext(code, encode([Raw(element) for element in sorted(map(encode, value))]))
        self.enter()
        in_place = Lowering(None, self.careful)
        in_place.depth = self.depth
        encoded: list[bytes] = []
        item: Any = None
        try:
            for item in value:
                encoded.append(encode(in_place.lower(item)))
        except Unsendable as error:
            error.steps, error.owners = [f" (element {short(item)})"], [id(value)]
            raise
        self.depth -= 1
        return Ext(code, encode([Raw(element) for element in sorted(encoded)]))


def _keep(_: Lowering, value: Any) -> Any:
    return value


def short(key: Any) -> str:
    """Show a key or element in an error message."""
    try:
        text = repr(key)
    except Exception:
        # Only for an error message; the user's class may do what it likes.
        text = f"a {type(key).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


_LOWERED: dict[type, Callable[[Lowering, Any], Any]] = {
    type(None): _keep,
    bool: _keep,
    float: _keep,
    int: Lowering.lower_int,
    str: Lowering.lower_text,
    bytes: Lowering.lower_bytes,
    Blob: Lowering.lower_blob,
    list: Lowering.lower_list,
    tuple: Lowering.lower_tuple,
    dict: Lowering.lower_dict,
    set: Lowering.lower_set,
    frozenset: Lowering.lower_set,
}
