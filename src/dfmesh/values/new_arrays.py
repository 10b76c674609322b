"""Arrays that are made where other sites can see them, so that sending them copies nothing.

A target that has such memory says so; this module only knows whom to ask.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike

Give = Callable[[tuple[int, ...], Any], Any]
"""Makes an array of a shape and data type in memory that other sites can see, or gives None. On any thread."""

Copy = Callable[[Any], Any]
"""Makes a read-only copy of a contiguous array in such memory, or gives None. On any thread."""

_givers: list[Give] = []
_copiers: list[Copy] = []
_made: dict[int, weakref.ReferenceType[Any]] = {}


def empty_array(shape: int | Sequence[int], dtype: DTypeLike = float) -> np.ndarray[Any, Any]:
    """Make an array for a large result, as `numpy.empty` does, in memory that other sites can see if there is any.

    Such an array, and each contiguous part of it, goes to other sites of the same machine without being copied. So what
    is written to it after it was returned would reach those who have it already: it becomes read-only when it is
    sent, and views of it that were made before must not be written to either.

    Args:
        shape: Its length along each axis.
        dtype: Its data type.

    Returns:
        The array; what is in it is undefined. Everywhere but in the process of a site on target `local`, and if it is
        small or there is no room, it is an ordinary one.

    Raises:
        ValueError: a length is negative.
    """
    import numpy as np

    described = np.dtype(dtype)
    lengths = (operator.index(shape),) if not isinstance(shape, Sequence) else tuple(map(operator.index, shape))
    if _givers and not described.hasobject and min(lengths, default=1) > 0:
        given: np.ndarray[Any, Any] | None = _givers[-1](lengths, described)
        if given is not None:
            _remember(given)
            return given
    return np.empty(lengths, described)


def _remember(given: Any) -> None:
    key = id(given)
    _made[key] = weakref.ref(given, lambda _: _made.pop(key, None))


def is_made_for_sending(array: Any) -> bool:
    """Say whether `empty_array` made an array where other sites can see it: it is to become read-only, not copied."""
    known = _made.get(id(array))
    return known is not None and known() is array


def copy_to_send(array: Any) -> Any:
    """Give a read-only copy of a large array where other sites can see it; the array itself if it is not to be copied.

    Args:
        array: A contiguous array that nobody changes any more.
    """
    copy = _copiers[-1](array) if _copiers else None
    return array if copy is None else copy


def give_new_arrays(give: Give, copy: Copy | None = None) -> None:
    """Say where new arrays come from in this process, from now on.

    Args:
        give: Makes them.
        copy: Makes copies of arrays that are about to be sent; None if they stay where they are until then.
    """
    _givers[:] = [give]
    _copiers[:] = [] if copy is None else [copy]
