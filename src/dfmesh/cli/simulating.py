"""`dfmesh simulate`: how a run is expected to go."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dfmesh.cli.documents import check_homesite, load_federation, load_parameter_sets, load_pipeline
from dfmesh.cli.failures import UsageError
from dfmesh.compiler.quantity_text import seconds_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dfmesh.compiler.placement import ObjectiveName
    from dfmesh.session import Federation
    from dfmesh.session.prediction import PredictedRun, Prediction


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
        changes: What is different from the real federation, as `figure=value`.
        cold: Whether the sites have just been started.
        homesite: Where the client attaches; None for the default.
        form: How to print it.
        objective: What the sites are chosen for.
    """

    file: Path
    pipeline: str
    given: tuple[str, ...]
    parameter_file: Path | None
    iterations: tuple[str, ...]
    shares: tuple[str, ...]
    changes: tuple[str, ...]
    cold: bool
    homesite: str | None
    form: Literal["table", "json", "mermaid"]
    objective: ObjectiveName = "time"


def simulate_pipeline(request: SimulationRequest) -> None:
    """Compile a pipeline and print how it is expected to run; how far that is shows on a terminal meanwhile.

    Raises:
        ConfigError: the federation file has mistakes.
        PipelineError: the pipeline has, or the figures do not fit it, or the changes do not fit the federation.
        UsageError: an argument cannot be read.
    """
    changes = _changes(request.changes)
    federation = load_federation(request.file)
    if request.homesite is not None:
        check_homesite(request.homesite, federation)
    shown = _Shown()
    with shown.live():
        before = _predict(federation, request, {}, shown) if changes and request.form != "mermaid" else None
        prediction = _predict(federation, request, changes, shown)
    if request.form == "json":
        compared = {} if before is None else {"without_changes": before.to_dict()}
        print(json.dumps(prediction.to_dict() | compared, indent=2))
    elif request.form == "mermaid":
        print(prediction.to_mermaid(), end="")
    else:
        print(prediction.to_text(), end="")
        if before is not None:
            print("\n".join(["", *prediction.compared(before)]))
        if prediction.assumptions:
            print("say it better with --iterations STATEMENT=N or --share STATEMENT=0.5; a run measures it, too")


def _predict(
    federation: Federation, request: SimulationRequest, changes: Mapping[str, str], shown: _Shown
) -> Prediction:
    from dfmesh.compiler import Objective, compile_pipeline
    from dfmesh.compiler.measured import NOTHING_MEASURED
    from dfmesh.compiler.what_if import what_if
    from dfmesh.session import Federation, default_homesite
    from dfmesh.session.cost_store import measuring
    from dfmesh.session.prediction import predict

    shown.run = None
    changed = what_if(federation.config, federation.costs.costs() if measuring() else NOTHING_MEASURED, changes)
    compiled = compile_pipeline(
        load_pipeline(request.pipeline, Federation(changed.config)),
        changed.config,
        request.homesite or default_homesite(changed.config),
        objective=Objective(request.objective),
        measured=changed.measured,
    )
    return predict(
        compiled,
        changed.config,
        load_parameter_sets(request.parameter_file, request.given),
        iterations=_figures("--iterations", request.iterations),
        shares=_figures("--share", request.shares),
        cold=request.cold,
        changes=changed.changes,
        watch=shown.watch,
    )


class _Shown:
    """How far it is, in one line on standard error that goes away at the end."""

    def __init__(self) -> None:
        self.run: PredictedRun | None = None

    def watch(self, run: PredictedRun) -> None:
        self.run = run

    def live(self) -> AbstractContextManager[Any]:
        """Show it while this context is open, if standard error is a terminal."""
        if not sys.stderr.isatty():
            return nullcontext()
        from rich.console import Console
        from rich.live import Live

        # The run is not slowed down: another thread looks at it now and then.
        return Live(
            get_renderable=self.line,
            console=Console(stderr=True, highlight=False),
            refresh_per_second=4,
            transient=True,
        )

    def line(self) -> str:
        run = self.run
        if run is None:
            return "choosing the sites"
        return f"simulating: {seconds_text(run.now)} of the run, {run.events:,} events"


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


def _changes(given: tuple[str, ...]) -> dict[str, str]:
    changes = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise UsageError(f"--what-if {text}: write it as FIGURE=VALUE, such as --what-if a.to.b.bandwidth=x10")
        changes[name] = value
    return changes
