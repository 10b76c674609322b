"""The pipeline language."""

from dfmesh.api.blocks import Block, Collect, Else, ForEach, If, Reduce, TryFromCache, WriteToCache
from dfmesh.api.building import NodeId, is_unicode, node_id_problem, node_text, number_fits, user_location
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
from dfmesh.api.operation import RESERVED_PARAMETERS, Operation, Parameter, did_you_mean, operation_class
from dfmesh.api.pipeline import Pipeline
from dfmesh.api.references import NO_DEFAULT, NodeRef, PlaceParam, Value, with_references
from dfmesh.api.statements import Advise, BestOf, Choose, Expression, Statement, Yield, find_references

__all__ = [
    "NO_DEFAULT",
    "RESERVED_PARAMETERS",
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
    "Pipeline",
    "PlaceParam",
    "Reduce",
    "Statement",
    "TryFromCache",
    "Value",
    "WriteToCache",
    "Yield",
    "did_you_mean",
    "find_references",
    "is_unicode",
    "node_id_problem",
    "node_text",
    "number_fits",
    "operation_class",
    "user_location",
    "with_references",
]
