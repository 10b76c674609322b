"""What a value consists of: the elements that a loop goes over, and the item that a selector takes.

Both give a cell of a table, or of a column of one, as a plain Python value: a time is a `datetime` whether Arrow,
pandas or Python has it, and what is missing is None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dfmesh.errors import DfmeshError
from dfmesh.values.codec import to_bytes

_OF_TABLES = ("pandas", "pyarrow")


def elements_of(sequence: Any) -> Iterator[Any]:
    """Iterate over what a loop takes as a sequence.

    A dictionary gives pairs of key and value, a table of Arrow or pandas its rows as dictionaries, a column of theirs
    Python values, an array of NumPy or xarray what stands along its first axis, an xarray data set pairs of name and
    array, a set its elements in the order of their encodings. Everything else gives what Python's iteration does.

    Raises:
        DfmeshError: it is not a sequence. Text and bytes are not, though Python could iterate them.
    """
    if isinstance(sequence, Mapping):
        return iter(sequence.items())
    if isinstance(sequence, set | frozenset):
        # A job that goes on after a loss knows an element by its number, and no two processes order a set alike.
        return iter(sorted(sequence, key=to_bytes))
    library = type(sequence).__module__.partition(".")[0]
    if library == "pyarrow" and hasattr(sequence, "to_pylist"):
        return _arrow_elements(sequence)
    if library == "pandas":
        return _pandas_elements(sequence)
    if not has_elements(sequence):
        kind = type(sequence).__name__
        raise DfmeshError(f"ForEach goes over lists, arrays and the like, not over a value of type {kind}")
    return iter(sequence)


def has_elements(value: Any) -> bool:
    """Tell whether a loop can go over a value; text, bytes and arrays without dimensions are refused."""
    # Tables and batches of Arrow are sequences of rows to a loop, though Python does not iterate them.
    iterable = hasattr(value, "__iter__") or hasattr(value, "to_batches") or hasattr(value, "to_pylist")
    is_text = isinstance(value, str | bytes | bytearray | memoryview)
    return iterable and not is_text and getattr(value, "shape", None) != ()


def item_of(value: Any, key: str | int) -> Any:
    """Give `value[key]`.

    Raises:
        Exception: whatever the value's class raises if there is no such item.
    """
    item = value[key]
    return plain_cell(item) if type(value).__module__.startswith(_OF_TABLES) else item


def plain_cell(cell: Any) -> Any:
    """Give a cell of a table as a plain Python value; what is no cell, such as a column, as it is."""
    kind = type(cell)
    match kind.__name__:
        case "Timestamp":
            return cell.to_pydatetime(warn=False)
        case "Timedelta":
            return cell.to_pytimedelta()
        case "NaTType" | "NAType":
            return None
    if kind.__module__ == "numpy" and getattr(cell, "shape", None) == ():
        return cell.item()
    return cell.as_py() if kind.__module__.startswith("pyarrow") and hasattr(cell, "as_py") else cell


def _arrow_elements(sequence: Any) -> Iterator[Any]:
    if hasattr(sequence, "to_batches"):
        return (row for batch in sequence.to_batches() for row in batch.to_pylist())
    if hasattr(sequence, "schema"):
        return iter(sequence.to_pylist())
    return (item.as_py() for item in sequence)


def _pandas_elements(sequence: Any) -> Iterator[Any]:
    if not hasattr(sequence, "itertuples"):
        return map(plain_cell, sequence)
    names = list(sequence.columns)
    rows = sequence.itertuples(index=False, name=None)
    return (dict(zip(names, map(plain_cell, row), strict=True)) for row in rows)
