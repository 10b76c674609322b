"""What is lost with a site that dies."""

from __future__ import annotations

from dfmesh.engine.messages import Failure, SiteLost
from dfmesh.netir import Call, NetIR, Reduce


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
        (transitions[number], frame) for name, number, frame in lost.running if name == job and number in transitions
    ]
    if not running:
        called = [transition for transition in net.transitions if isinstance(transition.action, Call | Reduce)]
        running = [(transition, ()) for transition in called or net.transitions[:1]]
    return [
        Failure(lost.site, transition.name, transition.node, frame, transition.location, "SiteLost", lost.reason)
        for transition, frame in running
    ] or [Failure(lost.site, "site", "", (), "", "SiteLost", lost.reason)]
