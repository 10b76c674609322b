"""The secrets that the code in this process was given, kept out of the texts that leave it."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "***"
"""Stands for a secret."""

SHORTEST = 4
"""Characters of the shortest text that is hidden; a shorter one would be found in words that are none of it."""

_SHORTEST_LINE = 8
_MOST = 512
"""Texts that are remembered, the latest: a vault may give a new token for every call."""


class HiddenSecrets:
    """Remembers secrets and replaces them in texts. May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._pattern: re.Pattern[str] | None = None

    def remember(self, secret: Any) -> None:
        """Take note of a secret that an adapter, a provider or a site's own class gets.

        Args:
            secret: A text, bytes of one, or a list, tuple or dictionary of such. Other values are left alone.
        """
        texts = {written for text in _texts(secret) for written in _written(text)}
        with self._lock:
            if texts <= self._known.keys():
                for text in texts:
                    self._known.move_to_end(text)
                return
            self._known.update(dict.fromkeys(sorted(texts)))
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
            longest_first = sorted(self._known, key=lambda text: (-len(text), text))
            self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def hide(self, text: str) -> str:
        """Give a text with all known secrets in it replaced."""
        pattern = self._pattern
        return text if pattern is None else pattern.sub(HIDDEN, text)


def _texts(secret: Any) -> Iterator[str]:
    match secret:
        case str():
            yield secret
        case bytes() | bytearray():
            yield secret.decode("utf-8", "replace")
        case Mapping():
            for item in secret.values():
                yield from _texts(item)
        case list() | tuple():
            for item in secret:
                yield from _texts(item)


def _written(text: str) -> Iterator[str]:
    """Give the ways in which a text is found in others: as it is, in quotes, in an address, line by line."""
    data = text.encode(errors="replace")
    ways = [text, repr(text)[1:-1], json.dumps(text)[1:-1], quote(data), quote(data, safe=""), quote_plus(data)]
    yield from (way for way in ways if len(way.strip()) >= SHORTEST)
    if "\n" in text:
        yield from (line for line in map(str.strip, text.splitlines()) if len(line) >= _SHORTEST_LINE)


HIDDEN_SECRETS = HiddenSecrets()
"""Those of this process, whose output streams all its sites share."""

__all__ = ["HIDDEN", "HIDDEN_SECRETS", "SHORTEST", "HiddenSecrets"]
