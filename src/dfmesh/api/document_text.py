"""From the text of a pipeline document to what it says, before anybody asks whether that is a pipeline."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from dfmesh.errors import Fault, PipelineError, SourceLocation


def parse_document(text: str, name: str) -> Any:
    """Parse JSON in which no key stands twice.

    Args:
        text: The text.
        name: What to call it in messages.

    Raises:
        PipelineError: it is no such JSON, or nested too deeply.
    """
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated.extend(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        return dict(pairs)

    try:
        document = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        fault = Fault(error.msg, SourceLocation(name, error.lineno, error.colno))
        raise PipelineError(f"{name} is not JSON", [fault]) from error
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise PipelineError(f"{name} is not JSON that can be read", [Fault(reason)]) from error
    if repeated:
        faults = [Fault(f"the key {key[:80]!r} stands twice in one object") for key in dict.fromkeys(repeated)]
        raise PipelineError(f"{name} is ambiguous", faults)
    return document
