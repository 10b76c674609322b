"""The codec for everything that crosses a process boundary: typed, closed, without pickle and imports by name."""

from dfmesh.values.codec import Packed, from_bytes, normalise, pack, to_bytes, unpack
from dfmesh.values.copying import UNCHANGING, Private, are_settled, is_unchanging, private_copy, settled
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
    "are_settled",
    "empty_array",
    "from_bytes",
    "from_json",
    "give_new_arrays",
    "is_unchanging",
    "normalise",
    "pack",
    "private_copy",
    "register_type",
    "settled",
    "size_of",
    "take_over",
    "to_bytes",
    "to_json",
    "unpack",
]
