"""Advice as paths: one path is one way through the choices of a site, field by field.

The tree of choices is a view of the paths (`FieldAdvice`); as a list they are split, selected from and sent more
easily.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from dfmesh.engine.discovery.advice import AdvisedOneOf, AdvisedValue, rebuild


@dataclass(frozen=True, eq=False)
class Step:
    """What a site says about one field, given the steps before. Steps are compared by identity.

    Attributes:
        field: Parameter of the operation.
        advice: What is possible; None if there is an error.
        error: Why there is no advice; empty if there is.
        failed: Whether the error is that of an advisor that broke, rather than what it says.
    """

    field: str
    advice: AdvisedValue | None
    error: str = ""
    failed: bool = False

    @property
    def partial(self) -> bool:
        """Whether later fields were not asked about, since this one is to be chosen first."""
        return self.advice is not None and self.advice.break_on_advice

    @property
    def ends(self) -> bool:
        """Whether nothing comes after it. An advisor that broke takes no other with it."""
        return self.partial or (bool(self.error) and not self.failed)

    @property
    def may_split(self) -> bool:
        """Whether later advisors that look at the field are to be asked once per value."""
        advice = self.advice
        return isinstance(advice, AdvisedOneOf) and advice.split_on_advice is None and len(advice.values) > 1

    @cached_property
    def parts(self) -> tuple[Step, ...]:
        """One step for each of its values."""
        members = self.advice.members if isinstance(self.advice, AdvisedOneOf) else ()
        return tuple(Step(self.field, member) for member in members)

    def allows(self, value: Any) -> bool:
        """Whether a user may choose a value here, as far as is known."""
        return self.failed or (self.advice is not None and self.advice.validate(value) is None)


Path = tuple[Step, ...]


def ended(path: Path) -> bool:
    """Whether no further field is asked about on this path."""
    return bool(path) and path[-1].ends


def split(path: Path, steps: Iterable[Step]) -> list[Path]:
    """Replace some steps of a path by their parts, in every combination."""
    wanted = {id(step) for step in steps}
    return list(product(*(step.parts if id(step) in wanted else (step,) for step in path)))


@dataclass(frozen=True)
class FieldAdvice:
    """A field in the tree of choices.

    Attributes:
        field: Parameter of the operation.
        branches: What may be chosen, each with the next field; errors are branches too.
    """

    field: str
    branches: tuple[Branch, ...]

    def __iter__(self) -> Iterator[AdvisedValue]:
        """Iterate over what may be chosen here without ending in an error."""
        return (branch.advice for branch in self.branches if branch.advice is not None and branch.is_good)

    def select(self, value: Any) -> FieldAdvice | None:
        """Give the next field after choosing a value; None if there is none, or the value is not possible."""
        return next((branch.then for branch in self.branches if branch.step.allows(value) and branch.then), None)

    def has_good_options(self) -> bool:
        """Whether some choice ends without error."""
        return any(branch.is_good for branch in self.branches)

    def collect_error_messages(self) -> dict[str, set[str]]:
        """Give the errors below, by field."""
        found: dict[str, set[str]] = {}
        for branch in self.branches:
            if branch.step.error:
                found.setdefault(self.field, set()).add(branch.step.error)
            for name, messages in (branch.then.collect_error_messages() if branch.then else {}).items():
                found.setdefault(name, set()).update(messages)
        return found

    def lines(self) -> Iterator[str]:
        """Draw the tree as indented text."""
        for branch in self.branches:
            yield f"{self.field}: {branch}"
            for line in branch.then.lines() if branch.then else ():
                yield f"  {line}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True)
class Branch:
    """A choice in the tree.

    Attributes:
        step: What the site says.
        then: The next field; None after the last one, an error, or where this one is to be chosen first.
    """

    step: Step
    then: FieldAdvice | None

    @property
    def advice(self) -> AdvisedValue | None:
        """What may be chosen; None for an error."""
        return self.step.advice

    @property
    def is_good(self) -> bool:
        """Whether some way from here ends without error."""
        return not self.step.error and (self.then is None or self.then.has_good_options())

    def __str__(self) -> str:
        if self.step.error:
            return f"({'no answer' if self.step.failed else 'error'}) {self.step.error}"
        return f"{self.advice}{' (choose first; other fields depend on it)' if self.step.partial else ''}"


def tree_of(paths: Iterable[Path], depth: int = 0) -> FieldAdvice | None:
    """Make the tree of paths; None if nothing was said."""
    groups: dict[int, list[Path]] = {}
    for path in paths:
        if len(path) > depth:
            groups.setdefault(id(path[depth]), []).append(path)
    branches = [Branch(group[0][depth], tree_of(group, depth + 1)) for group in groups.values()]
    return FieldAdvice(branches[0].step.field, tuple(branches)) if branches else None


@dataclass(frozen=True)
class SiteAdvice:
    """All that one site says about one operation.

    Attributes:
        paths: The ways through its choices. One empty path: nothing to choose.
        reason: Why the site cannot run the operation, or why it did not answer; empty if there are paths.
        failed: Whether the reason is that it did not answer.
    """

    paths: tuple[Path, ...] = ()
    reason: str = ""
    failed: bool = False

    def select(self, field: str, value: Any) -> SiteAdvice:
        """Keep what goes together with a choice."""
        if self.reason:
            return self
        kept = tuple(p for p in self.paths if all(step.allows(value) for step in p if step.field == field))
        if kept:
            return SiteAdvice(kept)
        return SiteAdvice(reason=_why_not(self.paths, field, value))

    def to_data(self) -> dict[str, Any]:
        """Give it as data that can be sent."""
        steps: dict[int, Step] = {id(step): step for path in self.paths for step in path}
        numbers = {key: number for number, key in enumerate(steps)}
        return {
            "reason": self.reason,
            "failed": self.failed,
            "steps": [_step_data(step) for step in steps.values()],
            "paths": [[numbers[id(step)] for step in path] for path in self.paths],
        }

    @classmethod
    def from_data(cls, data: Any) -> SiteAdvice:
        """Make it of what `to_data` gave at a site.

        Raises:
            ValueError: it is no such thing.
        """
        try:
            steps = [_step_of(item) for item in data["steps"]]
            paths = tuple(tuple(steps[number] for number in path) for path in data["paths"])
            return cls(paths, str(data["reason"]), bool(data["failed"]))
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(f"not an answer: {error!r}") from error


def _why_not(paths: Iterable[Path], field: str, value: Any) -> str:
    steps = [step for path in paths for step in path if step.field == field]
    reasons = [step.error or (step.advice.validate(value) if step.advice else "") for step in steps]
    return "; ".join(dict.fromkeys(f"{field}: {reason}" for reason in reasons if reason))


def _step_data(step: Step) -> list[Any]:
    advice = None if step.advice is None else step.advice.describe()
    return [step.field, advice, step.partial, step.error, step.failed]


def _step_of(data: Any) -> Step:
    field, described, partial, error, failed = data
    advice = None if described is None else rebuild(described)
    if advice is not None and partial:
        object.__setattr__(advice, "break_on_advice", True)
    return Step(str(field), advice, str(error), bool(failed))
