"""From the arguments of an operation to a call of its adapter.

Everything that does not change between calls is worked out when the adapter is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from dfmesh.api import Parameter, did_you_mean
from dfmesh.config import AdapterSpec, ArgumentSource, Constant, FromParameter, FromProvider, FromSecrets, FromSite
from dfmesh.config.fitting import fit_of, is_stream
from dfmesh.config.fitting_limits import Judge
from dfmesh.engine.adapters.calling import Signature
from dfmesh.engine.adapters.errors import AdapterArgumentError, AdapterLoadError

Bind = Callable[[dict[str, Any]], Callable[[], Any]]
BindAll = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
Check = tuple[str, set[type] | frozenset[type], Judge]
"""Name of a parameter, types that fit it, and what judges values of others."""

Fetch = Callable[[FromSecrets | FromProvider | FromSite], Callable[[], Any]]


class Binding:
    """Maps the arguments of an operation to the keywords of one adapter.

    Attributes:
        call: What is called, by keyword.
        keywords: Those that each parameter of the operation is handed over under.
    """

    def __init__(
        self,
        spec: AdapterSpec,
        parameters: Iterable[Parameter],
        call: Callable[..., Any],
        signature: Signature,
        fetch: Fetch,
    ) -> None:
        """Work out the mapping.

        Args:
            spec: The adapter in the federation file.
            parameters: Parameters of the operation.
            call: What is called, by keyword.
            signature: The keywords it takes.
            fetch: Gives a function that fetches a secret or property.

        Raises:
            AdapterLoadError: If no call could ever succeed.
        """
        self._spec = spec
        self._parameters = {parameter.name: parameter for parameter in parameters}
        self.call = call
        self._signature = signature
        self.keywords: dict[str, tuple[str, ...]] = {}
        self._constants: dict[str, Any] = {}
        self._fetched: list[tuple[str, Callable[[], Any]]] = []
        if signature.positional:
            self._refuse(f"{signature.positional[0]!r} can only be given by position; adapters are called by name")
        self._map(spec.arguments if spec.arguments is not None else self._from_operation(), fetch)
        self._needed = frozenset(
            name for name, parameter in self._parameters.items() if parameter.required and self.keywords.get(name)
        )
        self._check_signature()
        fits = {
            one.name: fit_of(one) for one in (*self._parameters.values(), *spec.exposed) if one.name in self.keywords
        }
        self._checks: list[Check] = [(name, fit.quick, fit.judge) for name, fit in fits.items() if fit is not None]

    def _from_operation(self) -> dict[str, ArgumentSource]:
        always = [name for name, parameter in self._parameters.items() if parameter.required or parameter.has_default]
        for name in always:
            if not self._signature.takes(name):
                self._refuse(
                    f"operation {self._spec.operation} has the parameter {name!r}, "
                    f"which {self._adapter} does not take; add it there, or map the parameters with 'args'"
                )
        return {name: FromParameter(name) for name in self._parameters if self._signature.takes(name)}

    def _map(self, arguments: dict[str, ArgumentSource], fetch: Fetch) -> None:
        targets: dict[str, list[str]] = {name: [] for name in self._parameters}
        for keyword, source in arguments.items():
            if isinstance(source, FromParameter):
                targets[source.parameter].append(keyword)
                self._add_default(keyword, self._parameters[source.parameter])
                continue
            if source.exposed_as is not None:
                targets.setdefault(source.exposed_as, []).append(keyword)
            if isinstance(source, Constant):
                self._constants[keyword] = source.value
            else:
                self._fetched.append((keyword, fetch(source)))
        self.keywords = {name: tuple(keywords) for name, keywords in targets.items()}

    def _add_default(self, keyword: str, parameter: Parameter) -> None:
        if parameter.has_default:
            self._constants[keyword] = parameter.default
        elif not parameter.required and keyword in self._signature.needed:
            # Optional for the user, needed by the adapter: None is what it gets in DFM, too.
            self._constants[keyword] = None

    def _check_signature(self) -> None:
        given = {keyword for keywords in self.keywords.values() for keyword in keywords}
        given.update(self._constants, (keyword for keyword, _ in self._fetched))
        for keyword in given:
            if not self._signature.takes(keyword):
                hint = did_you_mean(keyword, self._signature.names)
                self._refuse(f"'args' gives {keyword!r}, which {self._adapter} does not take ({hint})")
        missing = sorted(self._signature.needed - given)
        if missing:
            self._refuse(
                f"{self._adapter} needs {missing[0]!r}, which is neither a parameter of {self._spec.operation} "
                "handed to it nor in 'args'"
            )

    def _refuse(self, reason: str) -> None:
        raise AdapterLoadError(self._spec.path, reason, self._spec.location)

    @property
    def _adapter(self) -> str:
        return f"{self._spec.path.rpartition('.')[2]}{self._signature}"

    # -- calls

    def functions(self) -> BindAll:
        """Give the function that gives the keywords of several calls, which give the same parameters."""
        if not self._is_direct():
            map_one = self._mapped()
            return lambda given: list(map(map_one, given))
        known, needed, complain = frozenset(self.keywords), self._needed, self._complain
        checks, check = self._checks, self._check

        def bind_all(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
            names = given[0].keys()
            if not (names <= known and needed <= names):
                complain(given[0])
            for name, quick, judge in checks:
                for arguments in given:
                    if type(arguments.get(name)) not in quick:
                        check(name, judge, arguments)
            return given

        return bind_all

    def _is_direct(self) -> bool:
        is_same = all(keywords == (name,) for name, keywords in self.keywords.items())
        return is_same and not self._constants and not self._fetched

    def function(self) -> Bind:
        """Give the function that binds the arguments of one call."""
        if self._is_direct():
            return self._direct()
        call, map_one = self.call, self._mapped()
        return lambda arguments: partial(call, **map_one(arguments))

    def _direct(self) -> Bind:
        """The common case: parameters are handed over under their own names."""
        call, known, needed, complain = self.call, frozenset(self.keywords), self._needed, self._complain
        checks, check = self._checks, self._check

        def bind(arguments: dict[str, Any]) -> Callable[[], Any]:
            names = arguments.keys()
            if not (names <= known and needed <= names):
                complain(arguments)
            for name, quick, judge in checks:
                if type(arguments.get(name)) not in quick:
                    check(name, judge, arguments)
            return partial(call, **arguments)

        return bind

    def _mapped(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        keywords, needed, complain = self.keywords, self._needed, self._complain
        constants, fetched = self._constants, tuple(self._fetched)
        unused = self._unused_are_errors()
        checks, check = self._checks, self._check

        def map_one(arguments: dict[str, Any]) -> dict[str, Any]:
            names = arguments.keys()
            if not (names <= keywords.keys() and needed <= names) or (unused and not unused.isdisjoint(names)):
                complain(arguments)
            for name, quick, judge in checks:
                if type(arguments.get(name)) not in quick:
                    check(name, judge, arguments)
            given = dict(constants)
            for name, value in arguments.items():
                for keyword in keywords[name]:
                    given[keyword] = value
            for keyword, fetch in fetched:
                if keyword not in given:
                    given[keyword] = fetch()
            return given

        return map_one

    def _unused_are_errors(self) -> frozenset[str]:
        """Parameters that `from-operation` cannot hand over. Explicit `args` may leave some out on purpose."""
        if self._spec.arguments is not None:
            return frozenset()
        return frozenset(name for name, keywords in self.keywords.items() if not keywords)

    def _check(self, name: str, judge: Judge, arguments: dict[str, Any]) -> None:
        """Refuse an argument that is not what the parameter takes by this site's own declaration."""
        if name not in arguments:
            return
        mismatch = judge(arguments[name])
        if mismatch and not is_stream(arguments[name]):
            raise AdapterArgumentError(f"{name} {mismatch}")

    def _complain(self, arguments: dict[str, Any]) -> None:
        operation = self._spec.operation
        for name in arguments:
            if name in self._parameters and not self.keywords[name]:
                raise AdapterArgumentError(
                    f"operation {operation} has the parameter {name!r}, but its adapter {self._adapter} "
                    f"does not take it ({self._spec.location})"
                )
            if name not in self.keywords:
                hint = did_you_mean(name, list(self.keywords))
                raise AdapterArgumentError(
                    f"operation {operation} has no parameter {name!r} here, where its adapter is {self._adapter} "
                    f"({hint})"
                )
        missing = sorted(self._needed - arguments.keys())
        raise AdapterArgumentError(f"operation {operation} is called without {', '.join(map(repr, missing))}")
