"""`dfmesh run`: run a pipeline, show how far it is, write its results."""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO

from dfmesh.cli.documents import compile_files, load_parameter_sets
from dfmesh.cli.earlier_results import EarlierResults
from dfmesh.cli.failures import EXIT_INTERRUPTED, EXIT_JOB_FAILED, failure_data, print_error
from dfmesh.cli.interrupting import CancelOnInterrupt
from dfmesh.cli.own_output import own_standard_output
from dfmesh.cli.progress import JobView, LiveProgress, ProgressAsker
from dfmesh.cli.result_files import ResultFiles
from dfmesh.compiler.explain import bytes_text, count_text, seconds_text
from dfmesh.netir import SendYield

if TYPE_CHECKING:
    from dfmesh.compiler import CompiledPipeline
    from dfmesh.session import Federation, Job

_EVENT_SECONDS = 1.0
"""How often a machine is told how far a job is."""


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
    """

    file: Path
    pipeline: str
    given: tuple[str, ...]
    parameter_file: Path | None
    out: Path
    target: str
    homesite: str | None
    as_json: bool


class Audience(AbstractContextManager["Audience"], Protocol):
    """Who is told of a run."""

    def watch(self, job: Job) -> None:
        """The job has been submitted."""
        ...


def run_pipeline(request: RunRequest) -> None:
    """Run a pipeline and write its results.

    Raises:
        DfmeshError: what was asked has mistakes, the sites do not start, or the job fails; what came until then has
            been written.
        SystemExit: the user interrupted it.
    """
    with own_standard_output() as out:
        federation, compiled = compile_files(request.file, request.pipeline, request.homesite)
        sets = load_parameter_sets(request.parameter_file, request.given)
        for given in sets:
            compiled.parameter_set(given, spelling="--param {}=...")  # Before any site is started.
        _Run(request, federation, compiled, sets, out).run()


class _Run:
    def __init__(
        self,
        request: RunRequest,
        federation: Federation,
        compiled: CompiledPipeline,
        sets: list[dict[str, Any]],
        out: TextIO,
    ) -> None:
        self.request = request
        self.out = out
        self.federation = federation
        self.compiled = compiled
        self.sets = sets
        yields = _yields(compiled)
        self.earlier = EarlierResults(request.out, yields)
        self.files = ResultFiles(request.out, frozenset(place for place, count in yields.items() if count > 1))
        self.view = JobView(compiled.pipeline.name or Path(request.pipeline).name)

    def run(self) -> None:
        audience: Audience = _JsonEvents(self.view, self.out) if self.request.as_json else LiveProgress(self.view)
        with self.federation.session(self.request.target, homesite=self.request.homesite) as session, audience:
            self.make_room()
            job = session.submit(self.compiled, self.sets)
            audience.watch(job)
            with CancelOnInterrupt(job):
                self.take_results(job)
            self.view.ended(job.status.value)
            self.view.sites = job.progress().sites
        index = self.files.write_index(self.about(job))
        self.tell_end(job, index)

    def make_room(self) -> None:
        """Remove the results of an earlier run, now that there will be new ones."""
        removed = self.earlier.remove()
        if removed and not self.request.as_json:
            print(f"removed {count_text(removed, 'result')} of an earlier run from {self.request.out}", file=self.out)

    def take_results(self, job: Job) -> None:
        for item in job:
            self.view.result_came()
            entry = self.files.write(item)
            if self.request.as_json:
                _emit(self.out, "result", seconds=round(self.view.seconds, 3), **entry)

    def about(self, job: Job) -> dict[str, Any]:
        """What the index and the last event say of the job."""
        first = self.view.first_result_seconds
        return {
            "job": job.id,
            "federation": self.federation.name,
            "pipeline": self.compiled.pipeline.name or self.request.pipeline,
            "target": self.request.target,
            "status": job.status.value,
            "seconds": round(self.view.seconds, 3),
            "first_result_seconds": None if first is None else round(first, 3),
            "bytes_between_sites": self.view.bytes_between_sites,
            "sites": _sites_data(self.view),
            "errors": [failure_data(error) for error in job.errors],
        }

    def tell_end(self, job: Job, index: Path) -> None:
        """Say how it ended: to a machine all of it; to people the files, while a failure is raised for `reported`."""
        status = job.status.value
        if self.request.as_json:
            _emit(self.out, "end", results=len(self.files.entries), index=str(index), **self.about(job))
            if status != "finished":
                raise SystemExit(EXIT_INTERRUPTED if status == "cancelled" else EXIT_JOB_FAILED)
            return
        self.print_files(index)
        if status == "cancelled":
            print_error(f"cancelled; what had come is kept: {count_text(len(self.files.entries), 'result')}")
            raise SystemExit(EXIT_INTERRUPTED)
        job.result()

    def print_files(self, index: Path) -> None:
        counts = Counter(entry["place"] for entry in self.files.entries)
        sizes: Counter[str] = Counter()
        for entry in self.files.entries:
            sizes[entry["place"]] += entry["bytes"]
        for place, count in counts.items():
            example = next(entry["file"] for entry in self.files.entries if entry["place"] == place)
            more = "" if count == 1 else f" and {count - 1} more"
            print(f"{place}: {self.files.directory / example}{more}, {bytes_text(sizes[place])}", file=self.out)
        view = self.view
        first = view.first_result_seconds
        after = "" if first is None else f", the first result after {seconds_text(first)}"
        moved = f"{bytes_text(view.bytes_between_sites)} between sites"
        came = count_text(len(self.files.entries), "result")
        ended = f"the end {seconds_text(view.seconds)} after the command began"
        print(f"{index}: {came}; {ended}{after}; {moved}", file=self.out)


class _JsonEvents:
    """Tells a machine: one JSON object per line on standard output."""

    def __init__(self, view: JobView, out: TextIO) -> None:
        self._view = view
        self._out = out
        self._asker: ProgressAsker | None = None

    def __enter__(self) -> Self:
        return self

    def watch(self, job: Job) -> None:
        """The job has been submitted."""
        _emit(self._out, "submitted", job=job.id, seconds=round(self._view.seconds, 3))
        self._asker = ProgressAsker(self._view, _EVENT_SECONDS, self._tell)
        self._asker.ask(job)

    def _tell(self, view: JobView) -> None:
        _emit(
            self._out,
            "progress",
            seconds=round(view.seconds, 3),
            status=view.status,
            results=view.results,
            bytes_between_sites=view.bytes_between_sites,
            sites=_sites_data(view),
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._asker is not None:
            self._asker.stop()


_output = threading.Lock()


def _emit(out: TextIO, event: str, /, **data: Any) -> None:
    line = json.dumps({"event": event, **data})
    with _output:
        print(line, file=out, flush=True)


def _sites_data(view: JobView) -> dict[str, Any]:
    sites: dict[str, Any] = {site.site: {"operations": {}, "bytes_sent": {}} for site in view.sites}
    for entry in view.operations():
        counts = {name: getattr(entry, name) for name in ("done", "running", "waiting", "failed")}
        sites[entry.site]["operations"][entry.operation] = {**counts, "seconds": round(entry.seconds, 4)}
    for source, peer, size in view.links():
        sites[source]["bytes_sent"][peer] = size
    return sites


def _yields(compiled: CompiledPipeline) -> Counter[str]:
    """Count the Yields that send to each place."""
    return Counter(node.action.place for node in compiled.graph.nodes if isinstance(node.action, SendYield))
