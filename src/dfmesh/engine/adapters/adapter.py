"""An adapter, ready to be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dfmesh.config import AdapterSpec
from dfmesh.engine.adapters.binding import Bind, BindAll, Binding
from dfmesh.engine.adapters.calling import AdapterKind, annotations_of, is_stream


class Adapter:
    """A site's implementation of one operation.

    Attributes:
        spec: What the federation file says about it.
        kind: How it gives its result.
        target: The site's own object: an instance of the adapter class, or the function.
        bind: `bind(arguments)` maps the operation's arguments, by parameter name, to the adapter's keywords and gives
            a function without arguments that calls it. What that returns depends on `kind`: the result, an
            awaitable, an iterator or an async iterator. Raises AdapterArgumentError for what is unknown or missing,
            SecretError for a secret that is not there.
        call: What is called.
        bind_all: Gives the keywords with which `call` is called for several calls, at least one, that give the same
            parameters. Raises as `bind`.
    """

    __slots__ = ("_streams", "bind", "bind_all", "call", "kind", "spec", "target")

    def __init__(
        self, spec: AdapterSpec, kind: AdapterKind, target: Any, call: Callable[..., Any], binding: Binding
    ) -> None:
        self.spec = spec
        self.kind = kind
        self.target = target
        self.bind: Bind = binding.function()
        self.call = binding.call
        self.bind_all: BindAll = binding.functions()
        annotations = annotations_of(call)
        self._streams = frozenset(
            parameter
            for parameter, keywords in binding.keywords.items()
            if any(is_stream(annotations.get(keyword)) for keyword in keywords)
        )

    def streams_into(self, parameter: str) -> bool:
        """Whether the adapter reads a parameter as a stream: it is annotated as an Iterator or Generator.

        Args:
            parameter: Name of the operation's parameter.
        """
        return parameter in self._streams

    def __repr__(self) -> str:
        return f"<Adapter {self.spec.path} of {self.spec.operation} ({self.kind.value})>"
