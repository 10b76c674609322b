"""The keys of one statement of a pipeline document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dfmesh.api.document_values import ValueReader, shown_key
from dfmesh.api.suggestion import did_you_mean

HEAD = ("dfm_class_name", "dfm_node_id", "dfm_after")
"""Keys that every statement may have."""


class Fields:
    """The keys of one statement; those that nobody asked for are faults.

    Attributes:
        document: The statement.
        path: Its key path.
        reader: Takes the faults.
        asked: Keys that somebody has asked for.
    """

    def __init__(self, document: dict[str, Any], path: str, reader: ValueReader) -> None:
        self.document = document
        self.path = path
        self.reader = reader
        self.asked = set(HEAD)

    def at(self, key: str) -> str:
        """Give the key path of a key."""
        return f"{self.path}.{shown_key(key)}"

    def take(self, key: str, read: Callable[[Any, str], Any], default: Any = None) -> Any:
        """Read a key that may be left out."""
        self.asked.add(key)
        return read(self.document[key], self.at(key)) if key in self.document else default

    def need(self, key: str, read: Callable[[Any, str], Any]) -> Any:
        """Read a key that must be there."""
        if key not in self.document:
            self.reader.fault(self.path, f"the key {key!r} is missing")
        return self.take(key, read)

    def others(self) -> list[str]:
        """Give the keys that nobody has asked for."""
        return [key for key in self.document if key not in self.asked]

    def refuse_others(self) -> None:
        """Fault the keys that nobody has asked for."""
        for key in self.others():
            hint = did_you_mean(key, sorted(self.asked))
            self.reader.fault(self.at(key), "this key is not known here", hint)
