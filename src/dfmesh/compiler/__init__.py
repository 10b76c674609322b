"""The compiler: validate -> lower -> place -> route, one pass per module."""

from dfmesh.compiler.compile import CompiledPipeline, compile_pipeline
from dfmesh.compiler.costs import Costs
from dfmesh.compiler.explain import explain
from dfmesh.compiler.explanation import Explanation, Link, Row
from dfmesh.compiler.graph import Edge, Graph, GraphScope, Node
from dfmesh.compiler.lower import lower
from dfmesh.compiler.placement import Certificate, Estimate, Objective, ObjectiveName, Placement, place
from dfmesh.compiler.route import route
from dfmesh.compiler.validate import validate

__all__ = [
    "Certificate",
    "CompiledPipeline",
    "Costs",
    "Edge",
    "Estimate",
    "Explanation",
    "Graph",
    "GraphScope",
    "Link",
    "Node",
    "Objective",
    "ObjectiveName",
    "Placement",
    "Row",
    "compile_pipeline",
    "explain",
    "lower",
    "place",
    "route",
    "validate",
]
