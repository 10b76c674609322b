"""What an advisor is told about other fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dfmesh.engine.discovery.advice import NOTHING
from dfmesh.engine.discovery.paths import Path, Step

if TYPE_CHECKING:
    from dfmesh.engine.adapters import Provider, Site, SiteAdapters


class AdviceContext:
    """What is known of the other fields, on one branch of the choices made before.

    Attributes:
        operation: Name of the operation.
    """

    def __init__(
        self,
        operation: str,
        known: Mapping[str, Any],
        names: Mapping[str, str],
        path: Path,
        surroundings: tuple[SiteAdapters, str | None],
    ) -> None:
        """Make a context.

        Args:
            operation: Name of the operation.
            known: Fields with values that the user, or the federation file, gave.
            names: The adapter's names of fields to the operation's.
            path: The choices before.
            surroundings: The site's adapters, and the provider's name.
        """
        self.operation = operation
        self.read: list[Step] = []
        self._known = known
        self._names = names
        self._steps = {step.field: step for step in path}
        self._surroundings = surroundings

    def get(self, field: str, default: Any = None) -> Any:
        """Give the value of a field: what the user gave, or what is assumed on this branch.

        Args:
            field: A keyword of the adapter, or a parameter of the operation.
            default: Given where the value is not known: the field comes later, or its advisor did not say.
        """
        value = self._find(field)
        return default if value is NOTHING else value

    def __getitem__(self, field: str) -> Any:
        value = self._find(field)
        if value is NOTHING:
            raise KeyError(f"the value of {field!r} is not known here; give its advisor a lower order")
        return value

    def __contains__(self, field: str) -> bool:
        return self._find(field) is not NOTHING

    @property
    def site(self) -> Site:
        """The site, as adapters see it."""
        return self._surroundings[0].site

    @property
    def provider(self) -> Provider | None:
        """The provider, as adapters see it; None for the site's own interface."""
        adapters, name = self._surroundings
        return None if name is None else adapters.provider(name)

    def _find(self, field: str) -> Any:
        field = self._names.get(field, field)
        step = self._steps.get(field)
        if step is None:
            return self._known.get(field, NOTHING)
        if step.may_split and step not in self.read:
            self.read.append(step)
        return step.advice.assumed_value() if step.advice is not None else NOTHING
