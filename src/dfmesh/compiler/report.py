"""What the passes that look for faults have found."""

from __future__ import annotations

from dfmesh.api import Pipeline, Statement, node_text
from dfmesh.errors import Fault


class Report:
    """The faults of a pipeline.

    Attributes:
        found: In the order in which they were found.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.found = list(pipeline.faults)
        self._location = pipeline.location

    def fault(self, statement: Statement | None, message: str, hint: str = "") -> None:
        """Note a fault.

        Args:
            statement: What is wrong; None for the pipeline itself.
            message: What is wrong with it.
            hint: What to do about it.
        """
        if statement is None:
            self.found.append(Fault(message, self._location, hint=hint))
            return
        path = node_text(statement.node_id) if statement.location is None else ""
        called = "" if statement.called_at is None else f", in the sub-pipeline called in {statement.called_at}"
        self.found.append(Fault(f"{message}{called}", statement.location, path=path, hint=hint))
