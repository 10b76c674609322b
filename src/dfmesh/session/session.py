"""The client's connection to a running federation."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from dfmesh.api import Pipeline
from dfmesh.compiler import CompiledPipeline, compile_pipeline
from dfmesh.config import FederationConfig
from dfmesh.engine import lost_failures
from dfmesh.engine.messages import AnyMessage, Failure, JobFinished, Payload, SiteLost, SubmitJob
from dfmesh.errors import SessionError
from dfmesh.session.cost_store import CostStore, costs_file, measuring
from dfmesh.session.dfm_job import DfmJob
from dfmesh.session.discovery import Inquiry
from dfmesh.session.discovery_result import DiscoveryResult
from dfmesh.session.job import Job, JobStatus
from dfmesh.session.loop_thread import client_loop
from dfmesh.session.measuring import Loaded, measure
from dfmesh.session.results import ResultItem, Results
from dfmesh.targets import FederationRunner, make_runner

ParameterSets = Mapping[str, Any] | Iterable[Mapping[str, Any]] | None

DataCallback = Callable[[str, str, tuple[int, ...], str, Any], None]
"""DFM's callback: site, node, frame, place, value."""

_log = logging.getLogger("dfmesh.session")


class Session:
    """A running federation. Use it as a context; it may be used from several threads.

    Attributes:
        federation: The federation.
        homesite: Site to which the client talks.
        target: Where the federation runs.
    """

    def __init__(
        self,
        federation: FederationConfig,
        *,
        target: str = "local",
        homesite: str | None = None,
        measure: bool | None = None,
    ) -> None:
        """Make a session; `connect` or `with` starts the sites.

        Args:
            federation: The federation.
            target: `local`: one process per site on this machine; `inproc`: all sites in this process.
            homesite: Site to which the client talks; default: `info.homesite` of the file, else `app` if there is
                one, else the first site.
            measure: Whether pipelines are placed by what earlier jobs have cost, and jobs are measured for later
                ones; None leaves it to the environment (`DFMESH_MEASURE`), which says yes by default.

        Raises:
            SessionError: there is no such target or site.
        """
        self.federation = federation
        self.target = target
        self.homesite = homesite or default_homesite(federation)
        if self.homesite not in federation.sites:
            raise SessionError(f"there is no site {self.homesite!r}; there is {', '.join(federation.sites)}")
        self._runner: FederationRunner = make_runner(target, federation, self.homesite)
        self._loop = client_loop()
        self._costs = CostStore(costs_file(federation.name)) if measuring(measure) else None
        self._loaded: Loaded = set()
        self._jobs: dict[str, Job] = {}
        self._inquiries: dict[str, Inquiry] = {}
        self._outbox: list[AnyMessage] = []
        self._outbox_lock = threading.Lock()
        self._state = "new"

    # Connecting

    def connect(self) -> Self:
        """Start the sites and connect to the homesite. Does nothing if that was done.

        Raises:
            SessionError: a site did not start, or the session was closed.
        """
        self.check_may_block()
        if self._state == "closed":
            raise SessionError("the session is closed; make another with federation.session()")
        if self._state == "new":
            self._loop.start(self._runner.start(self._receive, self._lost)).result()
            self._state = "open"
        return self

    def close(self) -> None:
        """Cancel what runs, stop the sites, free everything. May be called again."""
        if self._state == "closed":
            return
        self.check_may_block()
        self._state = "closed"
        self._loop.start(self._close()).result()
        if self._costs is not None:
            self._costs.flush()

    async def _close(self) -> None:
        for inquiry in list(self._inquiries.values()):
            inquiry.give_up("the session was closed")
        for job in list(self._jobs.values()):
            failure = Failure("", "session", "", (), "", "Cancelled", "the session was closed")
            job.end(JobStatus.CANCELLED, [failure])
        self._jobs.clear()
        await self._runner.close()

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # Running

    def prepare(
        self, pipeline: Pipeline | CompiledPipeline, restrict_to_sites: Iterable[str] | None = None
    ) -> CompiledPipeline:
        """Compile a pipeline once, to submit it many times.

        Args:
            pipeline: What the user wrote; one that is compiled already is given back.
            restrict_to_sites: Sites that may take part, besides the homesite; None for all.

        Raises:
            PipelineError: it has faults; all of them are listed.
        """
        if isinstance(pipeline, CompiledPipeline):
            return pipeline
        measured = None if self._costs is None else self._costs.costs()
        return compile_pipeline(
            pipeline, self.federation, self.homesite, restrict_to_sites=restrict_to_sites, measured=measured
        )

    def submit(
        self,
        pipeline: Pipeline | CompiledPipeline,
        parameters: ParameterSets = None,
        *,
        close: bool = True,
        on_result: Callable[[ResultItem], None] | None = None,
        keep_results: bool = True,
    ) -> Job:
        """Start a job and return at once.

        Args:
            pipeline: What to run.
            parameters: A parameter set, or several. None is one empty set; with `close=False` it is none at all. An
                iterator is read as the job gets on, so it may be endless.
            close: Whether these are all. If not, `job.send(...)` adds further sets and `job.close()` ends them.
            on_result: Called with each result, on the client's event loop.
            keep_results: Whether results stay when they were iterated over. If not, a job of any length needs the
                same memory, and `job.result()` gives those that were not taken.

        Raises:
            PipelineError: the pipeline or the parameters have faults.
            SessionError: the session is not open.
        """
        compiled = self.prepare(pipeline)
        job = Job(self, secrets.token_hex(8), compiled, keep_results=keep_results)
        if on_result is not None:
            job.on_result(on_result)
        self._begin(job, _parameter_sets(parameters, close=close), close=close)
        return job

    def _begin(self, job: Job, sets: Iterable[Mapping[str, Any]], *, close: bool) -> None:
        if isinstance(sets, Sequence):
            for given in sets:
                job.compiled.parameter_set(given)
        self._check_open()
        self._jobs[job.id] = job
        compiled = job.compiled
        self.post(SubmitJob(job.id, compiled.pipeline.name or "", compiled.encoded_nets))
        job.send_all(sets, close=close)

    def run(self, pipeline: Pipeline | CompiledPipeline, **parameters: Any) -> Results:
        """Run a pipeline with one parameter set and wait for its results.

        Args:
            pipeline: What to run.
            parameters: Its parameters.

        Raises:
            PipelineError: the pipeline or the parameters have faults.
            JobError: something failed.
        """
        return self.submit(pipeline, parameters).result()

    def execute(
        self,
        pipeline: Pipeline | CompiledPipeline,
        input_params: ParameterSets = None,
        autostop: bool = True,
        default_callback: DataCallback | None = None,
        place_callbacks: Mapping[str, DataCallback] | None = None,
        **_ignored: Any,
    ) -> DfmJob:
        """Start a job as DFM does, with callbacks `(from_site, node, frame, place, data)`.

        Args:
            pipeline: What to run, prepared or not.
            input_params: A parameter set, or several.
            autostop: Whether these are all.
            default_callback: Gets results of places without a callback of their own, and on the place
                `_dfm_status_` a stop token at the end and an error token per failure.
            place_callbacks: Callbacks by place.
        """
        compiled = self.prepare(pipeline)
        sets = _parameter_sets(input_params, close=autostop)
        job = DfmJob(self, secrets.token_hex(8), compiled, default_callback, place_callbacks or {})
        self._begin(job, sets, close=autostop)
        return job

    def discover(self, pipeline: Pipeline, *, timeout: float = 10.0) -> DiscoveryResult:
        """Ask the sites which of them can run each operation, and with which values of its parameters.

        Nothing runs but the advisors of the adapters. `Advise()` may stand for any argument and any `site`.

        Args:
            pipeline: What to ask about.
            timeout: Seconds that the sites have. Whatever does not answer by then is part of the result.

        Raises:
            PipelineError: the pipeline has faults.
            SessionError: the session is not open.
        """
        self.check_may_block()
        self._check_open()
        inquiry = Inquiry(pipeline, self.federation, self.pack, timeout)
        self._inquiries[inquiry.id] = inquiry
        try:
            if inquiry.message is not None:
                self.post(inquiry.message)
            return inquiry.result(self.unpack)
        finally:
            del self._inquiries[inquiry.id]

    # What jobs need

    def post(self, message: AnyMessage) -> None:
        """Send a message to the homesite, from any thread, in order."""
        with self._outbox_lock:
            self._outbox.append(message)
            if len(self._outbox) > 1:
                return  # The loop was woken for the first one and takes all.
        self._loop.loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        with self._outbox_lock:
            messages, self._outbox = self._outbox, []
        if self._state == "open":
            for message in messages:
                self._runner.send(message)

    def pack(self, value: Any) -> Payload:
        """Make a value ready to be sent."""
        return self._runner.pack(value)

    def unpack(self, payload: Payload) -> Any:
        """Give back a value that has come."""
        return self._runner.unpack(payload)

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._state == "closed"

    def call_soon(self, function: Callable[[], None]) -> None:
        """Run a function where messages of the homesite are taken in."""
        self._loop.loop.call_soon_threadsafe(function)

    def check_may_block(self) -> None:
        """Refuse to block the client's event loop, from a callback, since nothing could ever wake it.

        Raises:
            SessionError: the caller is on that loop.
        """
        if self._loop.is_current():
            raise SessionError("a callback must not wait for a job or session; do that on another thread")

    def _check_open(self) -> None:
        if self._state != "open":
            hint = "use `with federation.session() as session:`" if self._state == "new" else "make another"
            raise SessionError(f"the session is {'not connected' if self._state == 'new' else 'closed'}; {hint}")

    def _receive(self, message: AnyMessage) -> None:
        inquiry = self._inquiries.get(message.job)
        if inquiry is not None:
            inquiry.receive(message)
        job = self._jobs.get(message.job)
        if job is not None:
            if isinstance(message, JobFinished):
                self._measure(job, message)
            job.receive(message)
            if job.status.over:
                self._jobs.pop(job.id, None)

    def _measure(self, job: Job, message: JobFinished) -> None:
        """Learn from a job, before whoever waits for it goes on."""
        if self._costs is None or message.status != JobStatus.FINISHED.value:
            return
        try:
            self._costs.add(measure(job.compiled, message.reports, self._loaded))
        except Exception:  # What sites report must not keep a job from ending.
            _log.exception("job %s: its reports cannot be read", job.id)

    def _lost(self, lost: SiteLost) -> None:
        """The homesite is gone: its jobs are over, and say so; the session goes on with the next ones."""
        for inquiry in list(self._inquiries.values()):
            inquiry.give_up(f"the homesite was lost: {lost.reason}")
        for job in list(self._jobs.values()):
            failures = lost_failures(job.compiled.nets[self.homesite], job.id, lost)
            job.end(JobStatus.FAILED, failures)
        self._jobs.clear()

    def __repr__(self) -> str:
        return f"<Session {self.federation.name!r} on {self.target}, homesite {self.homesite!r}, {self._state}>"


def default_homesite(federation: FederationConfig) -> str:
    """Choose where a client attaches if it does not say: `info.homesite`, else `app`, else the first site."""
    named = federation.info.get("homesite")
    if isinstance(named, str):
        return named
    return "app" if "app" in federation.sites else next(iter(federation.sites), "")


def _parameter_sets(parameters: ParameterSets, *, close: bool) -> Iterable[Mapping[str, Any]]:
    if parameters is None:
        return [{}] if close else []
    return [parameters] if isinstance(parameters, Mapping) else parameters
