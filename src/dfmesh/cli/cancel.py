"""`dfmesh cancel`: the end of a job, whoever submitted it."""

from __future__ import annotations

import json

from dfmesh.session.host import Host


def cancel_job(job: str, wanted: str | None, *, as_json: bool) -> None:
    """Cancel a job.

    Args:
        job: Its id, or the beginning of it.
        wanted: Federation file or name of the host; None for the only one.
        as_json: Whether standard output is for a machine.

    Raises:
        SessionError: there is no such job, or it is over.
    """
    with Host(wanted) as host:
        cancelled = host.cancel(job, "cancelled with `dfmesh cancel`")
    print(json.dumps({"event": "cancelled", "job": cancelled}) if as_json else f"{cancelled} is cancelled")
