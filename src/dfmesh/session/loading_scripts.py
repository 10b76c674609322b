"""While a script is run only to find its pipeline, what it does besides must not begin: it starts no session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dfmesh.api import user_location
from dfmesh.errors import Fault, PipelineError


class SessionWhileLoadingError(PipelineError):
    """A script that is run only to find its pipeline starts a session."""


_loading: list[str] = []
"""Names of the scripts; of the whole process, since a script may have threads."""


@contextmanager
def no_sessions(script: str) -> Iterator[None]:
    """Refuse to start sessions.

    Args:
        script: Name of the script that is run meanwhile.
    """
    _loading.append(script)
    try:
        yield
    finally:
        _loading.remove(script)


def check_sessions_may_start() -> None:
    """Make sure that no script is run only for its pipeline.

    Raises:
        SessionWhileLoadingError: one is; names the user's line.
    """
    if _loading:
        hint = 'put what runs the pipeline below `if __name__ == "__main__":`, or write it in `def build(federation):`'
        fault = Fault("a session is started where only the pipeline is looked for", user_location(), hint=hint)
        raise SessionWhileLoadingError(f"{_loading[-1]} would run jobs while it is loaded", [fault])


__all__ = ["SessionWhileLoadingError", "check_sessions_may_start", "no_sessions"]
