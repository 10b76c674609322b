"""What is lost with a site that dies."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dfmesh.engine.attempts import job_of, runs_once
from dfmesh.engine.message_parts import Failure
from dfmesh.engine.messages import SiteLost
from dfmesh.netir import Call, NetIR, Reduce, Transition

_NAMED = 3


def lost_failures(net: NetIR | None, job: str, lost: SiteLost) -> list[Failure]:
    """Say what was lost with a site: the calls that went on there, else all that it had to do.

    Args:
        net: The site's part of the job; None if it has none.
        job: The job.
        lost: What its supervisor says.
    """
    if net is None:
        return []
    transitions = {transition.id: transition for transition in net.transitions}
    running = [
        (transitions[number], frame)
        for name, number, frame in lost.running
        if job_of(name) == job and number in transitions
    ]
    if not running:
        called = [transition for transition in net.transitions if isinstance(transition.action, Call | Reduce)]
        running = [(transition, ()) for transition in called or net.transitions[:1]]
    return [
        Failure(lost.site, transition.name, transition.node, frame, transition.location, "SiteLost", lost.reason)
        for transition, frame in running
    ] or [Failure(lost.site, "site", "", (), "", "SiteLost", lost.reason)]


def with_advice(losses: Sequence[Failure], once: Sequence[tuple[NetIR, Transition]]) -> list[Failure]:
    """Add to what was lost why the job could not go on.

    Args:
        losses: What was lost.
        once: What must not run twice, with the net it is in; nothing is added if there is none.
    """
    if not once:
        return list(losses)
    named = dict.fromkeys(f"{transition.name} of site {net.site}" for net, transition in once if runs_once(transition))
    text = ", ".join(list(named)[:_NAMED]) + (f" and {len(named) - _NAMED} more" if len(named) > _NAMED else "")
    advice = f"{text} may have run, and must not run twice; with `idempotent: true` there the job would go on"
    return [msgspec.structs.replace(failure, message=f"{failure.message}; {advice}") for failure in losses]
