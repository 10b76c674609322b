"""`dfmesh simulate`: how a run is expected to go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dfmesh.cli.documents import compile_files, load_parameter_sets
from dfmesh.cli.failures import UsageError

if TYPE_CHECKING:
    from dfmesh.compiler.placement import ObjectiveName


@dataclass(frozen=True)
class SimulationRequest:
    """The arguments of `dfmesh simulate`.

    Attributes:
        file: The federation file.
        pipeline: The pipeline, as `load_pipeline` takes it.
        given: Parameters as `name=value`.
        parameter_file: JSON file of parameter sets; None for none.
        iterations: Iterations of loops as `statement=number`.
        shares: Shares of conditions and look-ups as `statement=number`.
        cold: Whether the sites have just been started.
        homesite: Where the client attaches; None for the default.
        as_json: Whether standard output is for a machine.
        objective: What the sites are chosen for.
    """

    file: Path
    pipeline: str
    given: tuple[str, ...]
    parameter_file: Path | None
    iterations: tuple[str, ...]
    shares: tuple[str, ...]
    cold: bool
    homesite: str | None
    as_json: bool
    objective: ObjectiveName = "time"


def simulate_pipeline(request: SimulationRequest) -> None:
    """Compile a pipeline and print how it is expected to run.

    Raises:
        ConfigError: the federation file has mistakes.
        PipelineError: the pipeline has, or the figures do not fit it.
        UsageError: an argument cannot be read.
    """
    from dfmesh.session.prediction import predict

    federation, compiled = compile_files(request.file, request.pipeline, request.homesite, request.objective)
    prediction = predict(
        compiled,
        federation.config,
        load_parameter_sets(request.parameter_file, request.given),
        iterations=_figures("--iterations", request.iterations),
        shares=_figures("--share", request.shares),
        cold=request.cold,
    )
    if request.as_json:
        print(prediction.to_json())
        return
    print(prediction.to_text(), end="")
    if prediction.assumptions:
        print("say it better with --iterations STATEMENT=N or --share STATEMENT=0.5; a run measures it, too")


def _figures(option: str, given: tuple[str, ...]) -> dict[str, float]:
    figures = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            figures[name] = float(number)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise UsageError(f"{option} {text}: write it as STATEMENT=NUMBER, such as {option} %1=24")
    return figures
