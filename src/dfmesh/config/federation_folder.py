"""What the directory of a federation is called, where something is kept of several."""

from __future__ import annotations

import re


def federation_folder(name: str) -> str:
    """Give the name of a directory for a federation, whatever that is called; never a path out of where it stands.

    Args:
        name: Name of the federation.
    """
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".") or "federation"
