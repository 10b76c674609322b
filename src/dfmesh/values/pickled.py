"""Pickled objects: bytes to everybody, an object again only where a site has said that it takes them.

Unpickling runs code that whoever pickled has chosen. So nothing here unpickles by itself: the engine does, for adapters
of a site whose owner wrote `accepts_pickle: true` in its own configuration.
"""

from __future__ import annotations

from typing import Any

from dfmesh.errors import ValueEncodingError
from dfmesh.values.registry import register_type


class PickledObject:
    """Wraps an argument of an operation that the value codec does not know: `Op(model=PickledObject(model))`.

    Attributes:
        data: The pickle.
    """

    __slots__ = ("data",)

    def __init__(self, value: Any) -> None:
        """Pickle an object.

        Args:
            value: Any object that `pickle` can handle.

        Raises:
            ValueEncodingError: it cannot.
        """
        import pickle  # late: few ever do this

        try:
            self.data = pickle.dumps(value)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise ValueEncodingError(f"a {type(value).__name__} cannot be pickled: {error}") from error

    @classmethod
    def from_data(cls, data: bytes) -> PickledObject:
        """Wrap a pickle that was made elsewhere; it is not unpickled."""
        pickled = cls.__new__(cls)
        pickled.data = bytes(data)
        return pickled

    def load(self) -> Any:
        """Unpickle: run whatever code is in there. Only for those who trust its origin."""
        import pickle

        return pickle.loads(self.data)  # noqa: S301 - the site's owner has allowed it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PickledObject) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return f"PickledObject(<{len(self.data)} bytes>)"


register_type(
    PickledObject,
    name="dfmesh.PickledObject",
    to_value=lambda pickled: pickled.data,
    from_value=PickledObject.from_data,
)
