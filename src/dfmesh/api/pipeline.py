"""The pipeline: what the user writes, a list of statements that is data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

from dfmesh.api.blocks import Block, statements_in
from dfmesh.api.building import OPEN_BLOCKS, user_location
from dfmesh.api.files import MEBIBYTE, read_file
from dfmesh.api.node_ids import NodeId
from dfmesh.api.references import NO_DEFAULT, PlaceParam
from dfmesh.api.statements import Statement
from dfmesh.errors import Fault, PipelineError, SourceLocation
from dfmesh.user_lines import shown_file

if TYPE_CHECKING:
    from dfmesh.api.subpipeline import SubPipelineValues


T_co = TypeVar("T_co", covariant=True)

Objective = Literal["time", "bytes", "money"]
"""What sites are chosen for."""

MAX_DOCUMENT_SIZE = 64 * MEBIBYTE
"""Bytes that a file with a pipeline may have."""

_BYTE_ORDER_MARK = "\ufeff"
"""Editors of Windows put it at the beginning of a text."""


class Explains(Protocol[T_co]):
    """What can explain a pipeline: a federation."""

    def explain(self, pipeline: Pipeline, *, homesite: str | None = None, objective: Objective = "time") -> T_co:
        """Explain a pipeline."""
        ...


class Pipeline(Block):
    """A pipeline under construction or ready to run.

    Use it as a context; operations, yields and blocks created inside become its statements. A further `with` adds to
    them.

    Attributes:
        name: What people call it.
        mode: `execute`, or `discovery`.
        api_version: Version of the federation's interface it was written for; empty for any.
        body: The statements.
        location: Where the user wrote it; None if it was read from a document.
        identity: Tells it from all others; copies of it have the same.
        faults: What was already seen to be wrong when it was written; reported by the validator.
    """

    def __init__(
        self, name: str | None = None, *, mode: Literal["execute", "discovery"] = "execute", api_version: str = ""
    ) -> None:
        """Make an empty pipeline.

        Args:
            name: What people call it.
            mode: `execute`, or `discovery`.
            api_version: Version of the federation's interface it is for; empty for any.
        """
        self.name = name
        self.mode: Literal["execute", "discovery"] = mode
        self.api_version = api_version
        self.body: list[Statement] = []
        self.location = user_location()
        self.faults: list[Fault] = []
        self.identity = os.urandom(8)
        self._next_id = 0
        self._passed_on: list[PlaceParam] = []

    def __enter__(self) -> Self:
        if OPEN_BLOCKS.get():
            fault = Fault(
                "a pipeline is being written inside another", user_location(), hint="close the outer one first"
            )
            raise PipelineError("pipelines do not nest", [fault])
        self.entered = False  # Unlike other blocks, it may be continued.
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        if kind is not None and traceback is not None:
            here = SourceLocation(shown_file(traceback.tb_frame.f_code.co_filename), traceback.tb_lineno)
            what = f"the pipeline was left here by an error ({kind.__name__}), so that statements may be missing"
            self.faults.append(Fault(what, here, hint="mend that, and write the whole pipeline anew"))

    def __call__(self, /, **arguments: Any) -> SubPipelineValues:
        """Use this pipeline as a statement of the one that is being written.

        Its statements are copied there; its yields become values: `hour(day=d)["map"]`.

        Args:
            arguments: Its parameters: references, parameters or constants.

        Raises:
            PipelineError: no pipeline is being written, or the arguments do not fit.
        """
        from dfmesh.api.subpipeline import inline

        return inline(self, arguments)

    def explain(
        self, federation: Explains[T_co], *, homesite: str | None = None, objective: Objective = "time"
    ) -> T_co:
        """Tell where each operation would run, why, and what would move; nothing runs.

        Args:
            federation: The federation it is for.
            homesite: Site to which the client talks; None for the federation's own.
            objective: What the sites are chosen for: the least `time`, `bytes` moved, or `money`.

        Raises:
            PipelineError: the pipeline has faults; all of them are listed.
            TypeError: that is no federation.
        """
        if not callable(getattr(federation, "explain", None)):
            what = f"p.explain takes the federation, what Federation.load(path) gives, not {federation!r:.80}"
            raise TypeError(what)
        return federation.explain(self, homesite=homesite, objective=objective)

    def next_node_id(self) -> int:
        """Take the next free number for a statement."""
        number = self._next_id
        self._next_id += 1
        return number

    def reserve_node_ids(self, up_to: int) -> None:
        """Make sure that numbers below `up_to` are not given again."""
        self._next_id = max(self._next_id, up_to)

    def statements(self) -> Iterator[Statement]:
        """Iterate over all statements, those of blocks after the block's own, in the order written."""
        return statements_in(self)

    def parameters(self) -> dict[str, PlaceParam]:
        """Give its parameters by name, in the order they first appear, with a default if any of its uses has one.

        What was given to a sub-pipeline is a parameter too, last, even if nothing came of it there.
        """
        found: dict[str, PlaceParam] = {}
        used = (reference for statement in self.statements() for reference in statement.references())
        for reference in (*used, *self._passed_on):
            if isinstance(reference, PlaceParam):
                known = found.get(reference.place)
                if known is None or (known.default is NO_DEFAULT and reference.default is not NO_DEFAULT):
                    found[reference.place] = reference
        return found

    def note_passed_on(self, parameter: PlaceParam) -> None:
        """Note a parameter that is given to a sub-pipeline, which may have no use for it."""
        self._passed_on.append(parameter)

    def node(self, node_id: NodeId) -> Statement:
        """Find a statement by its id.

        Raises:
            KeyError: there is none.
        """
        for statement in self.statements():
            if statement.node_id == node_id and type(statement.node_id) is type(node_id):
                return statement
        raise KeyError(node_id)

    def to_document(self) -> dict[str, Any]:
        """Give the pipeline as a JSON document (DFM's pipeline format)."""
        from dfmesh.api.document import write_document

        return write_document(self)

    def model_dump_json(self, *, indent: int | None = None) -> str:
        """Give the pipeline as JSON text; `Pipeline.load` reads it."""
        return json.dumps(self.to_document(), indent=indent)

    def save(self, path: str | Path) -> None:
        """Write the pipeline to a JSON file."""
        Path(path).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, source: str | Path) -> Pipeline:
        """Read a pipeline from JSON text or from a JSON file. Nothing in it is imported or run.

        Args:
            source: A path of a regular file of at most 64 MiB, or the text itself if it begins with `{`.

        Raises:
            PipelineError: it is not a pipeline; lists every fault with its key path.
        """
        from dfmesh.api.document import read_document

        text, name = str(source).removeprefix(_BYTE_ORDER_MARK), "<document>"
        if not text.lstrip().startswith("{"):
            name = str(source)
            try:
                text = read_file(source, MAX_DOCUMENT_SIZE).decode().removeprefix(_BYTE_ORDER_MARK)
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else None
                raise PipelineError(f"cannot read {_printable(name)}", [Fault(reason or str(error))]) from error
        return read_document(text, cls, name=name)

    def __repr__(self) -> str:
        return f"<Pipeline {self.name or '(unnamed)'} with {sum(1 for _ in self.statements())} statements>"


def _printable(name: str) -> str:
    return name.encode(errors="backslashreplace").decode()
