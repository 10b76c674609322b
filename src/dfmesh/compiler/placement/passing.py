"""Passing messages for some rounds, with placements that they lead to."""

from __future__ import annotations

from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.standing import Standing

FINE = 0.0005
"""Gap, as a share, below which it is not worth more work."""

SPREAD = 3
"""Rounds after which shares are evened out and placements are made; both take as long as several passes."""


def pass_on(
    standing: Standing, messages: Messages, rounds: int, work: float, *, spread: int = SPREAD, everywhere: bool = True
) -> list[tuple[int, list[int]]]:
    """Pass messages, and give the placements that they lead to, with what they are charged.

    Args:
        standing: Takes placements and bounds.
        messages: They are changed.
        rounds: Passes forward and backward at most.
        work: Up to which count of the messages' work it may go on.
        spread: Rounds after which shares are evened out.
        everywhere: Whether what the messages tell is a bound of all placements that are looked at.
    """
    starts: list[tuple[int, list[int]]] = []
    known = -1
    for turn in range(rounds):
        for forward in (True, False):
            send = messages.forward if forward else messages.backward
            left = messages.remove(send(standing.total, everything=not forward and turn % 2 == 1))
            if everywhere:
                standing.note_bound(messages.bound if left else standing.total)
            if not left or standing.is_within(FINE):
                return starts
            if turn % spread == 0:
                chosen = messages.placement(forward=not forward)
                starts.append((standing.consider(chosen), chosen))
        if messages.work > work:
            break
        if turn % spread == spread - 1:
            if everywhere and turn > 7 and standing.bound - known <= (standing.total - standing.bound) // 100:
                break
            known = standing.bound
            messages.even_out()
    return starts


__all__ = ["FINE", "SPREAD", "pass_on"]
