"""The parameters of a pipeline: what takes them, and what to say of sets of them that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dfmesh.api import ForEach, Operation, Pipeline, PlaceParam, Reduce
from dfmesh.compiler.candidates import operation_name
from dfmesh.compiler.fits import part_fit, sequence_fit
from dfmesh.config import FederationConfig
from dfmesh.config.fitting import Fit, fit_of
from dfmesh.errors import Fault, PipelineError, SourceLocation


@dataclass(frozen=True)
class ParameterUse:
    """An argument of an operation, or the sequence of a loop, for which a parameter of the pipeline stands.

    Attributes:
        operation: Name of the operation, or `ForEach`.
        argument: Name of its parameter.
        fit: What fits it.
        location: Where the user wrote it.
    """

    operation: str
    argument: str
    fit: Fit
    location: SourceLocation | None

    @property
    def text(self) -> str:
        """What takes the parameter, for people."""
        return f"{self.operation} takes it as {self.argument}"


def parameter_uses(pipeline: Pipeline, federation: FederationConfig) -> dict[str, list[ParameterUse]]:
    """Find what each parameter of a validated pipeline stands for, as far as that says what fits it.

    Args:
        pipeline: The pipeline.
        federation: What it was validated against.
    """
    uses: dict[str, list[ParameterUse]] = {}
    in_no_block = {id(statement) for statement in pipeline.body}
    for statement in pipeline.statements():
        if isinstance(statement, ForEach) and isinstance(statement.seq, PlaceParam):
            loop = part_fit(sequence_fit(in_block=id(statement) not in in_no_block), statement.seq.select)
            uses.setdefault(statement.seq.place, []).append(ParameterUse("ForEach", "seq", loop, statement.location))
        if not isinstance(statement, Operation | Reduce):
            continue
        operation = operation_name(statement.operation, federation)
        parameters = {parameter.name: parameter for parameter in federation.operations[operation].parameters}
        for argument, value in statement.arguments.items():
            if isinstance(value, PlaceParam) and argument in parameters:
                fit = fit_of(parameters[argument])
                if fit is not None:
                    use = ParameterUse(operation, argument, part_fit(fit, value.select), statement.location)
                    uses.setdefault(value.place, []).append(use)
    return uses


MOST_SHOWN_SETS = 10
"""Parameter sets whose faults are listed."""


def parameters_error(
    misfits: Sequence[tuple[int, PipelineError]], count: int | None, location: SourceLocation | None
) -> PipelineError:
    """Make one error of those of several parameter sets.

    Args:
        misfits: Number and error of each set that does not fit.
        count: How many sets there are; None if they are not known yet, since an iterator gives them.
        location: Where the user gave them, for faults that have no place of their own.
    """
    faults = [
        replace(
            fault,
            message=fault.message if count == 1 else f"parameter set {number}: {fault.message}",
            location=fault.location or location,
        )
        for number, error in misfits[:MOST_SHOWN_SETS]
        for fault in error.faults
    ]
    left = misfits[MOST_SHOWN_SETS:]
    if left:
        faults.append(Fault(f"{len(left)} more parameter sets do not fit, the last is number {left[-1][0]}", location))
    if count == 1:
        return PipelineError(misfits[0][1].summary, faults)
    which = f"parameter set {misfits[0][0]} does" if count is None else f"{len(misfits)} of {count} parameter sets do"
    return PipelineError(f"{which} not fit the pipeline", faults)
