"""Asking the sites which of them can run the operations of a pipeline, and with which values."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dfmesh.api import Advise, Operation, Pipeline, Reduce, find_references
from dfmesh.compiler.candidates import allowed_sites, exposed, operation_name
from dfmesh.compiler.validate import validate
from dfmesh.config import FederationConfig
from dfmesh.engine.discovery import GRACE, SiteAdvice
from dfmesh.engine.message_parts import Payload, Question
from dfmesh.engine.messages import AdviceGiven, AnyMessage, Discover
from dfmesh.errors import DfmeshError
from dfmesh.session.discovery_result import DiscoveryResult, NodeDiscovery

_CLIENT_GRACE = GRACE + 1.0


@dataclass
class _Asked:
    """One operation of the pipeline: what is known without asking, and what is to be asked."""

    statement: Operation | Reduce
    operation: str
    asked: tuple[str, ...]
    sites: tuple[str, ...]
    answers: dict[str, SiteAdvice] = field(default_factory=dict)


class Inquiry:
    """A discovery that is going on.

    Attributes:
        id: Its id, which messages name as their job.
        message: What is sent to the homesite; None if there is nothing to ask.
    """

    def __init__(
        self, pipeline: Pipeline, federation: FederationConfig, pack: Callable[[Any], Payload], seconds: float
    ) -> None:
        """Work out what to ask.

        Args:
            pipeline: What the user wrote.
            federation: The federation as the client knows it.
            pack: Makes values ready to be sent.
            seconds: Time that the sites have.

        Raises:
            PipelineError: the pipeline has faults.
        """
        validate(pipeline, federation, discovery=True)
        self.id = secrets.token_hex(8)
        self._federation = federation
        self._seconds = seconds
        self._asked = [
            _what_to_ask(statement, federation)
            for statement in pipeline.statements()
            if isinstance(statement, Operation | Reduce)
        ]
        self._outstanding = {(site, number) for number, asked in enumerate(self._asked) for site in asked.sites}
        questions = tuple(_question(number, asked, pack) for number, asked in enumerate(self._asked) if asked.sites)
        self.message = Discover(self.id, questions, seconds) if questions else None
        self._arrived: list[AdviceGiven] = []
        self._over = threading.Event()
        self._why = f"did not answer within {seconds:g} s"
        if not questions:
            self._over.set()

    def receive(self, message: AnyMessage) -> None:
        """Take in an answer; on the client's event loop."""
        if isinstance(message, AdviceGiven) and (message.site, message.number) in self._outstanding:
            self._outstanding.discard((message.site, message.number))
            self._arrived.append(message)
            if not self._outstanding:
                self._over.set()

    def give_up(self, reason: str) -> None:
        """Do not wait any longer: no more answers will come."""
        self._why = reason
        self._over.set()

    def result(self, unpack: Callable[[Payload], Any]) -> DiscoveryResult:
        """Wait for the answers, at most as long as was said, and merge what came.

        Args:
            unpack: Gives back values that have come.
        """
        started = time.monotonic()
        self._over.wait(self._seconds + _CLIENT_GRACE)
        for message in list(self._arrived):
            asked = self._asked[message.number]
            asked.answers[message.site] = _read(message.payload, unpack)
        for asked in self._asked:
            for site in asked.sites:
                asked.answers.setdefault(site, SiteAdvice(reason=self._why, failed=True))
        sites = list(self._federation.sites)
        nodes = {asked.statement.node_id: _merged(asked, sites) for asked in self._asked}
        return DiscoveryResult(nodes, time.monotonic() - started)


def _what_to_ask(statement: Operation | Reduce, federation: FederationConfig) -> _Asked:
    operation = operation_name(statement.operation, federation)
    answers: dict[str, SiteAdvice] = {}
    for site in federation.sites:
        reason = _objection(statement, operation, federation, site)
        if reason:
            answers[site] = SiteAdvice(reason=reason)
    asked = tuple(name for name, value in statement.arguments.items() if isinstance(value, Advise))
    sites = tuple(site for site in federation.sites if site not in answers)
    return _Asked(statement, operation, asked, sites, answers)


def _objection(statement: Operation | Reduce, operation: str, federation: FederationConfig, site: str) -> str:
    """Why a site cannot run an operation, as far as the client can tell."""
    provider = statement.provider
    if site not in federation.offers(operation, provider):
        by_provider = f" by provider {provider!r}" if provider else ""
        return f"does not offer {operation}{by_provider}{_other_interfaces(operation, federation, site)}"
    allowed = allowed_sites(statement)
    if allowed is not None and site not in allowed:
        return f"the pipeline says site={statement.site!r}"
    own = {parameter.name for parameter in federation.operations[operation].parameters}
    extra = sorted(set(statement.arguments) - own - exposed(statement, federation, site))
    return f"its adapter takes no parameter {', '.join(map(repr, extra))}" if extra else ""


def _other_interfaces(operation: str, federation: FederationConfig, site: str) -> str:
    found = federation.sites[site]
    names = [f"provider={name!r}" for name, provider in found.providers.items() if operation in provider.interface]
    if operation in found.interface:
        names.append("no provider")
    return f" (but with {' or '.join(names)})" if names else ""


def _question(number: int, asked: _Asked, pack: Callable[[Any], Payload]) -> Question:
    statement = asked.statement
    later = [name for name, value in statement.arguments.items() if next(find_references(value), None) is not None]
    if isinstance(statement, Reduce):
        later += [parameter.name for parameter in (statement.parameters or ())[:2]]
    open_now = {*later, *asked.asked}
    given = {name: value for name, value in statement.arguments.items() if name not in open_now}
    return Question(
        number, asked.sites, asked.operation, statement.provider, pack(given), asked.asked, tuple(dict.fromkeys(later))
    )


def _read(payload: Payload, unpack: Callable[[Payload], Any]) -> SiteAdvice:
    """Read what a site says, which may be anything."""
    try:
        return SiteAdvice.from_data(unpack(payload))
    except (DfmeshError, ValueError) as error:
        return SiteAdvice(reason=f"its answer cannot be read: {error}", failed=True)


def _merged(asked: _Asked, sites: list[str]) -> NodeDiscovery:
    statement = asked.statement
    answers: Mapping[str, SiteAdvice] = {site: asked.answers[site] for site in sites}
    return NodeDiscovery(statement.node_id, asked.operation, statement.location, asked.asked, answers)
