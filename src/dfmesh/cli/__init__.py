"""The command line: `dfmesh validate`, `explain`, `simulate`, `costs`, `run`, `up`, `jobs`, `attach`, `bench`, `demo`.

Nothing heavy is imported until a command needs it: `dfmesh --help` loads typer and this package's `app`, no more.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the entry point of the `dfmesh` script."""
    try:
        from dfmesh.cli.app import app

        app()
    except KeyboardInterrupt:  # While that was loaded; commands report their own.
        sys.stderr.write("interrupted\n")
        sys.exit(130)


__all__ = ["main"]
