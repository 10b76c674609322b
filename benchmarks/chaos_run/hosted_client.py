"""A client of a federation that is up, which others use as well; it meets jobs of clients before it again."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from chaos_run.client import Client
from chaos_run.faults import FaultLog
from chaos_run.hosted_worker import MEETING_LIMIT, HostedWorker
from chaos_run.shared_fault_log import SharedFaultLog
from chaos_run.worker import Worker, draw_job
from dfmesh import DfmeshError, SessionError

SHARED_LOG = "hosted-faults.jsonl"
"""Name of the file in the directory of scratch files where all note what they do to the federation."""


class HostedClient(Client):
    """As `Client`, in a federation that outlives it."""

    recovery_limit = MEETING_LIMIT
    _connecting = threading.Lock()

    def _make_log(self) -> FaultLog:
        return SharedFaultLog(Path(self._options.scratch) / SHARED_LOG)

    def _make_worker(self, *given: Any) -> Worker:
        return HostedWorker(*given)

    def _begin(self) -> None:
        for entry in self._options.adopt:
            with self._lock:
                self._busy += 1
            threading.Thread(target=self._adopt, args=(entry,), daemon=True).start()

    def _adopt(self, entry: dict[str, Any]) -> None:
        worker = self._worker
        try:
            job = draw_job(entry["job"], self._profile, self._federation.ops, Path(self._options.scratch))
            if isinstance(worker, HostedWorker) and worker.adopt(job, entry):
                return
        except Exception as error:
            self._report("wrong", job=entry["job"], template="adopted", wrong=[repr(error)])
        finally:
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()

    # The session

    def _connect(self) -> None:
        begin = time.monotonic()
        while True:
            try:
                self._session = self._federation.session("up").connect()
            except SessionError as error:
                if time.monotonic() - begin > MEETING_LIMIT:
                    raise
                self._log.note(f"no host: {error}")
                time.sleep(0.2)
            else:
                break
        self._report("connected", seconds=time.monotonic() - begin, sites=[])

    def _current(self) -> tuple[Any, Any]:
        with self._connecting:
            session = self._session
            try:
                session.jobs()
            except DfmeshError:
                with contextlib.suppress(DfmeshError):
                    session.close()
                self._connect()
            return self._session, lambda: not self._host_lives()

    def _host_lives(self) -> bool:
        with contextlib.suppress(DfmeshError):
            self._session.jobs()
            return True
        return False

    def _close(self) -> None:
        begin = time.monotonic()
        self._session.close()
        took = time.monotonic() - begin
        if took > MEETING_LIMIT:
            self._report("wrong", job="", template="", wrong=[f"leaving took {took:.1f} s"])

    def _process_ids(self) -> dict[str, int]:
        sites = {}
        with contextlib.suppress(psutil.Error, DfmeshError, AttributeError):
            host = self._session._connection.hosting.host.pid
            for process in psutil.Process(host).children():
                words = process.cmdline()
                if "dfmesh.targets.local.site_process" in words:
                    sites[words[words.index("dfmesh.targets.local.site_process") + 2]] = process.pid
        return sites

    def _sample(self, seconds: float, tries: int) -> None:
        super()._sample(seconds, tries)
        self._forget_jobs()

    def _forget_jobs(self) -> None:
        """Have the host forget jobs that are over, as users do now and then."""
        own = f"{os.getpid()}"
        with contextlib.suppress(DfmeshError):
            for summary in self._session.jobs():
                if summary.status.over and str(summary.owner) == own:
                    self._session.forget(summary.id)
