"""Interfaces: which adapter carries out which operation, and what its owner says about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any, Final

from dfmesh.api import did_you_mean
from dfmesh.config.arguments import ArgumentsReader, Surroundings
from dfmesh.config.documents import Item, location_of
from dfmesh.config.misplaced import put_back
from dfmesh.config.model import (
    ISOLATIONS,
    AdapterSpec,
    ComputeCost,
    ConstructorCall,
    OperationSpec,
    ResidencyRule,
)
from dfmesh.config.operations import optional_flag, optional_text
from dfmesh.config.reader import Reader
from dfmesh.config.schema import SchemaReader

OPERATION_POINTER: Final = "#/operations/"
_ADAPTER_KEYS = {
    "adapter": True,
    "description": False,
    "returns": False,
    "is_async": False,
    "args": False,
    "compute_cost": False,
    "residency": False,
    "idempotent": False,
    "isolation": False,
    "concurrency": False,
}
_CALL_KEYS = {"path": True, "args": False}
_COST_KEYS = dict.fromkeys(
    ("fixed_time", "compute_throughput", "fixed_size", "output_factor", "price_per_second"), False
)


def operation_name(key: str) -> str:
    """The operation that an interface key means: `#/operations/weather.Bin` and `weather.Bin` are the same."""
    return key.removeprefix(OPERATION_POINTER)


def dotted_path(item: Item, reader: Reader) -> str | None:
    """Read the dotted path of a Python class or function."""
    text = reader.text(item)
    if text is None:
        return None
    parts = text.split(".")
    if len(parts) < 2 or not all(part.isidentifier() and not iskeyword(part) for part in parts):
        hint = "write module.name, such as weather.adapters.Bin"
        reader.fault(item, f"{text!r} is no dotted path of a Python class or function", hint)
    return text


def read_constructor(item: Item, reader: Reader) -> ConstructorCall | None:
    """Read a path, or a mapping of `path` and `args`."""
    found = reader.follow(item)
    if found is None:
        return None
    args: dict[str, Any] = {}
    at: Item | None = found
    if found.is_mapping:
        fields = reader.fields(found, _CALL_KEYS, "a constructor call") or {}
        args = reader.mapping_data(fields["args"]) if "args" in fields else {}
        at = fields.get("path")
    path = None if at is None else dotted_path(at, reader)
    return None if path is None else ConstructorCall(path, args, location_of((at or found).node))


def read_residency(fields: Mapping[str, Item], reader: Reader, sites: Sequence[str] | None) -> ResidencyRule | None:
    """Read `residency`, a list of sites; an empty one keeps results where they are made.

    Args:
        fields: Of a site or an adapter.
        reader: Takes the faults.
        sites: Names of all sites; None where they are not known, and are not checked.
    """
    item = fields.get("residency")
    if item is None or item.is_null:
        return None
    names = []
    for element in reader.elements(item):
        name = reader.text(element)
        if name is not None and sites is not None and name not in sites:
            reader.unknown_name(element, f"there is no site {name!r}", name, list(sites))
        elif name is not None:
            names.append(name)
    return ResidencyRule(tuple(names), location_of(item.key or item.node))


class InterfaceReader:
    """Reads the interfaces of sites and providers."""

    def __init__(self, reader: Reader, schemas: SchemaReader) -> None:
        self._reader = reader
        self._arguments = ArgumentsReader(reader, schemas)

    def read(self, item: Item, surroundings: Surroundings) -> dict[str, AdapterSpec]:
        """Read an interface.

        Args:
            item: Where it stands.
            surroundings: What its adapters may refer to.

        Returns:
            Adapters by operation name, in declared order, without those that have no usable path.
        """
        interface = {}
        named = self._reader.entries(item, operation_name) or {}
        own = {key: True for key in _ADAPTER_KEYS if key not in surroundings.operations}
        for name, entry in put_back(named, own, "operation", self._reader).items():
            operation = surroundings.operations.get(name)
            if operation is None:
                message = f"there is no operation {name!r}"
                hint = did_you_mean(name, list(surroundings.operations))
                self._reader.fault(entry, message, hint, at=entry.key)
                continue
            spec = self._adapter(operation, entry, surroundings)
            if spec is not None:
                interface[name] = spec
        return interface

    def _adapter(self, operation: OperationSpec, entry: Item, surroundings: Surroundings) -> AdapterSpec | None:
        reader, item = self._reader, self._reader.follow(entry)
        if item is None:
            return None
        is_short = item.is_scalar and not item.is_null
        fields = {"adapter": item} if is_short else reader.fields(item, _ADAPTER_KEYS, "an adapter") or {}
        call = read_constructor(fields["adapter"], reader) if "adapter" in fields else None
        arguments, exposed = self._arguments.read(operation, fields.get("args"), surroundings)
        cost, idempotent = fields.get("compute_cost"), optional_flag(fields, "idempotent", reader)
        spec = AdapterSpec(
            operation=operation.name,
            path=call.path if call else "",
            constructor_args=call.args if call else {},
            arguments=arguments,
            compute_cost=None if cost is None or cost.is_null else self._compute_cost(cost),
            is_async=optional_flag(fields, "is_async", reader),
            returns=optional_text(fields, "returns", reader),
            exposed=exposed,
            description=optional_text(fields, "description", reader) or "",
            location=call.location if call else location_of(entry.node),
            residency=read_residency(fields, reader, surroundings.sites),
            idempotent=operation.idempotent if idempotent is None else idempotent,
            isolation=self._isolation(fields),
            concurrency=self._concurrency(fields),
        )
        return spec if call else None

    def _isolation(self, fields: dict[str, Item]) -> str:
        text = optional_text(fields, "isolation", self._reader)
        if text is not None and text not in ISOLATIONS:
            self._reader.expected(fields["isolation"], " or ".join(ISOLATIONS))
        return text if text in ISOLATIONS else ISOLATIONS[0]

    def _concurrency(self, fields: dict[str, Item]) -> int | None:
        item = fields.get("concurrency")
        if item is None or item.is_null:
            return None
        number = self._reader.number(item, "calls at the same time", whole=True, positive=True)
        return None if number is None else int(number)

    def _compute_cost(self, item: Item) -> ComputeCost:
        fields = self._reader.fields(item, _COST_KEYS, "a compute cost") or {}
        return ComputeCost(
            fixed_time=self._amount(fields, "fixed_time", "seconds") or 0.0,
            compute_throughput=self._amount(fields, "compute_throughput", "bytes per second", positive=True),
            fixed_size=int(self._amount(fields, "fixed_size", "bytes") or 0),
            output_factor=self._amount(fields, "output_factor", "bytes of output per byte of input") or 0.0,
            price_per_second=self._amount(fields, "price_per_second", "money per second") or 0.0,
        )

    def _amount(self, fields: dict[str, Item], key: str, unit: str, *, positive: bool = False) -> float | None:
        item = fields.get(key)
        return None if item is None or item.is_null else self._reader.number(item, unit, positive=positive)
