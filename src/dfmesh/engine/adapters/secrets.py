"""The vault of a site that names no other."""

from __future__ import annotations

import os
from typing import Any

from dfmesh.engine.adapters.errors import SecretError


class SecretsVault:
    """Secrets from environment variables. A vault of your own has the same `secret_for_key`."""

    def __init__(self, prefix: str = "DFM_SECRET_", **_options: Any) -> None:
        """Make a vault.

        Args:
            prefix: What the names of the variables begin with.
        """
        self._prefix = prefix

    def secret_for_key(self, key: str) -> str:
        """Give a secret.

        Args:
            key: Its name; `api_key` is in the variable `DFM_SECRET_API_KEY`.

        Raises:
            SecretError: If the variable is not set.
        """
        name = f"{self._prefix}{key}".upper()
        value = os.environ.get(name)
        if value is None:
            raise SecretError(f"there is no secret {key!r}: set the environment variable {name} at the site")
        return value
