"""`dfmesh attach`: follow a job that somebody submitted to a federation that is up."""

from __future__ import annotations

from pathlib import Path

from dfmesh.cli.following import Following, JobFollower
from dfmesh.cli.interrupting import DetachOnInterrupt
from dfmesh.cli.own_output import own_standard_output
from dfmesh.cli.result_files import check_directory
from dfmesh.session.host import Host


def attach_job(prefix: str, wanted: str | None, directory: Path, *, as_json: bool) -> None:
    """Write the results of a job, from the first on, until it is over or the user has seen enough.

    Args:
        prefix: Its id, or the beginning of it.
        wanted: Federation file or name of the host; None for the only one.
        directory: Where the results go.
        as_json: Whether standard output is for a machine.

    Raises:
        DfmeshError: there is no such job, or it fails; what came until then has been written.
        SystemExit: the user interrupted it; the job goes on.
    """
    check_directory(directory)
    with own_standard_output() as out:
        host = Host(wanted)
        with host:
            job = host.attach(prefix)
            following = Following(directory, as_json, host.record.title, job.name or job.id, "up", outlives=True)
            follower = JobFollower(following, job.places, out, job.id)
            with follower.audience() as audience, DetachOnInterrupt(job):
                follower.make_room()
                audience.watch(job)
                follower.take_results(job)
        follower.tell_end(job)
