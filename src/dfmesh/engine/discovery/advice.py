"""The kinds of advice: what an advisor says about the values of a field."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, ClassVar


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Any = _Nothing()
"""Stands for a value that is not known, since None is a value like any other."""

_SHOWN = 12
_DEEPEST = 20


class AdvisedValue(ABC):
    """What advisors return. `dfmesh` exports the kinds: `AdvisedLiteral`, `AdvisedOneOf` and so on.

    Attributes:
        break_on_advice: Whether later fields shall not be asked about until the user has chosen a value of this one.
    """

    kind: ClassVar[str]
    break_on_advice: bool = False

    @abstractmethod
    def validate(self, value: Any) -> str | None:
        """Say why a value is not among those advised; None if it is."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Give the advice as data that can be sent; `rebuild` makes it again."""

    @abstractmethod
    def __str__(self) -> str: ...

    def assumed_value(self) -> Any:
        """Give a value that is allowed, for advisors of later fields; `NOTHING` if none is known."""
        return NOTHING

    def branches(self) -> tuple[AdvisedValue, ...]:
        """Give the alternatives that later fields shall be asked about one by one."""
        return (self,)

    def options(self) -> tuple[AdvisedValue, ...]:
        """Give the alternatives that a user can choose from."""
        return (self,)


@dataclass(frozen=True)
class AdvisedError(AdvisedValue):
    """Nothing goes: there is no possible value, or the one given is wrong.

    Attributes:
        msg: Why, for the user.
    """

    msg: str
    kind: ClassVar[str] = "error"

    def validate(self, value: Any) -> str | None:
        """Refuse every value."""
        return self.msg

    def describe(self) -> dict[str, Any]:
        """As `AdvisedValue.describe`."""
        return {"kind": self.kind, "message": str(self.msg)}

    def __str__(self) -> str:
        return str(self.msg)


@dataclass(frozen=True)
class AdvisedLiteral(AdvisedValue):
    """Exactly one value.

    Attributes:
        value: The value.
    """

    value: Any
    break_on_advice: bool = False
    kind: ClassVar[str] = "value"

    def validate(self, value: Any) -> str | None:
        """As `AdvisedValue.validate`."""
        return None if same(value, self.value) else f"expected {self}, got {value!r}"

    def describe(self) -> dict[str, Any]:
        """As `AdvisedValue.describe`."""
        return {"kind": self.kind, "value": self.value}

    def assumed_value(self) -> Any:
        """Give the value."""
        return self.value

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class Okay(AdvisedValue):
    """Anything goes; for a value that the user gave, it is fine."""

    kind: ClassVar[str] = "anything"

    def validate(self, value: Any) -> str | None:
        """Accept every value."""
        return None

    def describe(self) -> dict[str, Any]:
        """As `AdvisedValue.describe`."""
        return {"kind": self.kind}

    def __str__(self) -> str:
        return "anything"


@dataclass(frozen=True)
class _Several(AdvisedValue):
    """Base of the kinds with a list of values, each a value or an advice of its own."""

    values: Sequence[Any]
    break_on_advice: bool = False
    split_on_advice: bool | None = None

    def __post_init__(self) -> None:
        given: Any = self.values
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise TypeError(f"{type(self).__name__} takes a list of values, not {given!r}")
        items = sorted(given, key=repr) if isinstance(given, set | frozenset) else given
        object.__setattr__(self, "values", tuple(items))

    @property
    def members(self) -> tuple[AdvisedValue, ...]:
        """The values, each as an advice."""
        return tuple(_as_advice(value) for value in self.values)

    def describe(self) -> dict[str, Any]:
        """As `AdvisedValue.describe`."""
        return {"kind": self.kind, "values": [member.describe() for member in self.members]}

    def _list(self) -> str:
        shown = ", ".join(map(str, self.members[:_SHOWN]))
        rest = len(self.values) - _SHOWN
        return f"{shown}, and {rest} more" if rest > 0 else shown


@dataclass(frozen=True)
class AdvisedOneOf(_Several):
    """One of several values.

    Attributes:
        values: The values; each may be an advice of its own, such as a date range.
        split_on_advice: Whether advisors of later fields are asked once for each of them. True: always; None: if
            they look at this field; False: never, they are given the first one.
    """

    kind: ClassVar[str] = "one of"

    def validate(self, value: Any) -> str | None:
        """As `AdvisedValue.validate`."""
        if any(member.validate(value) is None for member in self.members):
            return None
        return f"expected one of {self._list()}, got {value!r}"

    def assumed_value(self) -> Any:
        """Give the first value."""
        return self.members[0].assumed_value() if self.values else NOTHING

    def branches(self) -> tuple[AdvisedValue, ...]:
        """Give the values one by one, if they are to be split in any case."""
        return self.members if self.split_on_advice else (self,)

    def options(self) -> tuple[AdvisedValue, ...]:
        """Give the values one by one."""
        return tuple(option for member in self.members for option in member.options())

    def __str__(self) -> str:
        return f"one of {self._list()}"


@dataclass(frozen=True)
class AdvisedSubsetOf(_Several):
    """Any list of some of several values.

    Attributes:
        values: The values; each may be an advice of its own.
        split_on_advice: Whether advisors of later fields are asked once for each list of one of them; if not, they
            are given all.
    """

    kind: ClassVar[str] = "subset of"

    def validate(self, value: Any) -> str | None:
        """As `AdvisedValue.validate`. A value that is no list counts as a list of one."""
        single = isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)
        for item in [value] if single else value:
            if all(member.validate(item) is not None for member in self.members):
                return f"expected some of {self._list()}, got {item!r}"
        return None

    def assumed_value(self) -> Any:
        """Give the list of all values."""
        found = [member.assumed_value() for member in self.members]
        return [value for value in found if value is not NOTHING]

    def branches(self) -> tuple[AdvisedValue, ...]:
        """Give lists of one value each, if they are to be split."""
        if not self.split_on_advice:
            return (self,)
        return tuple(AdvisedSubsetOf((value,), self.break_on_advice) for value in self.values)

    def __str__(self) -> str:
        return f"some of {self._list()}"


