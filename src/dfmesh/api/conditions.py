"""Conditions of `If` and `Choose`: comparisons of references, parameters and constants, joined by And, Or, Not."""

from __future__ import annotations

from typing import Any

from dfmesh.api.making import making
from dfmesh.api.no_value import NoValueYet
from dfmesh.api.references import with_references


class Condition(NoValueYet):
    """A question about values that do not exist yet. It has no truth value while the pipeline is being written."""

    __slots__ = ("made", "operator")

    def __init__(self, operator: str) -> None:
        self.operator = operator
        self.made = making()

    def __and__(self, other: object) -> And:
        return And(self, other)

    def __or__(self, other: object) -> Or:
        return Or(self, other)

    def __invert__(self) -> Not:
        return Not(self)


class Comparison(Condition):
    """`left operator right`, with one of `== != < <= > >=`."""

    __slots__ = ("left", "right")

    def __init__(self, left: Any, right: Any, *, operator: str) -> None:
        super().__init__(operator)
        self.left = with_references(left)
        self.right = with_references(right)

    def __repr__(self) -> str:
        return f"({self.left!r} {self.operator} {self.right!r})"


class Equal(Comparison):
    """`left == right`."""

    __slots__ = ()

    def __init__(self, left: Any, right: Any) -> None:
        super().__init__(left, right, operator="==")


class NotEqual(Comparison):
    """`left != right`."""

    __slots__ = ()

    def __init__(self, left: Any, right: Any) -> None:
        super().__init__(left, right, operator="!=")


class LessThan(Comparison):
    """`left < right`."""

    __slots__ = ()

    def __init__(self, left: Any, right: Any) -> None:
        super().__init__(left, right, operator="<")


class LessThanOrEqual(Comparison):
    """`left <= right`."""

    __slots__ = ()

    def __init__(self, left: Any, right: Any) -> None:
        super().__init__(left, right, operator="<=")


class GreaterThan(Comparison):
    """`left > right`."""

    __slots__ = ()

    def __init__(self, left: Any, right: Any) -> None:
        super().__init__(left, right, operator=">")


class GreaterThanOrEqual(Comparison):
    """`left >= right`."""

    __slots__ = ()

    def __init__(self, left: Any, right: Any) -> None:
        super().__init__(left, right, operator=">=")


class Logic(Condition):
    """Conditions (or values, by their truth) joined by `and` / `or`, or negated by `not`."""

    __slots__ = ("operands",)

    def __init__(self, *operands: Any, operator: str) -> None:
        super().__init__(operator)
        given = [with_references(operand) for operand in operands]
        # `a | b | c ...` is one `or` of all, however many there are, and not one inside the other.
        self.operands = tuple(
            inner for operand in given for inner in (operand.operands if _is_same(operand, operator) else (operand,))
        )

    def __repr__(self) -> str:
        if self.operator == "not":
            return f"not {self.operands[0]!r}"
        return f"({f' {self.operator} '.join(map(repr, self.operands))})"


class And(Logic):
    """True where all operands are."""

    __slots__ = ()

    def __init__(self, *exp: Any) -> None:
        super().__init__(*_flat(exp), operator="and")


class Or(Logic):
    """True where any operand is."""

    __slots__ = ()

    def __init__(self, *exp: Any) -> None:
        super().__init__(*_flat(exp), operator="or")


class Not(Logic):
    """True where the operand is not."""

    __slots__ = ()

    def __init__(self, exp: Any) -> None:
        super().__init__(exp, operator="not")


def _is_same(operand: Any, operator: str) -> bool:
    return isinstance(operand, Logic) and operand.operator == operator != "not"


def _flat(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    # DFM writes And(exp=[a, b]); a single list is that form.
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        return tuple(operands[0])
    return operands
