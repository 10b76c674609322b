"""What a job gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dfmesh.api import did_you_mean
from dfmesh.errors import DfmeshError
from dfmesh.netir import Frame


@dataclass(frozen=True, slots=True)
class ResultItem:
    """One value that a Yield sent.

    Attributes:
        place: Name that the Yield gave it.
        frame: `(parameter set, loop index, ...)`, each counted from 0.
        value: The value.
        site: Site that sent it.
        node: Id of the Yield.
    """

    place: str
    frame: Frame
    value: Any
    site: str
    node: str


class Results(Mapping[str, list[Any]]):
    """The values of a job: place to list of values, in frame order.

    Every place that the pipeline yields to is there, with an empty list if nothing was sent to it.
    """

    def __init__(self, items: Mapping[str, list[ResultItem]]) -> None:
        """Wrap results.

        Args:
            items: Items per place, in frame order.
        """
        self._items = {place: list(entries) for place, entries in items.items()}

    def __getitem__(self, place: str) -> list[Any]:
        """Give the values of a place, in frame order.

        Raises:
            KeyError: the pipeline has no such place; the message lists those it has.
        """
        return [item.value for item in self.items_of(place)]

    def items_of(self, place: str) -> list[ResultItem]:
        """Give the items of a place, with frame, site and node, in frame order.

        Raises:
            KeyError: as for `results[place]`.
        """
        if place not in self._items:
            raise KeyError(f"no place {place!r}: {did_you_mean(place, list(self._items))}")
        return self._items[place]

    def one(self, place: str = "yield") -> Any:
        """Give the only value of a place.

        Raises:
            KeyError: the pipeline has no such place.
            DfmeshError: there is none, or more than one.
        """
        items = self.items_of(place)
        if len(items) != 1:
            raise DfmeshError(f"{place!r} has {len(items)} values, not one; use results[{place!r}]")
        return items[0].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        counts = ", ".join(f"{place!r}: {len(items)}" for place, items in self._items.items())
        return f"<Results {{{counts}}}>"
