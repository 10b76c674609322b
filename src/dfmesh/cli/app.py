"""The commands with their arguments. What they do stands in one module each, loaded when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dfmesh.cli.host_commands import add_host_commands
from dfmesh.cli.options import (
    PIPELINE_HELP,
    FederationFile,
    Homesite,
    Json,
    JsonEvents,
    Objective,
    ObjectiveChoice,
    ParameterFile,
    PipelineFile,
    ResultDirectory,
    Target,
    TargetName,
)

_EXIT_CODES = (
    "Exit codes: 0 done; 1 mistakes in a federation file, a pipeline or its parameters, or a result that cannot be "
    "written; 2 wrong usage; 3 the job failed; 4 sites could not be started or reached, or there is no such job; "
    "130 interrupted."
)

app = typer.Typer(
    help="A data federation mesh: compute goes to the data. `dfmesh demo weather` shows it at work; "
    f"FILE says who offers what, PIPELINE what is to be done.\n\n{_EXIT_CODES}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich would take a quarter of the time of --help
)
_demo = typer.Typer(help="Run an example that comes with dfmesh.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(_demo, name="demo")


def _print_version(wanted: bool) -> None:
    if wanted:
        from dfmesh import __version__

        print(f"dfmesh {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that stand before a command."""


@app.command(short_help="Check a federation file, and a pipeline against it.")
def validate(
    file: FederationFile,
    pipeline: Annotated[str | None, typer.Argument(metavar="PIPELINE", help=PIPELINE_HELP)] = None,
    adapters: Annotated[
        bool,
        typer.Option("--adapters", help="Load all adapters as well, in a process per site."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a federation file, and a pipeline against it; list every mistake with file, line and column."""
    from dfmesh.cli.failures import reported
    from dfmesh.cli.validating import validate_files

    with reported(as_json=as_json):
        validate_files(file, pipeline, adapters=adapters, as_json=as_json)


@app.command(short_help="Show where each operation would run, and why.")
def explain(
    file: FederationFile,
    pipeline: PipelineFile,
    as_json: Json = False,
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart.")] = False,
    homesite: Homesite = None,
    objective: Objective = ObjectiveChoice.TIME,
) -> None:
    """Show at which site each operation would run, why, what else it could cost, and the bytes on every link."""
    from dfmesh.cli.explaining import explain_pipeline
    from dfmesh.cli.failures import reported

    if as_json and as_mermaid:
        raise typer.BadParameter("give one of --json and --mermaid")
    with reported(as_json=as_json):
        explain_pipeline(
            file, pipeline, homesite, "json" if as_json else "mermaid" if as_mermaid else "table", objective.value
        )


@app.command(short_help="Predict how a pipeline runs: time, bytes, bottleneck.")
def simulate(
    file: FederationFile,
    pipeline: PipelineFile,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Parameter; only lengths of sequences count. May be left out."),
    ] = None,
    params: ParameterFile = None,
    iterations: Annotated[
        list[str] | None,
        typer.Option(metavar="STATEMENT=N", help="Iterations of a loop, where neither pipeline nor runs tell."),
    ] = None,
    share: Annotated[
        list[str] | None,
        typer.Option(metavar="STATEMENT=SHARE", help="How often a condition is true or a key is cached, 0 to 1."),
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIGURE=VALUE",
            help="What if it were so: a.to.b.bandwidth=x10, a.capacity=8, a.copies=3, weather.Bin.seconds=2, ...",
        ),
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="The sites have just been started: first calls load their libraries.")
    ] = False,
    homesite: Homesite = None,
    objective: Objective = ObjectiveChoice.TIME,
    as_json: Json = False,
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart.")] = False,
) -> None:
    """Predict how a pipeline runs: time, bytes on every link, bottleneck. Nothing runs and no site is needed."""
    from dfmesh.cli.failures import reported
    from dfmesh.cli.simulating import SimulationRequest, simulate_pipeline

    if as_json and as_mermaid:
        raise typer.BadParameter("give one of --json and --mermaid")
    request = SimulationRequest(
        file=file,
        pipeline=pipeline,
        given=tuple(param or ()),
        parameter_file=params,
        iterations=tuple(iterations or ()),
        shares=tuple(share or ()),
        changes=tuple(what_if or ()),
        cold=cold,
        homesite=homesite,
        form="json" if as_json else "mermaid" if as_mermaid else "table",
        objective=objective.value,
    )
    with reported(as_json=as_json):
        simulate_pipeline(request)


@app.command(short_help="Show what operations cost, declared and measured.")
def costs(
    file: FederationFile,
    operation: Annotated[
        str | None, typer.Argument(metavar="OPERATION", help="Only this operation, such as weather.Bin.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Forget what was measured.")] = False,
    as_json: Json = False,
) -> None:
    """Show what operations cost at each site: what the federation file declares, and what runs have measured."""
    from dfmesh.cli.costs import reset_costs, show_costs
    from dfmesh.cli.failures import reported

    with reported(as_json=as_json):
        (reset_costs if reset else show_costs)(file, operation, as_json=as_json)


@app.command(short_help="Run a pipeline and write its results to files.")
def run(
    file: FederationFile,
    pipeline: PipelineFile,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Parameter; VALUE is JSON, or else text. May be given several times."),
    ] = None,
    params: ParameterFile = None,
    out: ResultDirectory = Path("dfmesh-results"),
    target: Target = TargetName.LOCAL,
    host: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the host, where several run FILE.", show_default=False)
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="With --target up: print the job's id and return at once.")
    ] = False,
    homesite: Homesite = None,
    objective: Objective = ObjectiveChoice.TIME,
    as_json: JsonEvents = False,
) -> None:
    """Run a pipeline, show how far it is, and write each result to a file as it comes."""
    from dfmesh.cli.failures import reported
    from dfmesh.cli.running import RunRequest, run_pipeline

    if target is not TargetName.UP and (detach or host is not None):
        raise typer.BadParameter("--detach and --host need --target up")
    request = RunRequest(
        file=file,
        pipeline=pipeline,
        given=tuple(param or ()),
        parameter_file=params,
        out=out,
        target=target.value if host is None else f"{target.value}:{host}",
        homesite=homesite,
        objective=objective.value,
        detach=detach,
        as_json=as_json,
    )
    with reported(as_json=as_json):
        run_pipeline(request)


add_host_commands(app)


@app.command(short_help="Measure dfmesh on this machine, beside its floor.")
def bench(
    seconds: Annotated[
        float, typer.Option(min=0.01, max=60, help="How long each measurement goes on in each repeat.")
    ] = 0.25,
    repeats: Annotated[int, typer.Option(min=1, max=100, help="How often everything is measured.")] = 3,
    as_json: Json = False,
) -> None:
    """Measure dfmesh on this machine beside what two bare processes can do. It takes less than a minute."""
    from dfmesh.cli.bench.command import run_bench
    from dfmesh.cli.failures import reported

    with reported(as_json=as_json):
        run_bench(seconds, repeats, as_json=as_json)


@_demo.command(short_help="Three national weather services make 24 maps.")
def weather(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write maps and page.")] = Path("weather-day"),
    target: Target = TargetName.LOCAL,
    job: Annotated[
        str | None,
        typer.Option(metavar="JOB", help="With --target up: meet a job of before instead of submitting one."),
    ] = None,
) -> None:
    """Turn the reports of three national weather services, which stay where they are, into 24 maps."""
    from dfmesh.cli.failures import reported
    from dfmesh.cli.weather import run_weather_day

    if target is not TargetName.UP and job is not None:
        raise typer.BadParameter("--job needs --target up")
    with reported():
        run_weather_day(out, target.value, job)
