"""What a discovery found: per operation the sites that can run it, and the values that they allow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dfmesh import values
from dfmesh.api import BestOf, NodeId, Pipeline, node_text
from dfmesh.engine.discovery import AdvisedLiteral, AdvisedValue, FieldAdvice, SiteAdvice, Step
from dfmesh.engine.discovery.advice import same
from dfmesh.engine.discovery.paths import Path, tree_of
from dfmesh.errors import SourceLocation

_SHOWN = 20


@dataclass(frozen=True)
class Option:
    """Something that a field may be.

    Attributes:
        advice: What it may be: a value (`AdvisedLiteral`), a date range, ...
        sites: Sites that allow it, at least with some values of the other fields.
    """

    advice: AdvisedValue
    sites: tuple[str, ...]


@dataclass(frozen=True)
class FieldOptions:
    """One field of an operation over all sites.

    Attributes:
        field: Parameter of the operation.
        options: What it may be, in the order in which the sites say it.
        errors: Site to why it has no advice for the field.
    """

    field: str
    options: tuple[Option, ...]
    errors: Mapping[str, tuple[str, ...]]

    @property
    def values(self) -> list[Any]:
        """The single values among the options."""
        return [option.advice.value for option in self.options if isinstance(option.advice, AdvisedLiteral)]

    @property
    def sites(self) -> tuple[str, ...]:
        """Sites that allow something."""
        return tuple(dict.fromkeys(site for option in self.options for site in option.sites))

    def sites_for(self, value: Any) -> tuple[str, ...]:
        """Give the sites that allow a value."""
        fitting = [option for option in self.options if option.advice.validate(value) is None]
        return tuple(dict.fromkeys(site for option in fitting for site in option.sites))

    def lines(self) -> Iterator[str]:
        """Write it as text."""
        for option in self.options[:_SHOWN]:
            yield f"{option.advice}  ({', '.join(option.sites)})"
        if len(self.options) > _SHOWN:
            yield f"... and {len(self.options) - _SHOWN} more"
        for site, messages in self.errors.items():
            for message in messages:
                yield f"{site}: {message}"


@dataclass(frozen=True, repr=False)
class NodeDiscovery:
    """One operation of the pipeline.

    Attributes:
        node_id: Id of the statement.
        operation: Name of the operation.
        location: Where the user wrote it; None if it was read from a document.
        asked: Parameters that are `Advise()`.
        answers: What each site of the federation says.
    """

    node_id: NodeId
    operation: str
    location: SourceLocation | None
    asked: tuple[str, ...]
    answers: Mapping[str, SiteAdvice]

    @cached_property
    def sites(self) -> list[str]:
        """Sites that can run it, in declared order."""
        return [site for site, answer in self.answers.items() if not answer.reason and _verdict(answer.paths) == "yes"]

    @cached_property
    def unsure(self) -> dict[str, str]:
        """Sites that may be able to run it but could not say so, such as those whose advisor broke; with the reason."""
        return {
            site: answer.reason or _errors(answer.paths)
            for site, answer in self.answers.items()
            if (answer.failed if answer.reason else _verdict(answer.paths) == "unsure")
        }

    @cached_property
    def cannot(self) -> dict[str, str]:
        """Sites that cannot run it, with the reason."""
        return {
            site: answer.reason or _errors(answer.paths)
            for site, answer in self.answers.items()
            if site not in self.sites and site not in self.unsure
        }

    @cached_property
    def fields(self) -> dict[str, FieldOptions]:
        """What each field may be, over all sites that allow it; those asked about first."""
        names = dict.fromkeys(self.asked)
        names |= dict.fromkeys(step.field for _, path in self._paths() for step in path)
        return {name: self._field(name) for name in names}

    def tree(self, site: str) -> FieldAdvice | None:
        """Give the choices of a site as a tree, in which later fields depend on earlier ones.

        Args:
            site: Name of the site.

        Returns:
            The first field; None if the site has nothing to say.
        """
        return tree_of(self.answers[site].paths)

    def select(self, /, **choices: Any) -> NodeDiscovery:
        """Give what remains once some fields are chosen.

        Args:
            choices: Field to value.
        """
        answers = dict(self.answers)
        for name, value in choices.items():
            answers = {site: answer.select(name, value) for site, answer in answers.items()}
        asked = tuple(name for name in self.asked if name not in choices)
        return NodeDiscovery(self.node_id, self.operation, self.location, asked, answers)

    def single_values(self) -> dict[str, Any]:
        """Give the fields asked about that can have one value only, whichever of the sites runs it."""
        found: dict[str, Any] = {}
        for name in self.asked:
            options = [option for option in self.fields[name].options if set(option.sites) & set(self.sites)]
            if len(options) == 1 and isinstance(options[0].advice, AdvisedLiteral):
                found[name] = options[0].advice.value
        return found

    def _paths(self) -> Iterator[tuple[str, Path]]:
        for site, answer in self.answers.items():
            for path in answer.paths:
                yield site, path

    def _field(self, name: str) -> FieldOptions:
        options: list[tuple[AdvisedValue, list[str]]] = []
        errors: dict[str, list[str]] = {}
        for site, path in self._paths():
            possible = not any(step.error and not step.failed for step in path)
            for step in path:
                if step.field != name:
                    continue
                if step.error:
                    _note(errors.setdefault(site, []), step.error)
                elif possible:
                    _add(options, site, step)
        merged = tuple(Option(advice, tuple(sites)) for advice, sites in options)
        return FieldOptions(name, merged, {site: tuple(messages) for site, messages in errors.items()})

    def lines(self) -> Iterator[str]:
        """Write it as text."""
        where = f"  {self.location}" if self.location else ""
        yield f"{self.operation} ({node_text(self.node_id)}){where}"
        yield f"  can run at: {', '.join(self.sites) or '(no site)'}"
        for site, reason in self.unsure.items():
            yield f"  not sure:   {site}: {reason}"
        for site, reason in self.cannot.items():
            yield f"  cannot:     {site}: {reason}"
        for name, found in self.fields.items():
            yield f"  {name}{'' if name in self.asked else ' (not asked for)'}:"
            yield from (f"    {line}" for line in found.lines())
        yield from self._branch_lines()

    def _branch_lines(self) -> Iterator[str]:
        for site, answer in self.answers.items():
            tree = self.tree(site)
            if tree is not None and len(answer.paths) > 1:
                yield f"  choices at {site}:"
                yield from (f"    {line}" for line in list(tree.lines())[: 2 * _SHOWN])

    def to_document(self) -> dict[str, Any]:
        """Give it as a JSON document; values are written as in pipeline documents."""
        return {
            "node": self.node_id,
            "operation": self.operation,
            "location": str(self.location or ""),
            "sites": self.sites,
            "unsure": self.unsure,
            "cannot": self.cannot,
            "asked": list(self.asked),
            "fields": {name: _field_document(found) for name, found in self.fields.items()},
            "choices": {site: _tree_document(self.tree(site)) for site, answer in self.answers.items() if answer.paths},
        }

    def __repr__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True, repr=False)
class DiscoveryResult:
    """What `session.discover` gives.

    Attributes:
        nodes: Id of the statement to what was found, for each operation of the pipeline.
        seconds: How long it took.
    """

    nodes: Mapping[NodeId, NodeDiscovery]
    seconds: float

    def __getitem__(self, node: Any) -> NodeDiscovery:
        """Give what was found for a statement, named by itself or by its id."""
        return self.nodes[node if isinstance(node, int | str) else node.node_id]

    def __iter__(self) -> Iterator[NodeDiscovery]:
        return iter(self.nodes.values())

    def __len__(self) -> int:
        return len(self.nodes)

    def best_of(self) -> dict[NodeId, BestOf]:
        """Give the sites that can run each operation, to be used as `site=`. Operations without any are left out."""
        return {node_id: BestOf(list(node.sites)) for node_id, node in self.nodes.items() if node.sites}

    def narrow(
        self,
        pipeline: Pipeline,
        choices: Mapping[NodeId, Mapping[str, Any]] | None = None,
        *,
        include_unsure: bool = False,
    ) -> Pipeline:
        """Copy a pipeline, its operations narrowed to the sites that can run them and to the values chosen.

        An `Advise()` becomes the value chosen, or the only value that is possible; others stay as they are, to be
        asked about again.

        Args:
            pipeline: The pipeline that was asked about.
            choices: Id of a statement to field to value.
            include_unsure: Whether sites that could not say if they can run an operation are kept.

        Raises:
            PipelineError: no site can run an operation with these values, or there is no such statement or field.
        """
        from dfmesh.session.narrowing import narrow

        return narrow(self, pipeline, choices or {}, include_unsure=include_unsure)

    def to_document(self) -> dict[str, Any]:
        """Give it as a JSON document."""
        return {"seconds": self.seconds, "nodes": [node.to_document() for node in self]}

    def to_json(self, *, indent: int | None = None) -> str:
        """Give it as JSON text."""
        return json.dumps(self.to_document(), indent=indent)

    def __repr__(self) -> str:
        return "\n".join(str(node) for node in self)


def _verdict(paths: tuple[Path, ...]) -> str:
    if any(not any(step.error for step in path) for path in paths):
        return "yes"
    return "unsure" if any(not any(step.error and not step.failed for step in path) for path in paths) else "no"


def _errors(paths: tuple[Path, ...]) -> str:
    found: list[str] = []
    for path in paths:
        for step in path:
            if step.error:
                _note(found, f"{step.field}: {step.error}")
    return "; ".join(found)


def _note(messages: list[str], message: str) -> None:
    if message not in messages:
        messages.append(message)


def _add(options: list[tuple[AdvisedValue, list[str]]], site: str, step: Step) -> None:
    for option in step.advice.options() if step.advice is not None else ():
        sites = next((sites for known, sites in options if _equal(known, option)), None)
        if sites is None:
            options.append((option, [site]))
        else:
            _note(sites, site)


def _equal(one: AdvisedValue, other: AdvisedValue) -> bool:
    if isinstance(one, AdvisedLiteral) and isinstance(other, AdvisedLiteral):
        return same(one.value, other.value)
    return type(one) is type(other) and same(one.describe(), other.describe())


def _field_document(found: FieldOptions) -> dict[str, Any]:
    options = [{"advice": values.to_json(o.advice.describe()), "sites": list(o.sites)} for o in found.options]
    return {"options": options, "errors": {site: list(messages) for site, messages in found.errors.items()}}


def _tree_document(tree: FieldAdvice | None) -> dict[str, Any] | None:
    if tree is None:
        return None
    branches = [
        {
            "advice": None if branch.advice is None else values.to_json(branch.advice.describe()),
            "error": branch.step.error,
            "partial": branch.step.partial,
            "then": _tree_document(branch.then),
        }
        for branch in tree.branches
    ]
    return {"field": tree.field, "branches": branches}
