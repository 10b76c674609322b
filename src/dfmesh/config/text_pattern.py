"""Patterns of texts in JSON Schemas: regular expressions of federation files, which may be a stranger's.

They are matched by the engine of pydantic (the `regex` crate of Rust), in time that grows no faster than the text. `re`
would need years for some patterns and thirty characters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache


class PatternError(ValueError):
    """A pattern that cannot be matched; the message says why."""


@lru_cache(256)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Give what tells whether a text has the pattern anywhere in it.

    Args:
        pattern: A regular expression without look-around and back references (https://docs.rs/regex/#syntax).

    Raises:
        PatternError: If it is none.
    """
    # Some ten milliseconds: only for those who need it.
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        validator = SchemaValidator(core_schema.str_schema(pattern=pattern, strict=True))
    except SchemaError as error:
        raise PatternError(str(error).rstrip().rpartition("\n")[2].partition("error: ")[2] or "too large") from None
    return validator.isinstance_python


__all__ = ["PatternError", "matcher"]
