"""Runs jobs one after the other: draws a case, submits it, does its faults, and judges its end."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos_run.case import Case, Draft, Template
from chaos_run.faults import LATE, FaultLog, Injector, Loss, PlannedFault, Profile, plan_faults
from chaos_run.faulty_templates import DEADLY, HARMLESS
from chaos_run.oracle import Outcome, judge
from chaos_run.templates import SOUND
from dfmesh import SessionError

JOB_LIMIT = 150.0
"""Seconds after which a job counts as hanging. The longest takes about 5 alone; but it may wait for a site that is
stopped, and several times for one that starts again, on a machine under load."""

CANCEL_LIMIT = 30.0
"""Seconds within which a job that is cancelled must be over, on a machine under load and with stopped sites."""


@dataclass(frozen=True)
class Job:
    """A job of the plan; the same for the same name.

    Attributes:
        name: `seed/client/incarnation/number`.
        template: Name of the template.
        case: What is submitted.
        faults: What is done to it.
        iterates: Whether its results are iterated over while it runs.
    """

    name: str
    template: str
    case: Case
    faults: list[PlannedFault]
    iterates: bool


def draw_job(name: str, profile: Profile, ops: Any, scratch: Path) -> Job:
    """Draw a job; everything follows from its name and the profile."""
    source = random.Random(name)
    kind = source.random()
    templates: tuple[Template, ...] = SOUND
    if kind < profile.deadly:
        templates = DEADLY
    elif kind < profile.deadly + profile.harmless:
        templates = HARMLESS
    template = source.choice(templates)
    draft = Draft(source, ops, name.replace("/", "-"), scratch)
    template(draft)
    case = draft.case
    case.name = template.__name__
    return Job(name, case.name, case, plan_faults(source, profile, case), source.random() < 0.4)


class NotTakenError(Exception):
    """A job was not taken, and need not be: whoever was to take it was killed in that moment."""


class Worker:
    """Runs jobs in a session that others use, too.

    Attributes:
        limit: Seconds after which a job counts as hanging.
    """

    limit = JOB_LIMIT

    def __init__(
        self,
        session: Callable[[], tuple[Any, Callable[[], bool]]],
        log: FaultLog,
        injector: Injector,
        report: Callable[..., None],
        scratch: Path,
    ) -> None:
        """Begin.

        Args:
            session: Gives the session that is open now, and what says whether it was closed by us.
            log: Of all faults.
            injector: Does faults.
            report: Gets what happened, as `report(kind, **fields)`.
            scratch: Directory for files of operations.
        """
        self._scratch = scratch
        self._session = session
        self._log = log
        self._injector = injector
        self._report = report

    def run(self, job: Job) -> bool:
        """Run a job and report on it; False if it hangs."""
        session, was_closed = self._session()
        begin = time.monotonic()
        self._begin_losses(job, begin)
        try:
            compiled = session.prepare(job.case.pipeline)
            handle = self._submit(session, compiled, job, begin)
        except NotTakenError:
            return True
        except SessionError as error:
            if not was_closed():
                self._wrong(job, begin, [f"was not taken: {error}"], {})
            return True
        iterated = _Iteration(handle) if job.iterates else None
        cancelled: list[float] = []

        def cancel() -> None:
            cancelled.append(time.monotonic())
            self._cancelling(job)
            handle.cancel()

        self._injector.run(job.faults, begin, handle.wait, cancel)
        final = self._end_of(job, handle, begin)
        return self._judge(
            job,
            final or handle,
            begin,
            over=final is not None,
            sites=frozenset(compiled.nets),
            cancelled=bool(cancelled) or was_closed(),
            cancelled_at=cancelled[0] if cancelled else None,
            iterated=iterated.taken() if iterated and final is handle else None,
        )

    def _submit(self, session: Any, compiled: Any, job: Job, begin: float) -> Any:
        sets = job.case.sets
        return session.submit(compiled, iter(sets) if job.case.iterated else sets)

    def _cancelling(self, job: Job) -> None:
        """A job is about to be cancelled."""

    def _end_of(self, job: Job, handle: Any, begin: float) -> Any:
        """Wait for the end of a job, and give the handle that has it; None if it does not come."""
        return handle if handle.wait(self._left(begin)) else None

    def _left(self, begin: float) -> float:
        return max(1.0, begin + self.limit - time.monotonic())

    def _judge(
        self,
        job: Job,
        handle: Any,
        begin: float,
        *,
        over: bool,
        sites: frozenset[str],
        cancelled: bool,
        cancelled_at: float | None = None,
        iterated: list[tuple[str, tuple[int, ...]]] | None = None,
    ) -> bool:
        case, end = job.case, time.monotonic()
        self._log.settle(job.name, end + LATE)
        if not over:
            self._hangs(job, handle, begin)
            return False
        log = case.once_log
        outcome = Outcome(
            str(handle.status),
            items_of(handle),
            list(handle.errors),
            sites,
            cancelled,
            iterated,
            log.read_text().splitlines() if log and log.exists() else [],
            self._log.losses(begin, end),
        )
        wrong = judge(case, outcome)
        cancelling = end - cancelled_at if cancelled_at and outcome.status == "cancelled" else None
        if cancelling is not None and cancelling > CANCEL_LIMIT:
            wrong.append(f"it took {cancelling:.1f} s to cancel it")
        if wrong:
            self._wrong(job, begin, wrong, {"status": outcome.status, "errors": list(map(str, outcome.errors[:20]))})
        self._over(job, outcome, begin, bool(wrong), cancelling)
        return True

    def _begin_losses(self, job: Job, begin: float) -> None:
        for death in job.case.deaths:
            self._log.lose(Loss(death.site, death.reason, begin, begin + 2 * self.limit, job.name, death.times))

    def _over(self, job: Job, outcome: Outcome, begin: float, wrong: bool, cancelling: float | None) -> None:
        for path in self._scratch.glob(f"{job.name.replace('/', '-')}.*"):
            path.unlink(missing_ok=True)
        # An adapter that was to misbehave may have been kept from it by what else has hit the job.
        undisturbed = not outcome.cancelled and not any(error.kind == "SiteLost" for error in outcome.errors)
        died = any(error.node == death.node for error in outcome.errors for death in job.case.deaths)
        if undisturbed or died:
            for kind, count in job.case.faults.items():
                self._log.add(kind, f"in job {job.name}", count)
        lost = any(error.kind == "SiteLost" for error in outcome.errors)
        hit = any(loss.site in outcome.sites and not loss.job and loss.since > begin for loss in outcome.losses)
        self._report(
            "job",
            job=job.name,
            template=job.template,
            status=outcome.status,
            cause=("site lost" if lost else "operation") if outcome.status == "failed" else "",
            survived=outcome.status == "finished" and hit,
            results=len(outcome.items),
            seconds=time.monotonic() - begin,
            wrong=wrong,
            cancelling=cancelling,
            faults=self._log.take_counts(),
        )

    def _hangs(self, job: Job, submitted: Any, begin: float) -> None:
        try:
            progress = str(submitted.progress(5.0))
        except Exception as error:
            progress = f"no progress: {error!r}"
        wrong = [f"is not over after {self.limit} s: {submitted.status}"]
        self._wrong(job, begin, wrong, {"progress": progress, "results": len(items_of(submitted))})
        submitted.cancel()

    def _wrong(self, job: Job, begin: float, wrong: list[str], more: dict[str, Any]) -> None:
        now = time.monotonic()
        self._report(
            "wrong",
            job=job.name,
            template=job.template,
            wrong=wrong[:20],
            planned=[str(fault) for fault in job.faults],
            pipeline=job.case.pipeline.model_dump_json(),
            sets=repr(job.case.sets)[:500],
            history=self._log.history(begin, now)[-150:],
            took=now - begin,
            **more,
        )


class _Iteration:
    """Goes through the results of a job while it runs."""

    def __init__(self, job: Any) -> None:
        self._keys: list[tuple[str, tuple[int, ...]]] = []
        self._thread = threading.Thread(target=self._run, args=(job,), daemon=True)
        self._thread.start()

    def _run(self, job: Any) -> None:
        for item in job:
            self._keys.append((item.place, tuple(item.frame)))

    def taken(self) -> list[tuple[str, tuple[int, ...]]]:
        """Wait for its end, which comes with that of the job, and give what it has seen."""
        self._thread.join(10)
        return [*self._keys, *([("the iteration has no end", ())] if self._thread.is_alive() else [])]


def items_of(job: Any) -> list[tuple[str, tuple[int, ...], Any]]:
    """Give (place, frame, value) of all results that have come."""
    results = job.partial_result()
    return [(place, tuple(item.frame), item.value) for place in results for item in results.items_of(place)]
