"""Text in pandas: Arrow has one kind of it, pandas several, so which one a column has goes beside its table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dfmesh.values.kinds import Unsendable

_OBJECT = "object"
_TEXT = ("string", "empty")
_DTYPES: dict[str, Any] = {
    "python": pd.StringDtype("python"),
    "python nan": pd.StringDtype("python", na_value=np.nan),
    "arrow": pd.ArrowDtype(pa.string()),
    "arrow large": pd.ArrowDtype(pa.large_string()),
}
"""Data types of text in place of which a column of a table comes back with another one, by what we call them."""

_OF_INDEX: dict[str, Any] = {"string": pd.StringDtype(na_value=pd.NA)}
"""Further ones in place of which an index does."""

_MISSING: dict[str, Any] = {"None": None, "nan": np.nan, "NA": pd.NA}


def kind_of_text(values: Any, what: str) -> list[str] | None:
    """Give what a table cannot say of a column or index of text: `[kind, what stands for a missing text]`.

    Args:
        values: The Series or Index.
        what: What to call it in messages.

    Returns:
        None if the table says it all.

    Raises:
        Unsendable: it holds objects that are no text, or several things stand for a missing text.
    """
    if values.dtype != object:
        known = {**_DTYPES, **_OF_INDEX} if isinstance(values, pd.Index) else _DTYPES
        kind = next((kind for kind, dtype in known.items() if values.dtype == dtype), None)
        return None if kind is None else [kind, ""]
    found = pd.api.types.infer_dtype(values, skipna=True)
    if found not in _TEXT:
        raise Unsendable(f"{what} holds objects ({found}); give it a pandas dtype")
    missing = {_missing_as(item) for item in values[values.isna()]}
    if len(missing) > 1 or "" in missing:
        raise Unsendable(f"{what} holds objects, and several kinds of missing values among them; use one kind")
    return [_OBJECT, *missing] if missing else [_OBJECT, "None"]


def _missing_as(item: Any) -> str:
    if item is None:
        return "None"
    if item is pd.NA:
        return "NA"
    return "nan" if type(item) is float else ""


def restored_text(values: Any, kind: str, missing: str) -> Any:
    """Give the values of a column or index that came in a table as they were.

    Args:
        values: The Series or Index.
        kind: As `kind_of_text` gives it.
        missing: As well.
    """
    if kind != _OBJECT:
        return values.astype({**_DTYPES, **_OF_INDEX}[kind]).array
    items = np.array(values, dtype=object)
    items[np.asarray(values.isna(), dtype=bool)] = _MISSING[missing]
    return items
