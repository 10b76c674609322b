"""When nothing can happen any more in a job that goes on without a site."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dfmesh.engine.messages import SiteIdle


def at_rest(sites: Collection[str], told: Mapping[str, SiteIdle], losses: int) -> bool:
    """Whether all sites are idle, and nothing is under way between them.

    Args:
        sites: Those that live.
        told: What each said last.
        losses: How many sites have been lost; who has not heard of all of them may yet have something to do.
    """
    if any(site not in told or told[site].losses < losses for site in sites):
        return False
    return all(
        told[sender].sent.get(receiver, 0) == told[receiver].received.get(sender, 0)
        for sender in sites
        for receiver in sites
        if sender != receiver
    )
