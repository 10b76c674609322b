"""The commands that start a federation which runs on its own, and that look after its jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dfmesh.cli.options import FederationFile, Homesite, Host, HostOption, JobId, Json, JsonEvents, ResultDirectory


def up(
    file: FederationFile,
    homesite: Homesite = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the host; needed to run a file twice.", show_default="of the file"),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Return when all sites are ready.")] = False,
    as_json: Json = False,
    report_to: Annotated[int, typer.Option(hidden=True)] = -1,
) -> None:
    """Run a federation on its own: any process of yours can submit jobs to it, and meet them again.

    Jobs go on when the client that submitted them ends. Ctrl-C, or `dfmesh down`, stops the sites.
    """
    from dfmesh.cli.failures import reported
    from dfmesh.cli.up import UpRequest, bring_up

    with reported(as_json=as_json):
        bring_up(UpRequest(file, homesite, name, detach, as_json, report_to))


def down(host: Host = None, as_json: Json = False) -> None:
    """Stop a federation that is up. Jobs that run go on when it is up again, if their operations allow it."""
    from dfmesh.cli.down import bring_down
    from dfmesh.cli.failures import reported

    with reported(as_json=as_json):
        bring_down(host, as_json=as_json)


def jobs(
    host: Host = None,
    forget: Annotated[
        list[str] | None,
        typer.Option(metavar="JOB", help="Remove what is kept of a job that is over. May be given several times."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the jobs of a federation that is up, whoever submitted them."""
    from dfmesh.cli.failures import reported
    from dfmesh.cli.jobs import forget_jobs, show_jobs

    with reported(as_json=as_json):
        if forget:
            forget_jobs(host, forget, as_json=as_json)
        else:
            show_jobs(host, as_json=as_json)


def attach(
    job: JobId,
    host: HostOption = None,
    out: ResultDirectory = Path("dfmesh-results"),
    as_json: JsonEvents = False,
) -> None:
    """Follow a job of a federation that is up, from its first result on, as `run` does.

    Ctrl-C detaches; the job goes on.
    """
    from dfmesh.cli.attach import attach_job
    from dfmesh.cli.failures import reported

    with reported(as_json=as_json):
        attach_job(job, host, out, as_json=as_json)


def cancel(job: JobId, host: HostOption = None, as_json: Json = False) -> None:
    """Cancel a job of a federation that is up, whoever submitted it."""
    from dfmesh.cli.cancel import cancel_job
    from dfmesh.cli.failures import reported

    with reported(as_json=as_json):
        cancel_job(job, host, as_json=as_json)


def logs(
    site: Annotated[
        str | None, typer.Argument(metavar="SITE", help="Only what this site printed.", show_default=False)
    ] = None,
    job: Annotated[
        str | None, typer.Option(metavar="JOB", help="Only what the adapters of this job have printed and logged.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is printed from now on.")] = False,
    host: HostOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each line as a JSON object.")] = False,
) -> None:
    """Show what the sites of a federation that is up, and their adapters, have printed."""
    from dfmesh.cli.failures import reported
    from dfmesh.cli.logs import show_lines

    with reported(as_json=as_json):
        show_lines(site, job, host, follow=follow, as_json=as_json)


def add_host_commands(app: typer.Typer) -> None:
    """Add the commands to a command line."""
    app.command(short_help="Run a federation on its own.")(up)
    app.command(short_help="Stop a federation that is up.")(down)
    app.command(short_help="List the jobs of a federation that is up.")(jobs)
    app.command(short_help="Follow a job, from its first result on.")(attach)
    app.command(short_help="Cancel a job.")(cancel)
    app.command(short_help="Show what sites have printed.")(logs)
