"""Standard output belongs to the command: what anybody else prints while it runs goes to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO


@contextmanager
def own_standard_output() -> Iterator[TextIO]:
    """Give standard output to the caller alone.

    Adapters in target `inproc`, their child processes and C libraries, and pipeline files may print at any time; none
    of it may get among the lines that a machine reads.
    """
    try:
        descriptor = sys.stdout.fileno()
        instead = sys.stderr.fileno()
    except (OSError, ValueError):  # Replaced by something in memory, such as in tests.
        own = sys.stdout
        with redirect_stdout(sys.stderr):
            yield own
        return
    sys.stdout.flush()
    kept = os.dup(descriptor)
    try:
        # Closed by us only, after the descriptor was put back, since closing fails if nobody reads.
        out = os.fdopen(kept, "w", 1, sys.stdout.encoding, sys.stdout.errors, closefd=False)
        os.dup2(instead, descriptor)
        with redirect_stdout(sys.stderr):
            yield out
        out.flush()
    finally:
        sys.stdout.flush()  # What went past the redirection, with the descriptor that it still has.
        os.dup2(kept, descriptor)
        os.close(kept)
