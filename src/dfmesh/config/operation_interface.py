"""From an operation in the federation file to what callers and sites have to agree on."""

from __future__ import annotations

from typing import Any

from dfmesh.config.model import OperationSpec
from dfmesh.netir.interface import OperationInterface, ParameterInterface

_FOR_PEOPLE = frozenset({"description", "title", "examples", "default", "discoverable", "deprecated", "$comment"})
_BY_NAME = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs"})
"""Keywords of a schema whose value has schemas by names that are no keywords."""


def interface_of(operation: OperationSpec) -> OperationInterface:
    """Give the interface of an operation: parameters, result and version, without what is only for people.

    Args:
        operation: As the federation file has it.
    """
    parameters = {
        parameter.name: ParameterInterface(
            _essence(parameter.schema), parameter.required, parameter.has_default, parameter.default
        )
        for parameter in operation.parameters
    }
    return OperationInterface(parameters, operation.returns or "", operation.version or "")


def _essence(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_essence(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _essence(one) for name, one in value.items()}
        if key in _BY_NAME and isinstance(value, dict)
        else value
        if key == "enum"
        else _essence(value)
        for key, value in schema.items()
        if key not in _FOR_PEOPLE and not str(key).startswith("accepts-")
    }
