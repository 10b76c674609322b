"""Blocks that are left out where their value is in a cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dfmesh.api.blocks import Block
from dfmesh.api.node_ids import NodeId
from dfmesh.api.references import Value, with_references
from dfmesh.api.statements import BestOf, Expression, Statement


class TryFromCache(Expression, Block):
    """Runs its block only if the cache has no value for a key: `with TryFromCache(key=...) as image:`.

    Inside, `image.cache(value)` stores a value. Behind the block, the object stands for the value, found or new. Where
    equal keys are looked up at the same time, one computes and the others wait for it. A value is stored whole or not
    at all, and a cache that fails loses nothing but time.

    Attributes:
        key: The key: any value, references included.
        ttl: Age in seconds beyond which a stored value does not count.
        site: Site whose cache it is: a name, or BestOf.
        body: The block.
    """

    conditional = True

    def __init__(
        self,
        key: Any,
        *,
        ttl: float | None = None,
        site: str | BestOf | None = None,
        node_id: NodeId | None = None,
        after: Any = None,
    ) -> None:
        """Open a block that is left out if its value is cached.

        Args:
            key: The key. Equal keys give equal values, whatever pipeline they stand in.
            ttl: Age in seconds beyond which a stored value does not count; None for any age.
            site: Site whose cache it is; default: wherever it costs least.
            node_id: A name for the statement.
            after: Statements that must have ended before.
        """
        self.key = with_references(key)
        self.ttl = ttl
        self.site: str | BestOf = BestOf() if site is None else site
        self.body = []
        super().__init__(node_id=node_id, after=after)

    __hash__ = Value.__hash__

    def cache(self, value: Any) -> WriteToCache:
        """Store a value of the block, which becomes the value of the whole.

        Args:
            value: A reference into the block, or lists, tuples, dictionaries with such.
        """
        write = WriteToCache(self.node_id, value)
        write._is_own(self.origin)
        return write

    def values(self) -> Iterator[Any]:
        """Iterate over the key."""
        yield self.key


class WriteToCache(Statement):
    """Stores a value in the cache of the block it stands in; made by `block.cache(value)`.

    Attributes:
        cached: Id of the TryFromCache.
        value: What is stored.
    """

    def __init__(self, cached: NodeId, value: Any, *, node_id: NodeId | None = None, after: Any = None) -> None:
        self.cached = cached
        self.value = with_references(value)
        super().__init__(node_id=node_id, after=after)

    def values(self) -> Iterator[Any]:
        """Iterate over the value stored."""
        yield self.value
