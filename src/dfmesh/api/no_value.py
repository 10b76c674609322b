"""What cannot be done with a value that does not exist yet; each refusal names what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def _refusal(what: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(self: Any, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"{self!r} {what} while the pipeline is being written; {instead}")

    return refuse


_computed = _refusal("cannot be computed with", "compute in an operation")


class NoValueYet:
    """Refuses what would use the reference itself in place of its value, or fail in a way that says nothing."""

    __slots__ = ()

    __bool__ = _refusal(
        "has no value",
        "use `with If(...):`, and `&`, `|`, `~` or And, Or, Not in place of `and`, `or`, `not`",
    )
    __iter__ = _refusal("cannot be iterated", "use `with ForEach(...) as item:`")
    __contains__ = _refusal("has no content", "what it contains, ask in an operation")
    __len__ = _refusal("has no length", "compute it in an operation")
    __format__ = _refusal(
        "has no text", 'pass the reference itself, such as ["mean", value] in place of f"mean {value}"'
    )
    __array__ = __float__ = __int__ = __index__ = __complex__ = _refusal(
        "has no value", "pass the reference to an operation"
    )
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _computed
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _computed
    __neg__ = __pos__ = __abs__ = __round__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = _computed
    __array_ufunc__ = None  # so that numpy leaves `numpy.float64(2) < value` to the reference
    __call__ = _refusal("cannot be called", "call it in an operation")

    def __getattr__(self, name: str) -> NoReturn:
        """Say how to select, since a field of the value is not an attribute of the reference."""
        hint = "" if name.startswith("_") else f'; select with value["{name}"] or value.field("{name}")'
        raise AttributeError(f"a reference has no attribute {name!r}{hint}", name=name, obj=self)