@dataclass(frozen=True)
class AdvisedDict(AdvisedValue):
    """A dictionary.

    Attributes:
        dictionary: Key to its value, or to an advice for it.
        allow_extras: Whether it may have other keys too.
    """

    dictionary: Mapping[Any, Any]
    allow_extras: bool = False
    break_on_advice: bool = False
    kind: ClassVar[str] = "dictionary"

    @property
    def entries(self) -> dict[Any, AdvisedValue]:
        """Key to advice."""
        return {key: _as_advice(value) for key, value in self.dictionary.items()}

    def validate(self, value: Any) -> str | None:
        """As `AdvisedValue.validate`."""
        if not isinstance(value, Mapping):
            return f"expected a dictionary, got {value!r}"
        for key, advice in self.entries.items():
            if key not in value:
                return f"expected the key {key!r}"
            if problem := advice.validate(value[key]):
                return f"[{key!r}] {problem}"
        extra = [key for key in value if key not in self.dictionary]
        return f"expected no key {extra[0]!r}" if extra and not self.allow_extras else None

    def describe(self) -> dict[str, Any]:
        """As `AdvisedValue.describe`."""
        entries = [[key, advice.describe()] for key, advice in self.entries.items()]
        return {"kind": self.kind, "entries": entries, "extras": bool(self.allow_extras)}

    def assumed_value(self) -> Any:
        """Give the dictionary with an allowed value of each key that has one."""
        found = {key: advice.assumed_value() for key, advice in self.entries.items()}
        return {key: value for key, value in found.items() if value is not NOTHING}

    def __str__(self) -> str:
        inner = [f"{key!r}: {advice}" for key, advice in self.entries.items()]
        return "{" + ", ".join([*inner, *(["..."] if self.allow_extras else [])]) + "}"


@dataclass(frozen=True)
class AdvisedDateRange(AdvisedValue):
    """A date or time between two others, both included; an end without time of day includes all of that day.

    Attributes:
        start: First one: ISO text, `date` or `datetime`. Times without zone are UTC.
        end: Last one.
    """

    start: str | date
    end: str | date
    break_on_advice: bool = False
    kind: ClassVar[str] = "date range"

    def __post_init__(self) -> None:
        _moment(self.start), _moment(self.end)  # what is no date is the advisor's mistake, and found here

    def validate(self, value: Any) -> str | None:
        """As `AdvisedValue.validate`; the value may be ISO text, `date` or `datetime`."""
        try:
            first, last = _moment(value), _moment(value, last=True)
        except (TypeError, ValueError):
            return f"expected a date {self}, got {value!r}"
        inside = _moment(self.start) <= first and last <= _moment(self.end, last=True)
        return None if inside else f"expected a date {self}, got {value!r}"

    def describe(self) -> dict[str, Any]:
        """As `AdvisedValue.describe`."""
        return {"kind": self.kind, "start": self.start, "end": self.end}

    def assumed_value(self) -> Any:
        """Give the start."""
        return self.start

    def __str__(self) -> str:
        return f"from {self.start} to {self.end}"


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, of whatever types; True is not 1."""
    if isinstance(one, bool) is not isinstance(other, bool):
        return False
    try:
        return bool(one == other)
    except Exception:
        return False


def rebuild(data: Any) -> AdvisedValue:
    """Make an advice of what `describe` gave.

    Raises:
        ValueError: it is no such thing.
    """
    try:
        return _rebuild(data, 0)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not an advice: {error!r}") from error


def _rebuild(data: Any, depth: int) -> AdvisedValue:
    kind = data["kind"]
    if depth > _DEEPEST:
        raise ValueError("advice inside advice, too deep")
    if kind == AdvisedLiteral.kind:
        return AdvisedLiteral(data["value"])
    if kind == Okay.kind:
        return Okay()
    if kind == AdvisedOneOf.kind:
        return AdvisedOneOf(tuple(_as_value(item, depth) for item in data["values"]))
    if kind == AdvisedSubsetOf.kind:
        return AdvisedSubsetOf(tuple(_as_value(item, depth) for item in data["values"]))
    if kind == AdvisedDict.kind:
        return AdvisedDict({key: _as_value(item, depth) for key, item in data["entries"]}, bool(data["extras"]))
    if kind == AdvisedDateRange.kind:
        return AdvisedDateRange(data["start"], data["end"])
    if kind == AdvisedError.kind:
        return AdvisedError(str(data["message"]))
    raise ValueError(f"there is no kind of advice {kind!r}")


def _as_advice(value: Any) -> AdvisedValue:
    return value if isinstance(value, AdvisedValue) else AdvisedLiteral(value)


def _as_value(data: Any, depth: int) -> Any:
    advice = _rebuild(data, depth + 1)
    return advice.value if isinstance(advice, AdvisedLiteral) else advice


def _moment(value: Any, *, last: bool = False) -> datetime:
    """A date as a moment: its first, or its last."""
    if isinstance(value, str):
        text = value.strip()
        value = datetime.fromisoformat(text) if len(text) > len("1995-03-18") else date.fromisoformat(text)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time.max if last else time.min)
    if not isinstance(value, datetime):
        raise TypeError(f"{value!r} is no date")
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
