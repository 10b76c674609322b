"""Which outcomes of a job are right, given what has hit it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from chaos_run.case import HOMESITE, MOST_ATTEMPTS, Case, Frame
from chaos_run.faults import Loss
from chaos_run.plain import canonical

GIVEN_UP = re.compile(rf"lost in all of {MOST_ATTEMPTS} attempts|was lost {MOST_ATTEMPTS} times")
"""What a job says that was begun as often as that; what was lost each time is told, too."""


@dataclass
class Outcome:
    """How a job ended.

    Attributes:
        status: As text.
        items: (place, frame, value) of each result.
        errors: Its `OperationFailure`s.
        sites: The sites that took part.
        cancelled: Whether we cancelled it, or closed its session.
        iterated: (place, frame) of each result as an iteration gave them; None if there was none.
        once_calls: Lines that calls left which must not be made twice.
        losses: What may have hit it.
    """

    status: str
    items: list[tuple[str, Frame, Any]]
    errors: list[Any]
    sites: frozenset[str]
    cancelled: bool = False
    iterated: list[tuple[str, Frame]] | None = None
    once_calls: list[str] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)


def judge(case: Case, outcome: Outcome) -> list[str]:
    """Say what is wrong with an outcome; nothing if all is right."""
    relevant = {*outcome.sites, HOMESITE}
    losses = [loss for loss in outcome.losses if loss.site in relevant]
    wrong, missing = _results(case, outcome, hit=bool(losses) or outcome.cancelled)
    wrong += _twice(outcome)
    judges = {"finished": _finished, "failed": _failed, "cancelled": _cancelled}
    if outcome.status in judges:
        wrong += judges[outcome.status](case, outcome, losses, missing)
    else:
        wrong.append(f"its status is {outcome.status} at the end")
    return wrong


def _results(case: Case, outcome: Outcome, *, hit: bool) -> tuple[list[str], list[tuple[str, Frame]]]:
    """Compare results, whatever the status; gives what is wrong, and which are missing."""
    wrong = []
    expected = {(place, frame): value for place, items in case.results.items() for frame, value in items}
    found = Counter((place, frame) for place, frame, _ in outcome.items)
    wrong += [f"{count} results at {place!r} {frame}" for (place, frame), count in found.items() if count > 1]
    for place, frame, value in outcome.items:
        if (place, frame) not in expected:
            wrong.append(f"a result at {place!r} {frame}, where there is none: {value!r:.200}")
        elif canonical(value) != canonical(expected[place, frame]) and not (
            hit and place in case.loose and _is_part(value, expected[place, frame])
        ):
            wrong.append(f"{value!r:.200} at {place!r} {frame}, not {expected[place, frame]!r:.200}")
    return wrong, [key for key in expected if key not in found]


def _is_part(value: Any, whole: list[Any]) -> bool:
    rest = iter(whole)
    return isinstance(value, list) and all(any(item == other for other in rest) for item in value)


def _twice(outcome: Outcome) -> list[str]:
    wrong = [f"called {count} times: {line}" for line, count in Counter(outcome.once_calls).items() if count > 1]
    if outcome.iterated is not None:
        kept = Counter((place, frame) for place, frame, _ in outcome.items)
        if kept != Counter(outcome.iterated):
            differ = list((kept - Counter(outcome.iterated)) + (Counter(outcome.iterated) - kept))
            wrong.append(f"iterating gave other results than the job has: {differ[:5]}")
    return wrong


def _finished(case: Case, outcome: Outcome, losses: list[Loss], missing: list[tuple[str, Frame]]) -> list[str]:
    wrong = [f"finished without {len(missing)} results: {missing[:5]}"] if missing else []
    if case.deaths or any(failure.frames for failure in case.failures):
        wrong.append("finished, though an operation fails")
    if outcome.errors:
        wrong.append(f"finished with errors: {outcome.errors[:3]}")
    return wrong


def _cancelled(case: Case, outcome: Outcome, losses: list[Loss], missing: list[tuple[str, Frame]]) -> list[str]:
    return [] if outcome.cancelled else [f"cancelled, though nobody did that: {list(map(str, outcome.errors))[:3]}"]


def _failed(case: Case, outcome: Outcome, losses: list[Loss], missing: list[tuple[str, Frame]]) -> list[str]:
    if not outcome.errors:
        return ["failed without an error"]
    own, lost, strange = _sorted_errors(case, outcome.errors)
    if losses and case.once_sites:
        strange = [error for error in strange if error.kind != "CannotRepeat"]
    wrong = [f"an error that nothing explains: {error}" for error in strange[:3]]
    untrue = [error for error in lost if not _happened(error, losses)]
    wrong += [f"a loss that did not happen like that: {error}" for error in untrue[:3]]
    if not lost:
        expected = {(failure.node, frame) for failure in case.failures for frame in failure.frames}
        if missing:
            wrong.append(f"failed without {len(missing)} results that need nothing of what failed: {missing[:5]}")
        if own != expected:
            wrong.append(f"other errors than expected: {sorted(own ^ expected)[:5]}")
        if case.deaths:
            wrong.append(f"failed without naming {case.deaths[0].node}, which ended its site")
        return wrong
    return wrong + _with_loss(case, outcome, losses, lost, missing)


def _happened(error: Any, losses: list[Loss]) -> bool:
    if GIVEN_UP.search(error.message):
        return sum(loss.times for loss in losses) >= MOST_ATTEMPTS
    return any(loss.site == error.site and loss.reason in error.message for loss in losses)


def _sorted_errors(case: Case, errors: Iterable[Any]) -> tuple[set[tuple[str, Frame]], list[Any], list[Any]]:
    own, lost, strange = set(), [], []
    for error in errors:
        if error.kind == "SiteLost":
            lost.append(error)
        elif any(
            (failure.node, failure.site, failure.kind) == (error.node, error.site, error.kind)
            and failure.text in error.message
            and tuple(error.frame) in failure.frames
            for failure in case.failures
        ):
            own.add((error.node, tuple(error.frame)))
        else:
            strange.append(error)
    return own, lost, strange


def _with_loss(
    case: Case, outcome: Outcome, losses: list[Loss], lost: list[Any], missing: list[tuple[str, Frame]]
) -> list[str]:
    dead = {loss.site for loss in losses}
    others = [loss for loss in losses if not any(loss.site == d.site and loss.reason == d.reason for d in case.deaths)]
    wrong = [
        f"does not name {death.node}, which ended its site: {lost[0]}"
        for death in case.deaths
        if not others and not any(error.node == death.node and death.reason in error.message for error in lost)
    ]
    # A job of which a site dies before it has begun does nothing anywhere.
    begun = bool(outcome.items) or any(error.frame for error in outcome.errors)
    for place, sites in case.apart.items() if begun else ():
        gone = [key for key in missing if key[0] == place]
        if gone and not dead & {*sites, HOMESITE}:
            wrong.append(f"without {gone[:3]}, which need only {sorted(sites)}")
    few = sum(loss.times for loss in losses) < MOST_ATTEMPTS
    cannot = case.streams_once and any(loss.site not in case.once_sites for loss in losses)
    if not case.deaths and few and not cannot and all(_survivable(case, loss.site) for loss in losses):
        wrong.append(f"failed, though all of it may be run again: {lost[0]}")
    return wrong


def _survivable(case: Case, site: str) -> bool:
    """Whether a job may be begun again without that site: nothing that must not run twice was done there."""
    return not case.once_sites if site == HOMESITE else site not in case.once_sites
