"""Pydantic models: taken apart by field, validated again when they arrive."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pydantic

_SET, _EXTRA = " set", " extra"
"""Keys in a payload beside the fields; a field name has no space."""

_BY_NAME: dict[str, Any] = {"by_name": True, "by_alias": False}
_KNOWS_BY_NAME = "by_name" in inspect.signature(pydantic.BaseModel.model_validate).parameters


def take_apart(model: pydantic.BaseModel) -> dict[str, Any]:
    """Give the fields of a model, which of them were set, and its extra values. Private attributes stay here."""
    names = type(model).model_fields
    parts = {name: value for name, value in model.__dict__.items() if name in names}
    parts[_SET] = sorted(model.model_fields_set)
    if model.model_extra:
        parts[_EXTRA] = model.model_extra
    return parts


def builder(cls: type[Any]) -> Callable[[dict[str, Any]], pydantic.BaseModel]:
    """Make the function that validates the parts of a model and builds it."""

    def build(parts: dict[str, Any]) -> pydantic.BaseModel:
        fields_set = set(parts.pop(_SET))
        extra = parts.pop(_EXTRA, {})
        model: pydantic.BaseModel
        if issubclass(cls, pydantic.RootModel):
            model = cls.model_validate(parts["root"])
        elif _KNOWS_BY_NAME:
            model = cls.model_validate({**parts, **extra}, **_BY_NAME)
        else:
            model = cls.model_validate({**{_alias(cls, name): value for name, value in parts.items()}, **extra})
        object.__setattr__(model, "__pydantic_fields_set__", fields_set & (cls.model_fields.keys() | extra.keys()))
        return model

    return build


def _alias(cls: type[pydantic.BaseModel], name: str) -> str:
    field = cls.model_fields.get(name)
    alias = None if field is None else field.validation_alias
    return alias if isinstance(alias, str) and not cls.model_config.get("populate_by_name") else name
