"""Runs jobs in a federation that is up: it meets them again when its connection, or a client before it, has ended."""

from __future__ import annotations

import contextlib
import random
import time
from typing import Any

from chaos_run.worker import JOB_LIMIT, Job, NotTakenError, Worker, items_of
from dfmesh import SessionError

MEETING_LIMIT = 120.0
"""Seconds within which a host that was killed must be back, on a machine under load."""


class HostedWorker(Worker):
    """As `Worker`, in a federation that outlives its clients."""

    limit = JOB_LIMIT + 30.0

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._untaken: set[str] = set()

    def _submit(self, session: Any, compiled: Any, job: Job, begin: float) -> Any:
        try:
            handle = session.submit(compiled, job.case.sets)
        except SessionError as error:
            raise NotTakenError(str(error)) from error  # The host went since the session was looked at.
        self._report("open", job=job.name, id=handle.id, begin=begin, sites=sorted(compiled.nets))
        try:
            listed = {summary.id for summary in session.jobs()}
        except SessionError as error:
            # The host went before it said that it has the job: it may have it, without all parameter sets.
            self._untaken.add(job.name)
            met = self.meet(handle.id, time.monotonic() + MEETING_LIMIT)
            if met is None:
                self._report("gone", job=job.name)
                raise NotTakenError(str(error)) from error
            return met
        if handle.id not in listed:
            self._wrong(job, begin, [f"job {handle.id} is not in the host's list after it was submitted"], {})
        self._report("taken", job=job.name)
        return handle

    def _cancelling(self, job: Job) -> None:
        self._report("cancel", job=job.name)

    def meet(self, handle_id: str, deadline: float) -> Any:
        """Attach to a job, as soon as the host is there; None if it has no such job."""
        while True:
            session, _ = self._session()
            try:
                return session.attach(handle_id)
            except SessionError as error:
                if "there is no job" in str(error):
                    return None
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.2)

    def _end_of(self, job: Job, handle: Any, begin: float) -> Any:
        source = random.Random(f"{job.name}/detach")
        if source.random() < 0.15 and not handle.wait(source.uniform(0, job.case.seconds)):
            with contextlib.suppress(SessionError):  # The host is gone.
                handle.detach()
        announced: set[tuple[str, tuple[int, ...]]] = set()
        while handle is not None:
            if not handle.wait(self._left(begin)):
                return None
            came = {(place, frame) for place, frame, _ in items_of(handle)}
            left = str(handle.status) == "detached" or any(error.kind == "HostLost" for error in handle.errors)
            if not left:
                if announced - came:
                    lost = sorted(announced - came)[:5]
                    self._wrong(job, begin, [f"results that had been announced are lost: {lost}"], {})
                return handle
            announced |= came
            handle = self.meet(handle.id, time.monotonic() + MEETING_LIMIT)
            begin = time.monotonic()  # What it waited for the host does not count.
        self._wrong(job, begin, ["the host has forgotten the job"], {})
        return None

    def adopt(self, job: Job, entry: dict[str, Any]) -> bool:
        """Judge a job of a client that was killed; False if it hangs."""
        begin = entry["begin"]
        handle = self.meet(entry["id"], time.monotonic() + MEETING_LIMIT)
        if handle is None:
            if entry["taken"]:
                self._wrong(job, begin, ["the host has forgotten the job of a client that was killed"], {})
            self._report("gone", job=job.name)
            return True
        if not entry["taken"]:
            self._untaken.add(job.name)
        final = self._end_of(job, handle, time.monotonic())
        self._report("adopted", job=job.name)
        return self._judge(
            job,
            final or handle,
            begin,
            over=final is not None,
            sites=frozenset(entry["sites"]),
            cancelled=entry["cancelled"],
        )

    def _judge(self, job: Job, handle: Any, begin: float, **how: Any) -> bool:
        """As `Worker._judge`; a job that the host had not taken when its client was cut off may be a part of itself."""
        if job.name in self._untaken and any(error.kind == "ClientLeft" for error in handle.errors):
            self._report("gone", job=job.name)
            return True
        return super()._judge(job, handle, begin, **how)
