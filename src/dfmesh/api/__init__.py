"""The pipeline language."""

from dfmesh.api.blocks import Block, Else, If, blocks_of, statements_in
from dfmesh.api.building import user_location
from dfmesh.api.caching import TryFromCache, WriteToCache
from dfmesh.api.conditions import (
    And,
    Comparison,
    Condition,
    Equal,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    Logic,
    Not,
    NotEqual,
    Or,
)
from dfmesh.api.loops import Collect, ForEach, Reduce
from dfmesh.api.node_ids import NodeId, node_id_problem, node_text
from dfmesh.api.operation import RESERVED_PARAMETERS, Operation, Parameter, operation_class
from dfmesh.api.pipeline import Pipeline
from dfmesh.api.references import NO_DEFAULT, NodeRef, PlaceParam, Value, with_references
from dfmesh.api.sendable import LARGEST_NUMBER, is_unicode, number_fits
from dfmesh.api.statements import (
    STATUS_PLACE,
    Advise,
    BestOf,
    Choose,
    Expression,
    Part,
    Statement,
    Yield,
    find_references,
)
from dfmesh.api.suggestion import did_you_mean, likeliest

__all__ = [
    "LARGEST_NUMBER",
    "NO_DEFAULT",
    "RESERVED_PARAMETERS",
    "STATUS_PLACE",
    "Advise",
    "And",
    "BestOf",
    "Block",
    "Choose",
    "Collect",
    "Comparison",
    "Condition",
    "Else",
    "Equal",
    "Expression",
    "ForEach",
    "GreaterThan",
    "GreaterThanOrEqual",
    "If",
    "LessThan",
    "LessThanOrEqual",
    "Logic",
    "NodeId",
    "NodeRef",
    "Not",
    "NotEqual",
    "Operation",
    "Or",
    "Parameter",
    "Part",
    "Pipeline",
    "PlaceParam",
    "Reduce",
    "Statement",
    "TryFromCache",
    "Value",
    "WriteToCache",
    "Yield",
    "blocks_of",
    "did_you_mean",
    "find_references",
    "is_unicode",
    "likeliest",
    "node_id_problem",
    "node_text",
    "number_fits",
    "operation_class",
    "statements_in",
    "user_location",
    "with_references",
]
