"""SubmittedJob: one job as who submitted it sees it: nothing announced is lost, and nothing is announced twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from dfmesh.engine.announced_results import AnnouncedResults
from dfmesh.engine.attempts import MAX_FRUITLESS
from dfmesh.engine.frame_run import FrameRun
from dfmesh.engine.job_shape import shape_of
from dfmesh.engine.message_parts import Failure
from dfmesh.engine.messages import (
    AddParameters,
    AnyMessage,
    CancelJob,
    CloseParameters,
    FrameFinished,
    JobFinished,
    JobRestarted,
    SiteLost,
    SubmitJob,
    YieldPackage,
    YieldPackages,
)
from dfmesh.engine.portions import PORTION_VALUES
from dfmesh.engine.site_loss import lost_failures, with_advice
from dfmesh.netir import Frame, NetIR

MAX_FAILURES = 10_000
"""How many failures of finished frames are remembered."""


class Resubmission(NamedTuple):
    """What to do since the homesite was lost.

    Attributes:
        send: Messages for the next life of the homesite, in order, before any other of this job; none if the job is
            over.
        take_in: What the homesite would have said: `JobRestarted`, or `JobFinished` with the reason.
    """

    send: tuple[AnyMessage, ...]
    take_in: JobRestarted | JobFinished


class SubmittedJob:
    """What is kept of a job where it was submitted, so that it can go on when its homesite is lost.

    Feed it with each message to and from the homesite, in order. A pure state machine: no clock, no thread. It costs a
    test of a flag per message for a job that cannot be resumed, and never more memory than the parameter sets that are
    unfinished (which the submitter bounds) and a few numbers per loop that is going on.

    Attributes:
        job: Id of the job.
        resumable: Whether the job may go on after the loss of some site, so that results may come twice.
        restarts: What was lost, each time that the job went on all the same.
    """

    def __init__(self, submit: SubmitJob, nets: Mapping[str, NetIR]) -> None:
        """Begin with a job that is being submitted.

        Args:
            submit: The message that submits it; it is not to be given to `sent`.
            nets: What the nets in that are, by site.
        """
        shape = shape_of(nets)
        self.job = submit.job
        self.restarts: list[JobRestarted] = []
        self._submit = submit
        self._nets = nets
        self._once = shape.once
        self.resumable = bool(shape.survivable)
        self._sets: dict[Frame, AddParameters] = {}
        self._closed: CloseParameters | None = None
        self._cancelled: CancelJob | None = None
        self._announced = AnnouncedResults()
        self._failures: list[Failure] = []
        self._history: list[Failure] = []
        self._fruitless = 0  # Losses of the homesite since anything new came.
        if submit.opening is not None:
            self.sent(submit.opening)

    @property
    def unfinished(self) -> int:
        """Parameter sets that are kept."""
        return len(self._sets)

    def sent(self, message: AnyMessage) -> None:
        """Note a message that is sent to the homesite."""
        if type(message) is AddParameters:
            if self.resumable:
                self._sets[message.frame] = message
            elif not self._sets:
                self._sets[message.frame] = AddParameters(message.job, message.frame, {})
            if message.last:
                self._closed = CloseParameters(message.job)
        elif type(message) is CloseParameters:
            self._closed = message
        elif type(message) is CancelJob:
            self._cancelled = message

    def received(self, message: AnyMessage) -> AnyMessage | None:
        """Note a message of the homesite.

        Returns:
            What to take in: the message, completed where it ends the job; None if it is a result that has been
            announced before.
        """
        if not self.resumable:
            return message
        if isinstance(message, YieldPackage):
            return message if self._is_new(message.node, message.frame) else None
        if isinstance(message, YieldPackages):
            return self._new_of(message)
        kind = type(message)
        if kind is FrameFinished:
            return self._frame_finished(message)  # type: ignore[arg-type]
        if kind is JobFinished:
            return self._complete(message)  # type: ignore[arg-type]
        if kind is JobRestarted:
            self.restarts.append(message)  # type: ignore[arg-type]
        return message

    def _new_of(self, packages: YieldPackages) -> YieldPackages | None:
        """Leave out what has been announced before; None if that is all."""
        node = packages.node
        frames = packages.frames
        if type(frames) is FrameRun:
            known = self._known(node, frames)
        else:
            known = [position for position, frame in enumerate(frames) if not self._is_new(node, frame)]
        if len(known) == len(frames):
            return None
        return msgspec.structs.replace(packages, left_out=tuple(known)) if known else packages

    def _known(self, node: str, frames: FrameRun) -> Sequence[int]:
        if len(frames) > PORTION_VALUES:  # Of no site of ours: who takes them in holds them against the values.
            return ()
        if frames[0][:1] not in self._sets:
            return range(len(frames))
        known = self._announced.add_all(node, frames)
        if len(known) < len(frames) and self._fruitless:
            self._advanced()
        return known

    def _is_new(self, node: str, frame: Frame) -> bool:
        if frame[:1] not in self._sets:
            return False  # The frame is finished.
        is_new = self._announced.add(node, frame)
        if is_new and self._fruitless:
            self._advanced()
        return is_new

    def _advanced(self) -> None:
        self._fruitless = 0
        self._history.clear()

    def _frame_finished(self, message: FrameFinished) -> FrameFinished | None:
        if self._sets.pop(message.frame, None) is None:
            return None
        self._announced.forget(message.frame)
        self._advanced()
        self._failures += message.failures[: MAX_FAILURES - len(self._failures)]
        return message

    def _complete(self, end: JobFinished) -> JobFinished:
        """Add what failed in frames that an earlier submission finished; this one does not know of it."""
        if self._submit.submission == 1 or not self._failures:
            return end
        told = set(end.failures)
        failures = (*(failure for failure in self._failures if failure not in told), *end.failures)
        status = "failed" if end.status == "finished" else end.status
        return msgspec.structs.replace(end, status=status, failures=failures)

    def homesite_lost(self, lost: SiteLost) -> Resubmission:
        """Decide what becomes of the job when its homesite is lost.

        It is submitted again if no operation that may have run must not run again. To be asked again if the next life
        of the homesite is lost too.

        Args:
            lost: What the homesite's supervisor says.
        """
        losses = lost_failures(self._nets.get(lost.site), self.job, lost)
        if self._cancelled is not None:
            reason = self._cancelled.reason or "cancelled by the client"
            return self._over("cancelled", Failure("", "cancel", "", (), "", "Cancelled", reason))
        if self._once and (self._sets or not self.resumable):
            return self._over("failed", *with_advice(losses, self._once))
        self._history += losses
        self._fruitless += 1
        if self._fruitless == MAX_FRUITLESS:
            what = f"the homesite was lost {MAX_FRUITLESS} times in a row without anything new in between; "
            what += "the job is not begun again"
            return self._over("failed", *self._history, Failure(lost.site, "site", "", (), "", "SiteLost", what))
        self._submit = msgspec.structs.replace(self._submit, submission=self._submit.submission + 1, opening=None)
        restarted = JobRestarted(self.job, tuple(losses))
        self.restarts.append(restarted)
        closed = () if self._closed is None else (self._closed,)
        return Resubmission((self._submit, *self._sets.values(), *closed), restarted)

    def _over(self, status: str, *failures: Failure) -> Resubmission:
        return Resubmission((), JobFinished(self.job, status, (*self._failures, *failures), ()))


__all__ = ["MAX_FAILURES", "Resubmission", "SubmittedJob"]
