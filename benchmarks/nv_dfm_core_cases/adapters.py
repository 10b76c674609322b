"""What the sites of the nv-dfm-core benchmark run: the operations of all contestants, in the form that it takes."""

from __future__ import annotations

import os
from typing import Any

from dfmesh.cli.bench import operations


class Echo:
    """Give the value back."""

    def body(self, value: int) -> int:
        return operations.echo(value)


class Array:
    """The array of that size and number, made once per process."""

    def body(self, size: int, index: int) -> Any:
        return operations.array(size, index)


class FreshArray:
    """An array that is made for this call."""

    def body(self, size: int) -> Any:
        return operations.fresh_array(size)


class Probe:
    """Look at every page of the array."""

    def body(self, array: Any) -> float:
        return operations.probe(array)


class Pid:
    """The process that runs this."""

    def body(self, value: int) -> int:
        return os.getpid()
