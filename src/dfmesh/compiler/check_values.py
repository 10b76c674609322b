"""What can be wrong with the values that a user gave to a statement, whatever the statement does with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dfmesh import values
from dfmesh.api import (
    NO_DEFAULT,
    Advise,
    Comparison,
    Logic,
    NodeRef,
    PlaceParam,
    Statement,
    find_references,
    is_unicode,
)
from dfmesh.compiler.check_places import misplaced_references
from dfmesh.compiler.report import Report
from dfmesh.errors import ValueEncodingError


class ValueChecker:
    """Checks the constants that a user gave."""

    def __init__(self, report: Report) -> None:
        self.fault = report.fault

    def check(self, statement: Statement, value: Any) -> None:
        """Check that every constant inside a value can be sent."""
        if isinstance(value, NodeRef):
            return
        if isinstance(value, PlaceParam):
            self._check_default(statement, value)
        elif isinstance(value, Comparison | Logic):
            operands = value.operands if isinstance(value, Logic) else (value.left, value.right)
            for operand in operands:
                self.check(statement, operand)
        elif isinstance(value, Advise):
            self.fault(statement, f"{statement.label}: Advise() is for session.discover(...)", "give a value")
        elif _holds_advise(value):
            self.fault(statement, f"{statement.label}: Advise() stands inside of a value", "ask for the whole value")
        elif next(find_references(value), None) is None:
            self._check_sendable(statement, value)
        else:
            parts: Sequence[Any] = [*value.keys(), *value.values()] if isinstance(value, dict) else value
            for part in parts:
                self.check(statement, part)

    def _check_sendable(self, statement: Statement, value: Any) -> None:
        try:
            values.normalise(value)
        except ValueEncodingError as error:
            place = next(misplaced_references(value), None)
            if place is None:
                self.fault(statement, f"{statement.label} is given a value that cannot be sent to a site: {error}")
            else:
                self.fault(statement, f"{statement.label} is given {place.what}", place.hint)

    def _check_default(self, statement: Statement, parameter: PlaceParam) -> None:
        if not isinstance(parameter.place, str) or not parameter.place or not is_unicode(parameter.place):
            self.fault(statement, f"{parameter.place!r} cannot be the name of a parameter", "give a text")
        if parameter.default is NO_DEFAULT:
            return
        if next(find_references(parameter.default), None) is not None:
            what = f"the default of parameter {parameter.place!r} depends on the pipeline itself"
            self.fault(statement, what, "give a constant, or use Choose")
            return
        try:
            values.normalise(parameter.default)
        except ValueEncodingError as error:
            self.fault(statement, f"the default of parameter {parameter.place!r} cannot be sent to a site: {error}")


def _holds_advise(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(isinstance(item, Advise) or _holds_advise(item) for item in value)
    return type(value) is dict and _holds_advise(list(value.values()))
