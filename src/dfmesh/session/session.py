"""A session: a running federation, as the user sees it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dfmesh.api import Pipeline
from dfmesh.compiler import CompiledPipeline, ObjectiveName
from dfmesh.config import FederationConfig
from dfmesh.engine.messages import SubmitJob
from dfmesh.errors import SessionError
from dfmesh.session.compiling import chosen_homesite, compile_with
from dfmesh.session.connection import Connection
from dfmesh.session.cost_store import kept_costs
from dfmesh.session.dfm_job import DataCallback, DfmJob
from dfmesh.session.given_arguments import function_problem, refuse
from dfmesh.session.hosted_jobs import HostedJobs, JobSummary
from dfmesh.session.job import Job
from dfmesh.session.job_inbox import JobInbox
from dfmesh.session.job_plan import JobPlan, plan_of
from dfmesh.session.loading_scripts import check_sessions_may_start
from dfmesh.session.parameter_sets import ParameterFeed, ParameterSets, parameter_sets
from dfmesh.session.results import ResultItem, Results
from dfmesh.session.session_jobs import SessionJobs
from dfmesh.session.site_output import Output, SiteOutput
from dfmesh.targets import OnOutput, is_hosted, make_hosting_runner, make_runner

if TYPE_CHECKING:
    from dfmesh.session.discovery_result import DiscoveryResult


class Session:
    """A running federation: `with federation.session() as session:`, or `async with` in a coroutine.

    It may be used from several threads, and run many jobs at once.

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
        output: Output = "stderr",
    ) -> None:
        """Prepare; `federation.session` makes a session, and says what its arguments mean."""
        self.federation = federation
        self.target = target
        self.homesite = chosen_homesite(federation, homesite)
        self._output = SiteOutput(output)
        take = self._output.take if self._output.wanted else None
        self._connection = self._make_connection(homesite, take)
        self._hosted = HostedJobs(self._connection)
        self._costs = kept_costs(federation.name, measure)
        self._last_plan: JobPlan | None = None  # The same pipeline is often submitted many times in a row.
        self._jobs = SessionJobs(self._connection, self._hosted, self._costs)

    def _make_connection(self, homesite: str | None, take: OnOutput | None) -> Connection:
        if is_hosted(self.target):
            host = make_hosting_runner(self.target, self.federation, homesite)
            return Connection(host, host)
        return Connection(make_runner(self.target, self.federation, self.homesite, take))

    # Connecting

    def connect(self) -> Self:
        """Start the sites and connect to the homesite. Does nothing if that was done.

        Raises:
            SessionError: a site did not start, or the session was closed.
        """
        self._connection.check_may_block()
        starting = self._starting()
        if starting is not None:
            try:
                self._wait_for(starting)
            except BaseException:
                if not starting.done() or starting.exception() is None:
                    self.close()  # Interrupted: nobody has the session who could close it.
                raise
            self._adopt_homesite()
        return self

    def close(self) -> None:
        """Cancel what runs, stop the sites, free everything. May be called again.

        In target `up` only the connection ends: jobs go on at the host, those submitted with `close=False` until the
        parameter sets are done that were given.
        """
        if self._connection.state == "closed":
            return
        if self._connection.in_its_process:
            self._connection.check_may_block()
        self._connection.stop(self._jobs.give_up).result()
        self._output.close()
        self._keep_costs()

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        starting = self._starting()
        if starting is not None:
            try:
                await asyncio.wrap_future(starting)
            except asyncio.CancelledError:
                await self._close_async()
                raise
            self._adopt_homesite()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close_async()

    async def _close_async(self) -> None:
        if self._connection.state != "closed":
            stopping = self._connection.stop(self._jobs.give_up)
            await asyncio.shield(asyncio.wrap_future(stopping))  # Who gives up waiting still wants the sites stopped.
            await asyncio.to_thread(self._output.close)
            self._keep_costs()

    def _starting(self) -> Future[None] | None:
        """Begin to start the sites; None if that was done."""
        if self._connection.state == "new":
            check_sessions_may_start()
            return self._connection.start(
                self._jobs.receive, self._jobs.lost, self._jobs.unsendable, self._jobs.sending
            )
        self._connection.check_open()
        return None

    def _wait_for(self, starting: Future[None]) -> None:
        """Wait until the sites have started; what is needed here as well is loaded meanwhile."""
        if self.target != "local":
            starting.result()
            return
        # Not on this thread: numpy is of no use any more in a process in which Ctrl-C has cut off its import.
        loading = self._connection.run(asyncio.to_thread(load_placing))
        starting.result()
        loading.result()

    def _adopt_homesite(self) -> None:
        if self._connection.hosting is not None:
            self.homesite = self._connection.hosting.host.homesite

    def _keep_costs(self) -> None:
        if self._costs is not None:
            self._costs.flush()

    # Running

    def prepare(
        self,
        pipeline: Pipeline | CompiledPipeline,
        restrict_to_sites: Iterable[str] | None = None,
        *,
        objective: ObjectiveName = "time",
    ) -> CompiledPipeline:
        """Compile a pipeline once, to submit it many times.

        Args:
            pipeline: What the user wrote; one that is compiled already is given back.
            restrict_to_sites: Sites that may take part, besides the homesite; None for all.
            objective: What the sites are chosen for: the least `time`, `bytes` moved, or `money`.

        Raises:
            PipelineError: it has faults; all of them are listed.
            TypeError: `restrict_to_sites` is no list of names.
        """
        if isinstance(pipeline, CompiledPipeline):
            return pipeline
        return compile_with(
            self._costs,
            pipeline,
            self.federation,
            self.homesite,
            restrict_to_sites=restrict_to_sites,
            objective=objective,
        )

    def submit(
        self,
        pipeline: Pipeline | CompiledPipeline,
        parameters: ParameterSets = None,
        /,
        *,
        close: bool = True,
        on_result: Callable[[ResultItem], None] | None = None,
        keep_results: bool = True,
        objective: ObjectiveName | None = None,
        **more: Any,
    ) -> Job:
        """Start a job and return at once: `submit(p, {"x": 1})`, `submit(p, x=1)`, `submit(p, [{"x": 1}, {"x": 2}])`.

        Args:
            pipeline: What to run.
            parameters: A parameter set, or several. None is one empty set; with `close=False` it is none at all. An
                iterator is read as the job gets on, so it may be endless.
            close: Whether these are all. If not, `job.send(...)` adds further sets and `job.close()` ends them.
            on_result: Called with each result as soon as it has come, as `job.on_result` says.
            keep_results: Whether results stay when they were iterated over. If not, a job of any length needs the
                same memory, and `job.result()` gives those that were not taken.
            objective: What the sites are chosen for, as in `prepare`; None for time.
            more: One parameter set by keyword. (A parameter that is called as one of the options goes into
                `parameters`.)

        Raises:
            PipelineError: the pipeline or the parameters have faults.
            SessionError: the session is not open.
            TypeError: the parameters are none of that, or `on_result` is no function.
        """
        refuse(function_problem(on_result, "on_result", "a result"))
        return self._submit(
            self._prepared(pipeline, objective),
            parameter_sets(parameters, more, close=close),
            close=close,
            on_result=on_result,
            keep_results=keep_results,
        )

    def _prepared(self, pipeline: Pipeline | CompiledPipeline, objective: ObjectiveName | None) -> CompiledPipeline:
        if objective is None:
            return self.prepare(pipeline)
        if isinstance(pipeline, CompiledPipeline):
            raise TypeError("the sites of a prepared pipeline are chosen already; give objective= to prepare(...)")
        if isinstance(pipeline, Pipeline) and "objective" in pipeline.parameters():
            raise TypeError(
                "objective= is what sites are chosen for, and this pipeline has a parameter of that name:"
                " give that in a dictionary, {'objective': ...}, and the other to prepare(...)"
            )
        return self.prepare(pipeline, objective=objective)

    def _submit(
        self,
        compiled: CompiledPipeline,
        sets: Iterable[Mapping[str, Any]],
        *,
        close: bool = True,
        on_result: Callable[[ResultItem], None] | None = None,
        keep_results: bool = True,
    ) -> Job:
        inbox, feed = self._new_job(compiled, keep_results=keep_results)
        job = Job(inbox, feed, self._connection)
        if on_result is not None:
            inbox.begin_with(on_result)
        self._begin(inbox, feed, sets, close=close)
        return job

    def _new_job(self, compiled: CompiledPipeline, *, keep_results: bool = True) -> tuple[JobInbox, ParameterFeed]:
        plan = self._last_plan
        if plan is None or plan.pipeline is not compiled:
            plan = self._last_plan = plan_of(compiled)
        inbox = JobInbox(os.urandom(8).hex(), plan, self._connection, keep_results=keep_results)
        return inbox, ParameterFeed(inbox, self._connection)

    def _begin(self, inbox: JobInbox, feed: ParameterFeed, sets: Iterable[Mapping[str, Any]], *, close: bool) -> None:
        compiled = inbox.plan.compiled
        self._connection.check_open()
        adds = feed.checked(sets, close=close)
        if compiled.homesite != self.homesite:
            who = "this session" if self._connection.hosting is None else "the host"
            raise SessionError(
                f"the pipeline was compiled for homesite {compiled.homesite!r}, {who} has {self.homesite!r};"
                " compile it with session.prepare(...)"
            )
        self._jobs.add(inbox)
        submit = SubmitJob(inbox.job, compiled.pipeline.name or "", compiled.encoded_nets)
        feed.begin(submit, sets, adds, close=close)
        self._jobs.end_if_late()

    def run(
        self,
        pipeline: Pipeline | CompiledPipeline,
        parameters: ParameterSets = None,
        /,
        *,
        objective: ObjectiveName | None = None,
        **more: Any,
    ) -> Results:
        """Run a pipeline and wait for its results: `run(p, x=1)`, `run(p, {"x": 1})`, `run(p, [{"x": 1}, {"x": 2}])`.

        Args:
            pipeline: What to run.
            parameters: A parameter set, or several; `results.sets[k]` has the results of set k.
            objective: What the sites are chosen for, as in `prepare`; None for time.
            more: One parameter set by keyword. (A parameter that is called `objective` goes into `parameters`.)

        Raises:
            PipelineError: the pipeline or the parameters have faults.
            JobError: something failed.
            SessionError: the session is not open.
            TypeError: the parameters are none of that.
        """
        return self._submit(self._prepared(pipeline, objective), parameter_sets(parameters, more)).result()

    def execute(
        self,
        pipeline: Pipeline | CompiledPipeline,
        input_params: ParameterSets = None,
        autostop: bool = True,
        default_callback: DataCallback | None = None,
        place_callbacks: Mapping[str, DataCallback] | None = None,
        debug: bool = False,
        options: Any = None,
        force_modgen: bool = False,
    ) -> DfmJob:
        """Start a job as DFM does, with callbacks `(from_site, node, frame, place, data)`.

        The callbacks are called on a thread of their own, one at a time.

        Args:
            pipeline: What to run, prepared or not.
            input_params: A parameter set, or several.
            autostop: Whether these are all.
            default_callback: Gets results of places without a callback of their own, and on the place
                `_dfm_status_` a stop token at the end and an error token per failure.
            place_callbacks: Callbacks by place.
            debug: Taken for DFM's sake, without effect, as are options and force_modgen.
            options: See debug.
            force_modgen: See debug.
        """
        callbacks = {"default_callback": default_callback}
        callbacks |= {f"place_callbacks[{place!r}]": function for place, function in (place_callbacks or {}).items()}
        takes = "(from_site, node, frame, place, data)"
        refuse(*(function_problem(function, name, takes) for name, function in callbacks.items()))
        sets = parameter_sets(input_params, close=autostop)
        inbox, feed = self._new_job(self.prepare(pipeline))
        job = DfmJob(inbox, feed, self._connection, default_callback, place_callbacks or {})
        self._begin(inbox, feed, sets, close=autostop)
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
        from dfmesh.session.discovery import Inquiry

        self._connection.check_may_block()
        self._connection.check_open()
        inquiry = Inquiry(pipeline, self.federation, self._connection.pack, timeout)
        with self._jobs.asking(inquiry):
            if inquiry.message is not None:
                self._connection.post(inquiry.message)
            return inquiry.result(self._connection.unpack)

    # Jobs of a host (target `up`)

    def jobs(self) -> list[JobSummary]:
        """List all jobs that the host knows of, whoever submitted them, the oldest first; target `up` only.

        Raises:
            SessionError: the session is of another target, or not open.
        """
        return self._hosted.summaries()

    def attach(self, job_id: str, *, keep_results: bool = True) -> Job:
        """Meet a job again, whoever submitted it, with all its results from the first; target `up` only.

        Any number of clients may do that, any number of times, also when the job is over.

        Args:
            job_id: Its id, or the beginning of it.
            keep_results: As in `submit`.

        Raises:
            SessionError: there is no such job or there are several, or the session is of another target or not open.
        """
        return self._hosted.attach(job_id, keep_results=keep_results)

    def forget(self, job_id: str) -> str:
        """Have the host remove all that it keeps of a job that is over; target `up` only.

        Args:
            job_id: Its id, or the beginning of it.

        Returns:
            The whole id.

        Raises:
            SessionError: as `attach`, or the job is not over.
        """
        return self._hosted.forget(job_id)

    def __repr__(self) -> str:
        return (
            f"<Session {self.federation.name!r} on {self.target}, homesite {self.homesite!r}, {self._connection.state}>"
        )


def load_placing() -> None:
    """Load what the first compilation would load: numpy, above all."""
    from dfmesh.compiler.placement import conflict, problem, solver  # noqa: F401
