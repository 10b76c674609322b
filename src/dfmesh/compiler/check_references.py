"""What can be wrong with the references between statements: what they name, whether that is there, and in sight."""

from __future__ import annotations

from dfmesh.api import (
    Block,
    Choose,
    Collect,
    Else,
    ForEach,
    If,
    NodeId,
    NodeRef,
    Operation,
    Part,
    Pipeline,
    Reduce,
    Statement,
    TryFromCache,
    did_you_mean,
    is_unicode,
    node_text,
    number_fits,
)
from dfmesh.compiler.check_options import shown
from dfmesh.compiler.check_places import NO_VALUE
from dfmesh.compiler.layout import Layout, begins_with, described
from dfmesh.compiler.report import Report
from dfmesh.netir import Field, Item, Port

_BEHIND = "move that before this one"


class ReferenceChecker:
    """Checks what statements refer to, and what they come after."""

    def __init__(self, pipeline: Pipeline, layout: Layout, report: Report) -> None:
        """Prepare.

        Args:
            pipeline: What the user wrote.
            layout: Where its statements stand; `seen` tells how far the validator has come.
            report: Takes the faults.
        """
        self._pipeline = pipeline.identity
        self._layout = layout
        self._fault = report.fault

    def check(self, statement: Statement) -> None:
        """Check all references of a statement."""
        outer = {id(item) for item in statement.outer_references()} if isinstance(statement, Reduce) else set()
        for reference in statement.references():
            for step in reference.select:
                self._check_step(statement, step)
            if isinstance(reference, NodeRef) and not reference.is_foreign(self._pipeline):
                self._check_use(statement, reference, outer=id(reference) in outer)
        for node_id in statement.after:
            self._check_after(statement, node_id)

    def _check_step(self, statement: Statement, step: Item | Field) -> None:
        key = step.key if isinstance(step, Item) else step.name
        if isinstance(key, str) and not is_unicode(key):
            self._fault(statement, f"{statement.label} selects {key!r}, which is not Unicode", "give another key")
        if isinstance(key, int) and not number_fits(key):
            what = f"{statement.label} selects [{shown(key)}], which has more than 64 bits"
            self._fault(statement, what, "select it in an operation")

    def _target(self, statement: Statement, node_id: NodeId, verb: str) -> Statement | None:
        target = self._layout.known.get(node_id)
        if target is None:
            names = [known for known in self._layout.known if isinstance(known, str)]
            hint = (
                did_you_mean(str(node_id), names) if names else "hand over the statement itself, or give it a node_id"
            )
            what = f"{statement.label} {verb} {node_text(node_id)!r}, which is no statement of this pipeline"
            self._fault(statement, what, hint)
        return target

    # What it comes after

    def _check_after(self, statement: Statement, node_id: NodeId) -> None:
        target = self._target(statement, node_id, "comes after")
        problem = None if target is None else self._after_problem(statement, target)
        if target is not None and problem is not None:
            self._fault(statement, f"{statement.label} comes after {described(target)}{problem[0]}", problem[1])

    def _after_problem(self, statement: Statement, target: Statement) -> tuple[str, str] | None:
        if target.node_id not in self._layout.seen:
            return self._not_there_yet(statement, target)
        if self._layout.is_in(statement, target):
            return ", in which it stands", "a statement cannot wait for the end of its own block; leave this out"
        if not begins_with(self._layout.around(statement), self._layout.around(target)):
            return ", which stands in a block that has ended", "name the block itself, or a statement behind it"
        return None

    # What it uses

    def _check_use(self, statement: Statement, reference: NodeRef, *, outer: bool) -> None:
        """Check one reference.

        Args:
            statement: What refers.
            reference: To what.
            outer: The statement gathers from a loop, but this one must come from outside of it.
        """
        target = self._target(statement, reference.node, "uses")
        problem = None if target is None else self._use_problem(statement, target, reference, outer)
        if target is not None and problem is not None:
            part = ""
            if isinstance(target, ForEach) and reference.port is not Port.VALUE:
                part = f"the {reference.port.value} of "
            self._fault(statement, f"{statement.label} uses {part}{described(target)}{problem[0]}", problem[1])

    def _use_problem(
        self, statement: Statement, target: Statement, reference: NodeRef, outer: bool
    ) -> tuple[str, str] | None:
        if target.node_id not in self._layout.seen:
            return self._not_there_yet(statement, target)
        if not _has_value(target, reference):
            return ", which has no value", NO_VALUE.get(type(target).__name__, "name a statement that has one")
        if isinstance(target, TryFromCache) and self._layout.is_in(statement, target):
            return " in its own block, where it has no value yet", "use it behind the block"
        needed, visible = self._blocks(statement, target, reference, outer)
        if begins_with(visible, needed):
            return None
        return f" outside of {self._block_left(statement, target)}", self._way_out(target)

    def _not_there_yet(self, statement: Statement, target: Statement) -> tuple[str, str]:
        if target is statement:
            return ", which is itself", "name another statement"
        loop = self._layout.known.get(target.loop) if isinstance(target, Collect | Reduce) else None
        if loop is not None and self._layout.is_in(statement, loop):
            return " in the loop that it gathers from", "it is there when the loop has ended: use it behind the loop"
        return ", which stands behind it", _BEHIND

    def _blocks(
        self, statement: Statement, target: Statement, reference: NodeRef, outer: bool
    ) -> tuple[list[Block], list[Block]]:
        """Give the blocks in which a value is, and those in which a statement sees it."""
        needed, visible = list(self._layout.around(target)), list(self._layout.around(statement))
        if isinstance(target, ForEach) and reference.port is not Port.VALUE:
            needed.append(target)
        if outer or not isinstance(statement, Choose | Collect | Reduce):
            return needed, visible
        loop = None if isinstance(statement, Choose) else self._layout.known.get(statement.loop)
        if isinstance(loop, ForEach):
            visible.append(loop)
        # Choose joins values of branches, and a loop's result leaves out what was skipped.
        return _without_branches(needed), _without_branches(visible)

    def _block_left(self, statement: Statement, target: Statement) -> str:
        """Name the outermost block around a statement that another does not stand in."""
        visible = {id(block) for block in self._layout.around(statement)}
        left = [block for block in self._layout.around(target) if id(block) not in visible]
        if not left or isinstance(target, ForEach):
            return "its block"
        return f"the {type(left[0]).__name__} in which that is made"

    def _way_out(self, target: Statement) -> str:
        inner = self._layout.around(target)[-1:]
        if isinstance(target, ForEach):
            return "the element of a loop exists in its block only; use loop.collect(...) or loop.reduce(...)"
        if inner and isinstance(inner[0], If | Else):
            part = ", or write that where it is used" if isinstance(target, Part) else ""
            return f"join the branches with Choose(cond, a, b){part}"
        if inner and isinstance(inner[0], TryFromCache):
            return "use the value of the TryFromCache; its block is left out where the cache has one"
        return "bring it out of the loop with loop.collect(...) or loop.reduce(...)"


def _has_value(target: Statement, reference: NodeRef) -> bool:
    if reference.port in (Port.ELEMENT, Port.INDEX):
        return isinstance(target, ForEach)
    return isinstance(target, Operation | Collect | Reduce | Choose | TryFromCache)


def _without_branches(blocks: list[Block]) -> list[Block]:
    return [block for block in blocks if not isinstance(block, If | Else)]
