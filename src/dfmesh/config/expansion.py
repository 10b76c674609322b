"""What a document grows to when its aliases are followed.

A few lines with aliases of aliases can stand for more values than any machine holds, and nested deeply enough any
document ends whoever reads it. Both are found here before anything is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from dfmesh.config.documents import Node, location_of
from dfmesh.errors import Fault

MAX_REPEATED = 200_000
"""Values that aliases may add to those that are written in a file."""

MAX_NESTING = 100
"""Lists and mappings inside one another."""


def expansion_fault(root: Node) -> Fault | None:
    """Find out whether a document grows, or is nested, beyond all sense.

    Args:
        root: What the document holds. It may contain itself through an anchor.

    Returns:
        What is wrong, at the first place where it is; None if nothing is.
    """
    return _Walk().fault(root)


class _Open:
    """A list or mapping of which the walk is looking at the children."""

    __slots__ = ("children", "height", "node", "size")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.children = _children(node)
        self.size = 1
        self.height = 1

    def add(self, size: int, height: int) -> None:
        self.size += size
        self.height = max(self.height, height + 1)


class _Walk:
    """Visits every node once, without recursion, which the document could exhaust."""

    def __init__(self) -> None:
        self._sizes: dict[int, tuple[int, int]] = {}  # of a node, by identity: values in it, levels of nesting
        self._repeated = 0

    def fault(self, root: Node) -> Fault | None:
        opened = [_Open(root)]
        while opened:
            top = opened[-1]
            child, place = next(top.children, (None, None))
            if child is None:
                opened.pop()
                self._sizes[id(top.node)] = top.size, top.height
                if opened:
                    opened[-1].add(top.size, top.height)
                continue
            known = self._sizes.get(id(child))
            if known is not None:
                top.add(*known)
                self._repeated += known[0]
            elif child.id == "scalar":
                self._sizes[id(child)] = 1, 0
                top.add(1, 0)
            else:
                self._sizes[id(child)] = 1, 1  # until it is known: it may contain itself
                opened.append(_Open(child))
            if self._repeated > MAX_REPEATED:
                message = f"the file stands for more than {MAX_REPEATED:,} values more than it has, through its aliases"
                return Fault(message, location_of(place or top.node), hint="aliases of aliases multiply")
            if len(opened) + (known[1] if known else 0) > MAX_NESTING:
                return Fault(f"nested more than {MAX_NESTING} levels deep", location_of(place or top.node))
        return None


def _children(node: Node) -> Iterator[tuple[Node, Node | None]]:
    """Give the nodes in a node, and the key that each stands under: an alias has no place of its own."""
    if node.id == "mapping":
        for key, value in node.value:
            yield key, None
            yield value, key
    elif node.id == "sequence":
        for element in node.value:
            yield element, None
