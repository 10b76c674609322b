"""What a client has to know of a job to make sense of what comes of it."""

from __future__ import annotations

from dataclasses import dataclass

from dfmesh.compiler import CompiledPipeline
from dfmesh.errors import SessionError
from dfmesh.netir import SendYield


@dataclass(frozen=True)
class JobPlan:
    """The places of a job's results and, for who has submitted it, all the rest.

    Attributes:
        name: Name of the pipeline; empty if it has none.
        sources: Place to the number of Yields that send to it.
        order: Position of each statement that yields, by the text of its id.
        pipeline: What runs; None if another client has submitted it.
        number: What the job is followed with at its host; 0 for one's own.
    """

    name: str
    sources: dict[str, int]
    order: dict[str, int]
    pipeline: CompiledPipeline | None = None
    number: int = 0

    @property
    def compiled(self) -> CompiledPipeline:
        """What runs.

        Raises:
            SessionError: another client has submitted it.
        """
        if self.pipeline is None:
            raise SessionError("the pipeline of this job is known only to the client that submitted it")
        return self.pipeline


def plan_of(compiled: CompiledPipeline) -> JobPlan:
    """Make the plan of one's own job."""
    sources: dict[str, int] = {}
    for node in compiled.graph.nodes:
        if isinstance(node.action, SendYield):
            sources[node.action.place] = sources.get(node.action.place, 0) + 1
    return JobPlan(compiled.pipeline.name or "", sources, compiled.order, compiled)
