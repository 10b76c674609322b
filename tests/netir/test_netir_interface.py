"""How two interfaces of an operation differ, in words."""

from __future__ import annotations

from typing import Any

import pytest

from dfmesh.netir.interface import MAX_DIFFERENCES, OperationInterface, ParameterInterface, interface_differences


def interface(version: str = "", returns: str = "", **parameters: Any) -> OperationInterface:
    given = {
        name: item if isinstance(item, ParameterInterface) else ParameterInterface({"type": item}, required=True)
        for name, item in parameters.items()
    }
    return OperationInterface(given, returns, version)


GRID = {"type": "object", "properties": {"cells": {"type": "array", "items": {"type": "number"}}}}
FINER = {"type": "object", "properties": {"cells": {"type": "array", "items": {"type": "integer"}}}}


@pytest.mark.parametrize(
    ("here", "there", "differences"),
    [
        (interface(hour="integer"), interface(hour="string"), ["parameter 'hour': integer here, string at the client"]),
        (interface(version="2"), interface(), ["version 2 here, not given at the client"]),
        (interface(), interface(hour="string"), ["parameter 'hour' is not known here"]),
        (interface(hour="string"), interface(), ["parameter 'hour' is not known to the client, and is required here"]),
        (
            interface(hour=ParameterInterface({}, required=True)),
            interface(hour=ParameterInterface({})),
            ["parameter 'hour': required here, optional at the client"],
        ),
        (
            interface(step=ParameterInterface({}, has_default=True, default=1)),
            interface(step=ParameterInterface({}, has_default=True, default=2)),
            ["parameter 'step': default 1 here, 2 at the client"],
        ),
        (
            interface(grid=ParameterInterface(GRID)),
            interface(grid=ParameterInterface(FINER)),
            ["parameter 'grid'.properties.cells.items: number here, integer at the client"],
        ),
        (
            interface(unit=ParameterInterface({"enum": ["C", "F"]})),
            interface(unit=ParameterInterface({"enum": ["C"]})),
            ["parameter 'unit'.enum: ['C', 'F'] here, ['C'] at the client"],
        ),
    ],
)
def test_differences_in_words(here: OperationInterface, there: OperationInterface, differences: list[str]) -> None:
    assert interface_differences(here.to_text(), there.to_text()) == differences


def test_the_text_does_not_depend_on_the_order() -> None:
    one = interface(a="string", b="integer")
    other = interface(b="integer", a="string")
    assert one.to_text() == other.to_text()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"parameters": 3}', "[" * 100_000, '{"parameters": {"a": 1}}'])
def test_what_comes_from_a_peer_may_be_anything(text: str) -> None:
    assert interface_differences(interface().to_text(), text) == [
        "what the pipeline was compiled against cannot be read"
    ]


def test_only_some_of_many_are_told() -> None:
    there = interface(**{f"p{number}": "string" for number in range(100)})
    told = interface_differences(interface().to_text(), there.to_text())
    assert len(told) == MAX_DIFFERENCES + 1
    assert told[-1] == "and 95 more"
