"""The codec for everything that crosses a process boundary: typed, closed, without pickle and imports by name."""

from dfmesh.values.codec import Packed, from_bytes, normalise, pack, to_bytes, unpack
from dfmesh.values.copying import UNCHANGING, Private, is_unchanging, private_copy
from dfmesh.values.documents import from_json, to_json
from dfmesh.values.new_arrays import empty_array, give_new_arrays
from dfmesh.values.pickled import PickledObject
from dfmesh.values.registry import register_type
from dfmesh.values.sizes import size_of
from dfmesh.values.taking_over import take_over

__all__ = [
    "UNCHANGING",
    "Packed",
    "PickledObject",
    "Private",
    "empty_array",
    "from_bytes",
    "from_json",
    "give_new_arrays",
    "is_unchanging",
    "normalise",
    "pack",
    "private_copy",
    "register_type",
    "size_of",
    "take_over",
    "to_bytes",
    "to_json",
    "unpack",
]
