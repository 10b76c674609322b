"""Operations: the statements that call something at a site."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dfmesh.api.node_ids import NodeId
from dfmesh.api.references import Value, with_references
from dfmesh.api.statements import Advise, BestOf, Expression
from dfmesh.errors import Fault

RESERVED_PARAMETERS = frozenset(
    {"site", "provider", "after", "retries", "timeout", "node_id", "dfm_after", "dfm_node_id", "dfm_class_name"}
)
"""Names that every operation takes besides its own parameters."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation.

    Attributes:
        name: Its name.
        schema: JSON Schema of its values; empty for anything.
        required: Whether the user must give it.
        default: Value where the user gives none, if it has `has_default`.
        has_default: Whether `default` is one.
        description: For people.
    """

    name: str
    schema: dict[str, Any] = field(default_factory=dict)
    required: bool = True
    default: Any = None
    has_default: bool = False
    description: str = ""


class Operation(Expression):
    """A call of an operation of the federation. Its classes are made from the federation file: `fed.ops.weather.Bin`.

    Attributes:
        operation: Name of the operation, such as `weather.Bin`.
        parameters: What it takes; None if unknown (read from a document).
        arguments: What the user gave, by parameter name.
        site: Name of a site, or BestOf.
        provider: Provider in the site; None for the site's own interface.
        retries: How often a failed call is tried again.
        timeout: Seconds one call may take.
    """

    operation: str = ""
    parameters: tuple[Parameter, ...] | None = None

    def __init__(
        self,
        /,
        *positional: Any,
        site: str | BestOf | Advise | None = None,
        provider: str | None = None,
        after: Any = None,
        retries: int = 0,
        timeout: float | None = None,
        node_id: NodeId | None = None,
        dfm_after: Any = None,
        dfm_node_id: NodeId | None = None,
        **arguments: Any,
    ) -> None:
        """Call the operation.

        Args:
            positional: Arguments in the order of the parameters.
            site: Where to run it: a site's name, `BestOf([...])`, or nothing for any site that can.
            provider: Provider in the site.
            after: A statement, an id, or a list of them, that must have ended before.
            retries: How often to try again a call that failed.
            timeout: Seconds one call may take.
            node_id: A name for the statement.
            dfm_after: DFM's spelling of `after`.
            dfm_node_id: DFM's spelling of `node_id`.
            arguments: Arguments by parameter name.
        """
        self.site: str | BestOf | Advise = BestOf() if site is None else site
        self.provider = provider
        self.retries = retries
        self.timeout = timeout
        super().__init__(
            node_id=node_id if node_id is not None else dfm_node_id, after=after if after is not None else dfm_after
        )
        self.arguments: dict[str, Any] = {}
        for name, value in [*self._by_position(positional), *arguments.items()]:
            self._give(name, value)

    __hash__ = Value.__hash__

    def _by_position(self, positional: Sequence[Any]) -> list[tuple[str, Any]]:
        names = [parameter.name for parameter in self.parameters or ()]
        if len(positional) > len(names):
            count = f"takes {len(names)} argument{'s' * (len(names) != 1)}"
            takes = count if self.parameters is not None else "takes arguments by name only"
            self._fault(f"{self.operation} {takes}, {len(positional)} were given by position", _signature(names))
        return list(zip(names, positional, strict=False))

    def _give(self, name: str, value: Any) -> None:
        if name in self.arguments:
            self._fault(f"{self.operation} is given {name!r} twice", "give it by position or by name")
        self.arguments[name] = with_references(value)

    def _fault(self, message: str, hint: str) -> None:
        self.faults.append(Fault(message, self.location, hint=hint))

    @property
    def label(self) -> str:
        """Name of the operation."""
        return self.operation

    def values(self) -> Iterator[Any]:
        """Iterate over the arguments."""
        return iter(self.arguments.values())


def _signature(names: Sequence[str]) -> str:
    verb = "s are" if len(names) > 1 else " is"
    return f"its parameter{verb} {', '.join(names)}" if names else "it has no parameters"


def operation_class(
    name: str, parameters: Sequence[Parameter], description: str = "", returns: str | None = None
) -> type[Operation]:
    """Make the class of an operation, with signature and docstring.

    Args:
        name: Dotted name, such as `weather.Bin`.
        parameters: What it takes, in order.
        description: For people; becomes the docstring.
        returns: Type of the result as text.
    """
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter("site", keyword, default=None, annotation="str | BestOf | None"),
        inspect.Parameter("provider", keyword, default=None, annotation="str | None"),
        inspect.Parameter("after", keyword, default=None),
        inspect.Parameter("retries", keyword, default=0, annotation="int"),
        inspect.Parameter("timeout", keyword, default=None, annotation="float | None"),
        inspect.Parameter("node_id", keyword, default=None, annotation="int | str | None"),
    ]
    own = [_python_parameter(parameter) for parameter in parameters if parameter.name.isidentifier()]
    # Python wants parameters without default first; operations take theirs in declared order.
    own.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)
    namespace = {
        "__doc__": _docstring(name, parameters, description, returns),
        "__signature__": inspect.Signature([*own, *options]),
        "__module__": "dfmesh.ops",
        "operation": name,
        "parameters": tuple(parameters),
    }
    return type(name.rpartition(".")[2], (Operation,), namespace)


def undeclared_operation(name: str) -> type[Operation]:
    """Make the class of an operation of which nothing is known but its name (read from a document).

    Args:
        name: Dotted name, such as `weather.Bin`.
    """
    return type("Operation", (Operation,), {"operation": name, "__module__": "dfmesh.ops"})


def _python_parameter(parameter: Parameter) -> inspect.Parameter:
    annotation = _type_text(parameter.schema)
    default = inspect.Parameter.empty if parameter.required else parameter.default if parameter.has_default else None
    try:
        return inspect.Parameter(
            parameter.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation
        )
    except ValueError:  # a Python keyword such as `from`: can be given as **{"from": ...}
        return inspect.Parameter(
            f"{parameter.name}_", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation
        )


def _type_text(schema: dict[str, Any]) -> str:
    kind = schema.get("title") or schema.get("type") or "any"
    return " | ".join(kind) if isinstance(kind, list) else str(kind)


def _docstring(name: str, parameters: Sequence[Parameter], description: str, returns: str | None) -> str:
    lines = [description.strip() or f"The operation {name}.", ""]
    if parameters:
        lines.append("Args:")
        for parameter in parameters:
            default = f" Default {parameter.default!r}." if parameter.has_default else ""
            text = f"{parameter.description.strip()}{default}".strip()
            lines.append(f"    {parameter.name} ({_type_text(parameter.schema)}): {text}".rstrip(": "))
    if returns:
        lines += ["", f"Returns: {returns}"]
    return "\n".join(lines).strip()
