"""What a job gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from dfmesh.api import did_you_mean
from dfmesh.compiler.quantity_text import count_text
from dfmesh.errors import DfmeshError
from dfmesh.netir import Frame
from dfmesh.text_tables import html_table


class ResultItem(msgspec.Struct, frozen=True, gc=False):
    """One value that a Yield sent.

    Attributes:
        place: Name that the Yield gave it.
        frame: `(parameter set, loop index, ...)`, each counted from 0; `item.frame[0]` is the parameter set.
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

    Every place that the pipeline yields to is there, with an empty list if nothing was sent to it. Of a job with
    several parameter sets, `results.sets[k]` has the results of set k.
    """

    def __init__(self, items: Mapping[str, list[ResultItem]], numbers: Sequence[int] = (0,)) -> None:
        """Wrap results.

        Args:
            items: Items per place, in frame order.
            numbers: The parameter sets from which they are.
        """
        self._items = {place: list(entries) for place, entries in items.items()}
        self._numbers = numbers

    @cached_property
    def sets(self) -> tuple[Results, ...]:
        """The results of each parameter set, in the order in which the sets were given.

        Example: `for given, own in zip(sets, results.sets): print(given["day"], own.one("total"))`
        """
        found: dict[int, dict[str, list[ResultItem]]] = {
            number: {place: [] for place in self._items} for number in self._numbers
        }
        for place, items in self._items.items():
            for item in items:
                if item.frame[0] in found:
                    found[item.frame[0]][place].append(item)
        return tuple(Results(items, (number,)) for number, items in found.items())

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
            raise no_such_place(place, list(self._items))
        return self._items[place]

    def one(self, place: str = "yield") -> Any:
        """Give the only value of a place.

        Raises:
            KeyError: the pipeline has no such place.
            DfmeshError: there is none, or more than one.
        """
        items = self.items_of(place)
        if len(items) != 1:
            several = f", or results.sets[k].one({place!r})" if len(self._numbers) > 1 else ""
            raise DfmeshError(f"{place!r} has {len(items)} values, not one; use results[{place!r}]{several}")
        return items[0].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<Results: {', '.join(self._counts()) or 'the pipeline has no Yield'}>"

    def __str__(self) -> str:
        """Say how many values each place has; `results["place"]` gives them."""
        sets = f" of {count_text(len(self._numbers), 'parameter set')}" if len(self._numbers) != 1 else ""
        return "\n".join(
            [f"results{sets}:", *(f"  {line}" for line in self._counts() or ["the pipeline has no Yield"])]
        )

    def _counts(self) -> list[str]:
        return [f"{count_text(len(items), 'value')} in {place!r}" for place, items in self._items.items()]

    def _repr_html_(self) -> str:
        return html_table(("place", "values"), ((place, str(len(items))) for place, items in self._items.items()))


def no_such_place(place: object, known: Sequence[str]) -> KeyError:
    """Make the error for a place to which a pipeline does not yield.

    Args:
        place: What was asked for.
        known: The places there are.
    """
    if not known:
        return KeyError(
            f"no place {place!r}: the pipeline has no Yield, so it gives no results; "
            f"write Yield(value, place={place!r}) in it"
        )
    return KeyError(f"no place {place!r}: {did_you_mean(str(place), list(known))}")
