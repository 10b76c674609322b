"""Arguments and options that several commands have."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer


class TargetName(enum.StrEnum):
    """Where a federation runs."""

    LOCAL = "local"
    INPROC = "inproc"
    UP = "up"


class ObjectiveChoice(enum.StrEnum):
    """What the sites of operations are chosen for."""

    TIME = "time"
    BYTES = "bytes"
    MONEY = "money"


PIPELINE_HELP = (
    "Pipeline: a JSON document, or a Python file with `build(federation)` or a variable `pipeline`; "
    "`file.py:name` picks another name."
)
_HOST_HELP = "Federation file, or the name of its host; may be left out if only one is up."

FederationFile = Annotated[Path, typer.Argument(metavar="FILE", help="Federation file, usually *.dfm.yaml.")]
PipelineFile = Annotated[str, typer.Argument(metavar="PIPELINE", help=PIPELINE_HELP)]
ParameterFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="JSON file with a parameter set, or a list of several.")
]
Homesite = Annotated[
    str | None,
    typer.Option(metavar="SITE", help="Site to which the client talks.", show_default="app, or the first"),
]
Objective = Annotated[
    ObjectiveChoice, typer.Option(help="What the sites are chosen for: the least time, bytes moved, or money.")
]
Target = Annotated[
    TargetName,
    typer.Option(
        help="local: one process per site on this machine; inproc: all sites in this process; "
        "up: what `dfmesh up FILE` runs."
    ),
]
ResultDirectory = Annotated[Path, typer.Option(metavar="DIR", help="Where to write the results.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JsonEvents = Annotated[bool, typer.Option("--json", help="Print one JSON object per line and event.")]
Host = Annotated[str | None, typer.Argument(metavar="FILE", help=_HOST_HELP, show_default=False)]
HostOption = Annotated[str | None, typer.Option("--file", metavar="FILE", help=_HOST_HELP, show_default=False)]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job, or the beginning of it.")]
