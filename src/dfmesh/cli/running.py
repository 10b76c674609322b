"""`dfmesh run`: run a pipeline, show how far it is, write its results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from dfmesh.cli.documents import compile_files, load_parameter_sets
from dfmesh.cli.following import Following, JobFollower, emit
from dfmesh.cli.interrupting import CancelOnInterrupt
from dfmesh.cli.own_output import own_standard_output
from dfmesh.cli.result_files import check_directory
from dfmesh.session.job_plan import plan_of
from dfmesh.targets import is_hosted

if TYPE_CHECKING:
    from dfmesh.compiler import CompiledPipeline
    from dfmesh.compiler.placement import ObjectiveName
    from dfmesh.session import Federation


@dataclass(frozen=True)
class RunRequest:
    """The arguments of `dfmesh run`.

    Attributes:
        file: The federation file.
        pipeline: The pipeline, as `load_pipeline` takes it.
        given: Parameters as `name=value`.
        parameter_file: JSON file of parameter sets; None for none.
        out: Where the results go.
        target: Where the federation runs.
        homesite: Where the client attaches; None for the default.
        as_json: Whether standard output is for a machine.
        detach: Whether to leave the job to its host at once.
        objective: What the sites are chosen for.
    """

    file: Path
    pipeline: str
    given: tuple[str, ...]
    parameter_file: Path | None
    out: Path
    target: str
    homesite: str | None
    as_json: bool
    detach: bool = False
    objective: ObjectiveName = "time"


def run_pipeline(request: RunRequest) -> None:
    """Run a pipeline and write its results.

    Raises:
        DfmeshError: what was asked has mistakes, the sites do not start, or the job fails; what came until then has
            been written.
        SystemExit: the user interrupted it.
    """
    check_directory(request.out)
    with own_standard_output() as out:
        homesite = request.homesite or _homesite_of_host(request)
        federation, compiled = compile_files(request.file, request.pipeline, homesite, request.objective)
        sets = load_parameter_sets(request.parameter_file, request.given)
        for _ in compiled.parameter_sets(sets, spelling="--param {}=..."):  # Before any site is started.
            pass
        if request.detach:
            _submit(request, federation, compiled, sets, out)
        else:
            _run(request, federation, compiled, sets, out)


def _homesite_of_host(request: RunRequest) -> str | None:
    if not is_hosted(request.target):
        return None
    from dfmesh.targets.up.host_record import find_host

    return find_host(request.file, request.target.partition(":")[2] or None).homesite


def _run(
    request: RunRequest, federation: Federation, compiled: CompiledPipeline, sets: list[dict[str, Any]], out: TextIO
) -> None:
    following = Following(
        request.out,
        request.as_json,
        federation.name,
        compiled.pipeline.name or Path(request.pipeline).name,
        request.target,
        outlives=is_hosted(request.target),
    )
    follower = JobFollower(following, plan_of(compiled).sources, out)
    with federation.session(request.target, homesite=request.homesite) as session, follower.audience() as audience:
        follower.make_room()
        job = session.submit(compiled, sets)
        audience.watch(job)
        with CancelOnInterrupt(job):
            follower.take_results(job)
    follower.tell_end(job)


def _submit(
    request: RunRequest, federation: Federation, compiled: CompiledPipeline, sets: list[dict[str, Any]], out: TextIO
) -> None:
    """Leave the job to its host, and say what it is called."""
    with federation.session(request.target, homesite=request.homesite) as session:
        job = session.submit(compiled, sets)
        job.detach()
    if request.as_json:
        emit(out, "submitted", job=job.id)
    else:
        print(job.id, file=out)
