"""Loading all that a site has, to see what cannot be loaded: `python -m dfmesh.engine.adapters.trial FILE SITE FIRST`.

Started by `dfmesh validate --adapters`; a process of its own, since an import may do anything. One JSON value per line
on standard output says which part is being loaded (its number) or what is wrong with it (a mapping); `null` says that
all has been tried.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dfmesh.config import FederationConfig
from dfmesh.engine.adapters.errors import AdapterLoadError
from dfmesh.engine.adapters.site import SiteAdapters
from dfmesh.errors import DfmeshError, Fault, SourceLocation


@dataclass(frozen=True, slots=True)
class Part:
    """Something of a site that is loaded: an adapter, or the class of the site, of its vault or of a provider.

    Attributes:
        key: Key path in the federation file.
        path: Dotted path of what is loaded.
        location: Where the federation file names that.
        provider: Provider that it belongs to; None for the site itself.
        operation: Operation that the adapter carries out; None if it is the class of the site or provider.
        is_vault: Whether it is the class of the secrets vault.
    """

    key: str
    path: str
    location: SourceLocation | None
    provider: str | None = None
    operation: str | None = None
    is_vault: bool = False

    def fault(self, reason: str, path: str = "", location: SourceLocation | None = None) -> Fault:
        """Describe why it cannot be loaded.

        Args:
            reason: Why.
            path: What cannot be loaded, if something else that it needs.
            location: Where that is named.
        """
        return Fault(f"cannot load {path or self.path}: {reason}", location or self.location, self.key)


def parts_of(config: FederationConfig, site: str) -> list[Part]:
    """List what a site loads, in a fixed order: its class, that of its vault, those of its providers, its adapters."""
    own = config.sites[site]
    parts = [Part(f"sites.{site}.impl", own.impl.path, own.impl.location)] if own.impl else []
    vault = own.secrets_vault
    if vault.path is not None:
        parts.append(Part(f"sites.{site}.secrets_vault", vault.path, vault.location, is_vault=True))
    for name, provider in own.providers.items():
        if provider.impl:
            key = f"sites.{site}.providers.{name}.impl"
            parts.append(Part(key, provider.impl.path, provider.impl.location, name))
    for holder, interface in [(None, own.interface), *((name, one.interface) for name, one in own.providers.items())]:
        prefix = f"sites.{site}.interface" if holder is None else f"sites.{site}.providers.{holder}.interface"
        for operation, spec in interface.items():
            parts.append(Part(f"{prefix}.{operation}", spec.path, spec.location, holder, operation))
    return parts


def load_parts(config: FederationConfig, site: str, first: int, tell: Callable[[Any], None]) -> None:
    """Load the parts of a site, from one on.

    Args:
        config: The federation.
        site: Name of the site.
        first: Number of the first part to load.
        tell: Takes the number of each part, and then what is wrong with it as keywords of `Part.fault`.
    """
    adapters = SiteAdapters(config, site)
    for number, part in enumerate(parts_of(config, site)[first:], first):
        tell(number)
        try:
            _load(adapters, part)
        except AdapterLoadError as error:
            place = error.location
            where = None if place is None else [place.file, place.line, place.column]
            tell({"reason": error.reason, "path": error.path, "location": where})
        except DfmeshError as error:
            tell({"reason": str(error)})


def _load(adapters: SiteAdapters, part: Part) -> None:
    if part.is_vault:
        adapters.vault_class(part.path)
    elif part.operation is not None:
        adapters.find(part.operation, part.provider)
    elif part.provider is not None:
        adapters.provider(part.provider)
    else:
        _ = adapters.site


def main() -> None:
    """Try a site in this process."""
    file, site, first = sys.argv[1:]
    # What the site's code prints must not come between the lines.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def tell(value: Any) -> None:
        print(json.dumps(value), file=output, flush=True)

    load_parts(FederationConfig.load(file), site, int(first), tell)
    tell(None)
    os._exit(0)  # threads that the site's code has started may never end


if __name__ == "__main__":
    main()
