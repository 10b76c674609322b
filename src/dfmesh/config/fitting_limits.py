"""What a JSON Schema says of a value besides its type: which ones, between which bounds, how long, of what pattern."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from dfmesh.config.fitting_kinds import SHORT, is_boolean, is_plain, scalar, shown
from dfmesh.config.text_pattern import matcher

Judge = Callable[[Any], str]
"""Says why a value does not fit, as what follows its name in a sentence; empty if it does."""


def one_of(allowed: Sequence[Any]) -> Judge:
    """Judge values by those that are allowed; what JSON has no kind for is not looked at."""

    def judge(value: Any) -> str:
        value = scalar(value)
        if not (is_plain(value) or isinstance(value, numbers.Number)) or value in allowed:
            return ""
        return f"is {shown(value)}, expected one of {', '.join(map(repr, allowed))}"

    return judge


_BOUNDS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "minimum": (lambda value, bound: value < bound, "below the minimum"),
    "maximum": (lambda value, bound: value > bound, "above the maximum"),
    "exclusiveMinimum": (lambda value, bound: value <= bound, "expected more than"),
    "exclusiveMaximum": (lambda value, bound: value >= bound, "expected less than"),
    "multipleOf": (lambda value, bound: bound and value % bound, "expected a multiple of"),
}


def bounds(schema: Mapping[str, Any]) -> Judge | None:
    """Compile what a schema says about the size of numbers; None if nothing."""
    stated = [
        (fails, schema[key], text) for key, (fails, text) in _BOUNDS.items() if type(schema.get(key)) in (int, float)
    ]
    if not stated:
        return None

    def judge(value: Any) -> str:
        if type(value) is not int and type(value) is not float:
            value = scalar(value)
            if not isinstance(value, numbers.Real) or is_boolean(type(value)):
                return ""
        for fails, bound, text in stated:
            if fails(value, bound):
                return f"is {shown(value)}, {text} {bound!r}"
        return ""

    return judge


def within(schema: Mapping[str, Any], types: Set[type], judge: Judge) -> Judge:
    """Let plain numbers between `minimum` and `maximum` pass quickly, where that is all that is asked for."""
    asked = {key for key in schema if key in _BOUNDS}
    ends = [schema.get("minimum", -math.inf), schema.get("maximum", math.inf)]
    if not asked or asked - {"minimum", "maximum"} or any(type(bound) not in (int, float) for bound in ends):
        return judge
    least, most = ends
    numeric = {int, float} & types

    def judge_number(value: Any) -> str:
        if type(value) in numeric and least <= value <= most:
            return ""
        return judge(value)

    return judge_number


NO_LIMITS = (0, sys.maxsize)


def limits(schema: Mapping[str, Any], what: str) -> tuple[int, int]:
    """Give the least and the most `Items` or `Length` that a schema asks for."""
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    return least if type(least) is int else 0, most if type(most) is int else sys.maxsize


def lengths(schema: Mapping[str, Any]) -> Judge | None:
    """Compile what a schema says about texts; None if nothing."""
    least, most = limits(schema, "Length")
    pattern = schema.get("pattern")
    matches = matcher(pattern) if isinstance(pattern, str) and pattern else None
    if (least, most) == NO_LIMITS and matches is None:
        return None

    def judge(value: Any) -> str:
        if not isinstance(value, str):
            return ""
        if not least <= len(value) <= most:
            wanted = f"at least {least}" if len(value) < least else f"at most {most}"
            return f"is {SHORT.repr(value)} of {len(value)} characters, expected {wanted}"
        if matches is not None and not matches(value):
            return f"is {SHORT.repr(value)}, expected what matches {pattern!r}"
        return ""

    return judge
