"""Attempts: a job that lost a site is begun again from its unfinished frames, if nothing is harmed by that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dfmesh.engine.message_parts import Failure
from dfmesh.netir import Call, NetIR, Reduce, Transition

MAX_FRUITLESS = 5
"""How many attempts in a row may end with the loss of a site and bring nothing new; the job is likely to be why."""

_MARK = "#"


def attempt_id(job: str, submission: int, attempt: int) -> str:
    """Name an attempt of a job between the sites, so that nothing of an earlier one can be mistaken for its own.

    Args:
        job: The job's id, which is also that of its first attempt.
        submission: Which submission of the job, from 1 on.
        attempt: Which attempt of that, from 1 on.
    """
    return job if submission == attempt == 1 else f"{job}{_MARK}{submission}.{attempt}"


def job_of(attempt: str) -> str:
    """Give the id of the job that an attempt is of."""
    return attempt.partition(_MARK)[0]


def is_job_id(name: str) -> bool:
    """Whether a client may call a job so."""
    return bool(name) and _MARK not in name


class AttemptGains:
    """What the attempts of a job bring that none before has brought, and what was lost since the last such thing.

    Attributes:
        lost: What was lost since anything new came.
    """

    def __init__(self) -> None:
        self.lost: list[Failure] = []
        self._losses = 0
        self._came = self._most_came = 0  # Results of open frames in this attempt, and in the best one before.

    def came(self, count: int) -> None:
        """Note results of frames that are not finished."""
        self._came += count

    def frame_finished(self) -> None:
        """Note that a frame is finished, which will not be undone."""
        self._came = self._most_came = 0
        self._advanced()

    def is_hopeless(self) -> bool:
        """Note that the attempt has lost a site, and tell whether another one is not worth beginning."""
        if self._came > self._most_came:
            self._most_came = self._came
            self._advanced()
        self._came = 0
        self._losses += 1
        return self._losses == MAX_FRUITLESS

    def _advanced(self) -> None:
        self._losses = 0
        self.lost.clear()


def runs_once(transition: Transition) -> bool:
    """Whether a transition calls an operation that must not run twice for the same frame."""
    action = transition.action
    return isinstance(action, Call | Reduce) and not action.idempotent


def once_only(nets: Iterable[NetIR]) -> tuple[tuple[NetIR, Transition], ...]:
    """List what must not run twice, with the net it is in."""
    return tuple((net, transition) for net in nets for transition in _once_in(net))


def _once_in(net: NetIR) -> tuple[Transition, ...]:
    return tuple(filter(runs_once, net.transitions))


def survivable(nets: Mapping[str, NetIR]) -> frozenset[str]:
    """Name the sites without which a job can be begun again: none of what has to be repeated for that runs once only.

    What a lost site did is gone, so all of that is repeated; the others keep what must not run twice. With the
    homesite all is gone.
    """
    bound = {net.site for net in nets.values() if _once_in(net)}
    return frozenset(site for site, net in nets.items() if site not in bound and (site != net.homesite or not bound))
