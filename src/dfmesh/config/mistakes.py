"""The mistakes found in a federation file: all of them, each once."""

from __future__ import annotations

from collections.abc import Iterable

from dfmesh.api import did_you_mean
from dfmesh.config.documents import Item, Node, kind_of, location_of
from dfmesh.errors import Fault, SourceLocation

MAX_FAULTS = 300
"""Mistakes that are told of at once."""


class TooManyFaultsError(Exception):
    """There are so many mistakes that it is of no use to look for more."""


class Mistakes:
    """What is wrong with the files of a federation.

    Attributes:
        faults: In the order in which they were found.
    """

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._known_faults: set[tuple[SourceLocation | None, str]] = set()

    def fault(self, item: Item, message: str, hint: str = "", *, at: Node | None = None) -> None:
        """Record a mistake.

        Args:
            item: The value that is wrong.
            message: What is wrong with it.
            hint: What to do about it.
            at: Where it stands, if not where the value begins.
        """
        self.record(Fault(message, location_of(item.node if at is None else at), item.path, hint))

    def unknown_name(self, item: Item, message: str, name: str, known: Iterable[str]) -> None:
        """Record that a name does not stand for anything, and suggest one that does."""
        self.fault(item, message, did_you_mean(name, list(known)))

    def expected(self, item: Item, what: str, hint: str = "") -> None:
        """Record that a value is of the wrong kind."""
        self.fault(item, f"expected {what}, found {kind_of(item.node)}", hint)

    def record(self, fault: Fault) -> None:
        """Record a mistake, unless it is known.

        Raises:
            TooManyFaultsError: there are too many.
        """
        # A section that several sites share is read once for each of them: its mistakes are still one each.
        mistake = (fault.location, fault.message)
        if mistake not in self._known_faults:
            self._known_faults.add(mistake)
            if len(self.faults) == MAX_FAULTS:
                self.faults.append(Fault(f"there are more mistakes; these are the first {MAX_FAULTS}"))
                raise TooManyFaultsError
            self.faults.append(fault)
