"""xarray: arrays and datasets. Imported when the first of them is sent or arrives."""

from __future__ import annotations

from typing import Any

import pandas as pd
import xarray as xr

from dfmesh.values.kinds import Unsendable

Described = list[Any]


def _reduce_variable(variable: Any) -> Described:
    return [list(variable.dims), variable.values, dict(variable.attrs)]


def _reduce_coords(owner: Any) -> dict[Any, Described]:
    for name, index in owner.xindexes.items():
        if isinstance(index.to_pandas_index(), pd.MultiIndex):
            raise Unsendable(f"coordinate {name!r} is a MultiIndex and cannot be sent; call reset_index first")
    return {name: [*_reduce_variable(item.variable), name in owner.xindexes] for name, item in owner.coords.items()}


def _rebuild_coords(coords: dict[Any, Described]) -> Any:
    variables = {name: xr.Variable(dims, data, attrs) for name, (dims, data, attrs, _) in coords.items()}
    return variables, [name for name, (_, _, _, indexed) in coords.items() if not indexed]


def reduce_array(array: Any) -> Any:
    """Give `[name, variable, coordinates]`; lazy data is computed, `encoding` stays here."""
    return [array.name, _reduce_variable(array.variable), _reduce_coords(array)]


def rebuild_array(payload: Any) -> Any:
    """Make a data array whose data is a read-only view of the buffer it came in."""
    name, (dims, data, attrs), described = payload
    coords, plain = _rebuild_coords(described)
    array = xr.DataArray(data, coords=coords, dims=dims, name=name, attrs=attrs)
    return array.drop_indexes([item for item in plain if item in array.xindexes])


def reduce_dataset(dataset: Any) -> Any:
    """Give `[variables, coordinates, attributes]`; lazy data is computed, `encoding` stays here."""
    variables = {name: _reduce_variable(item.variable) for name, item in dataset.data_vars.items()}
    return [variables, _reduce_coords(dataset), dict(dataset.attrs)]


def rebuild_dataset(payload: Any) -> Any:
    """Make a dataset whose data are read-only views of the buffers they came in."""
    described, described_coords, attrs = payload
    coords, plain = _rebuild_coords(described_coords)
    variables = {name: xr.Variable(*parts) for name, parts in described.items()}
    dataset = xr.Dataset(variables, coords=coords, attrs=attrs)
    return dataset.drop_indexes([item for item in plain if item in dataset.xindexes])
