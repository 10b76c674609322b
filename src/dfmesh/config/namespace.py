"""The operations of a federation as attributes: `ops.weather.Bin`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dfmesh.api import did_you_mean

if TYPE_CHECKING:
    from dfmesh.api import Operation


class Operations:
    """A part of the operations' names. `ops.weather` is one, `ops.weather.Bin` is an operation.

    `ops["weather.Bin"]` works as well, iterating gives the full names below.
    """

    __slots__ = ("_below", "_prefix")

    def __init__(self, classes: Mapping[str, type[Operation]], prefix: str = "") -> None:
        """Arrange operations by the parts of their names.

        Args:
            classes: Operations by the rest of their name.
            prefix: The part of the name up to here, with a dot at its end.
        """
        groups: dict[str, dict[str, type[Operation]]] = {}
        below: dict[str, type[Operation] | Operations] = {}
        for name, found in classes.items():
            first, _, rest = name.partition(".")
            if rest:
                groups.setdefault(first, {})[rest] = found
                below.setdefault(first, self)  # keeps the declared order
            else:
                below[first] = found
        for first, members in groups.items():
            below[first] = Operations(members, f"{prefix}{first}.")
        self._below = below
        self._prefix = prefix

    def __getattr__(self, name: str) -> type[Operation] | Operations:
        if name.startswith("_"):  # Of Python's own protocols, which may ask before there is anything to look into.
            raise AttributeError(f"operations have no attribute {name!r}", name=name, obj=self)
        found = self._below.get(name)
        if found is None:
            where = f"{self._prefix.rstrip('.')!r} has" if self._prefix else "the federation has"
            raise AttributeError(
                f"{where} no operation {name!r} ({did_you_mean(name, list(self._below))})", name=name, obj=self
            )
        return found

    def __getitem__(self, name: str) -> type[Operation]:
        """An operation by its full name.

        Args:
            name: Dotted name, below this one.

        Raises:
            KeyError: If there is none.
        """
        found: type[Operation] | Operations = self
        for part in name.split("."):
            below = found._below.get(part) if isinstance(found, Operations) else None
            if below is None:
                raise KeyError(f"no operation {name!r} ({did_you_mean(name, list(self))})")
            found = below
        if isinstance(found, Operations):
            raise KeyError(f"{name!r} is not an operation; it has {', '.join(found)}")
        return found

    def __iter__(self) -> Iterator[str]:
        for name, found in self._below.items():
            if isinstance(found, Operations):
                yield from (f"{name}.{rest}" for rest in found)
            else:
                yield name

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __dir__(self) -> list[str]:
        return sorted(self._below)

    def __repr__(self) -> str:
        """List the operations with their signatures, one per line."""
        lines = []
        for name in self:
            parameters = self[name].parameters or ()
            shown = (parameter.name + ("" if parameter.required else "=...") for parameter in parameters)
            lines.append(f"{self._prefix}{name}({', '.join(shown)})")
        return "\n".join(lines) or "(no operations)"
