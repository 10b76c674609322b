"""What can be wrong with the values that a user gave to a statement, whatever the statement does with them."""

from __future__ import annotations

from itertools import chain
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
from dfmesh.values.plain import MAX_DEPTH

_NOT_TO_RUN = ("is for session.discover(...)", "give a value")


class ValueChecker:
    """Checks the constants that a user gave."""

    def __init__(self, report: Report) -> None:
        self.fault = report.fault

    def check(self, statement: Statement, value: Any, depth: int = 0) -> None:
        """Check that every constant inside a value can be sent.

        Args:
            statement: What it was given to.
            value: The value.
            depth: In how many lists, tuples, dictionaries and conditions it stands.
        """
        if isinstance(value, NodeRef):
            return
        if depth > MAX_DEPTH:
            what = f"{statement.label} is given a value that is nested more than {MAX_DEPTH} levels deep"
            self.fault(statement, what, "it may contain itself; else make it in an operation")
        elif isinstance(value, PlaceParam):
            self._check_default(statement, value)
        elif isinstance(value, Comparison | Logic):
            for operand in value.operands if isinstance(value, Logic) else (value.left, value.right):
                self.check(statement, operand, depth + 1)
        elif isinstance(value, Advise):
            problem, hint = ("stands inside of a value", "ask for the whole value") if depth else _NOT_TO_RUN
            self.fault(statement, f"{statement.label}: Advise() {problem}", hint)
        elif next(find_references(value), None) is None and not _holds_advise(value):
            self._check_sendable(statement, value)
        else:
            for part in chain.from_iterable(value.items()) if isinstance(value, dict) else value:
                self.check(statement, part, depth + 1)

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


def _holds_advise(value: Any, depth: int = 0) -> bool:
    parts = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
    return depth <= MAX_DEPTH and any(isinstance(part, Advise) or _holds_advise(part, depth + 1) for part in parts)
