"""JSON pointers and references: `file.yaml#/section/name`."""

from __future__ import annotations

from urllib.parse import unquote


def split_reference(text: str) -> tuple[str, str]:
    """Split a reference into file and pointer; without `#` the pointer is the whole file."""
    file, _, pointer = text.partition("#")
    return file, pointer if pointer in ("", "/") or pointer.startswith("/") else f"/{pointer}"


def parse_pointer(pointer: str) -> list[str]:
    """Split a JSON pointer into its segments."""
    if pointer in ("", "/"):
        return []
    return [unquote(segment).replace("~1", "/").replace("~0", "~") for segment in pointer[1:].split("/")]
