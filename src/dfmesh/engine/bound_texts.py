"""What is said of values that rules of residency bind: errors and printed lines, which may show them.

Such a text stays in the log of the site. What is told instead names the exception's class, the statement and the
place, all of which are known without the value. To other sites it never goes; to the client only where each rule names
the site that it is attached to.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import msgspec

from dfmesh.engine.message_parts import Failure, JobLine
from dfmesh.netir import BoundValues, NetIR, Sites, clients_at

_log = logging.getLogger("dfmesh.engine")

_CALLED = "it was called "
"""How the origin of a failure begins that says how often an operation was called."""


class BoundTexts:
    """What may be told of the statements of one net that make, hand on or read bound values."""

    def __init__(self, net: NetIR, bound: BoundValues) -> None:
        """Find them.

        Args:
            net: The net.
            bound: What rules of residency bind in it.
        """
        self._site = net.site
        self._clients = clients_at(net.homesite)
        # By transition: where its text stays and why, and whether the client may have it.
        self._kept: dict[int, tuple[str, bool]] = {}
        # By statement, of those whose text the client may not have.
        self._silent: dict[str, str] = {}
        for transition in net.transitions:
            rules = bound.touched.get(transition.id)
            if rules:
                why = self._reason(rules, bound)
                open_to_client = all(self._clients in sites for sites in rules)
                self._kept[transition.id] = why, open_to_client
                if not open_to_client:
                    self._silent[transition.node] = why

    def _reason(self, rules: frozenset[Sites], bound: BoundValues) -> str:
        named = sorted({bound.rules.get(sites, "a rule of residency of another site") for sites in rules})
        return f"at site {self._site!r}, by {' and '.join(named)}; see the log of that site"

    def told(self, transition: int, failure: Failure) -> tuple[Failure, Failure]:
        """Give what is said of a failure.

        Args:
            transition: Id of the transition that failed.
            failure: How, in full.

        Returns:
            What the client is told, and what goes on as a token; the same object where nothing is kept back.
        """
        kept = self._kept.get(transition)
        if kept is None:
            return failure, failure
        why, open_to_client = kept
        calls = failure.caused_by.partition(";")[0] if failure.caused_by.startswith(_CALLED) else ""
        shown = msgspec.structs.replace(failure, message=f"its text stays {why}", traceback="", caused_by=calls)
        if shown == failure:
            return failure, failure
        return (failure if open_to_client else shown), shown

    def lines(self, lines: Iterable[JobLine], noted: set[str]) -> list[JobLine]:
        """Give what the client is told of what calls print and log.

        Args:
            lines: What they do.
            noted: Statements of which it has been told that their lines stay here; others are added.
        """
        found = []
        for line in lines:
            why = self._silent.get(line.node)
            if why is not None:
                if line.node not in noted:
                    noted.add(line.node)
                    text = f"what it prints and logs stays {why}"
                    found.append(JobLine(line.time, line.operation, line.node, (), "INFO", "dfmesh", text))
            elif line.node or not self._silent:  # What a call says when it is over may be of any.
                found.append(line)
        return found

    def of_job(self, error: Exception) -> str:
        """Give what is told of an error that ends the job here, and may show any value."""
        if not self._silent or getattr(error, "shows_no_value", False):
            return f"{type(error).__name__}: {error}"
        return f"{type(error).__name__}: its text stays {next(iter(self._silent.values()))}"


def bound_texts(net: NetIR, bound: BoundValues) -> BoundTexts | None:
    """Give what may be told of a net; None where nothing is kept back."""
    return BoundTexts(net, bound) if bound.touched else None


def keep_text(failure: Failure, *, last: bool = False) -> None:
    """Write a failure to the log of the site that is not told, or not to all.

    Args:
        failure: It, in full.
        last: Whether further ones of the job will not be written, which is said with it.
    """
    where = ", ".join(filter(None, (failure.node, failure.location, f"frame {failure.frame}" if failure.frame else "")))
    trace = f"\n{failure.traceback.rstrip()}" if failure.traceback else ""
    if last:
        trace += "\n(further errors of the job are not written here)"
    _log.warning(
        "site %s: %s (%s) failed, which is kept here by a rule of residency: %s: %s%s",
        failure.site,
        failure.operation,
        where,
        failure.kind,
        failure.message,
        trace,
    )


__all__ = ["BoundTexts", "bound_texts", "keep_text"]
