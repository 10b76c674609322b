"""Discovery at a site: it asks its own advisors, and as homesite the other sites on behalf of clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from dfmesh.engine.adapters import SiteAdapters
from dfmesh.engine.carrier import Carrier
from dfmesh.engine.discovery.asking import Asking, Desk
from dfmesh.engine.discovery.paths import SiteAdvice
from dfmesh.engine.message_parts import Question
from dfmesh.engine.messages import AdviceGiven, AnyMessage, AskSites, Discover
from dfmesh.errors import ValueDecodingError, ValueEncodingError

GRACE = 2.0
"""Seconds beyond the time of a discovery for which the homesite passes answers on."""


class SiteDiscovery:
    """The part of a site that gives advice."""

    def __init__(self, site: str, homesite: str, adapters: SiteAdapters, carrier: Carrier) -> None:
        """Prepare; nothing is imported or started. To be called on the site's event loop.

        Args:
            site: Name of the site.
            homesite: Whose questions it answers.
            adapters: Its adapters.
            carrier: Its end of the carrier.
        """
        self._config = adapters.config
        self._site = site
        self._homesite = homesite
        self._carrier = carrier
        self._loop = asyncio.get_running_loop()
        self._desk = Desk(adapters, self._loop)
        self._tasks: set[asyncio.Task[None]] = set()
        self._inquiries: dict[str, _Inquiry] = {}

    def receive(self, peer: str, message: AnyMessage, *, is_client: bool) -> None:
        """Take in a message of discovery; one that is out of place is dropped."""
        if isinstance(message, Discover):
            if is_client and message.job and message.job not in self._inquiries:
                self._open(peer, message)
        elif isinstance(message, AskSites):
            if peer == self._homesite:
                self._ask(message)
        elif isinstance(message, AdviceGiven) and not is_client:
            self._pass_on(peer, message)

    def client_lost(self, peer: str) -> None:
        """A client has gone: nobody wants its answers any more."""
        for job in [job for job, inquiry in self._inquiries.items() if inquiry.client == peer]:
            self._forget(job)

    def site_lost(self, site: str, reason: str) -> None:
        """A site died: say so in place of the answers that it still owes."""
        for job, inquiry in list(self._inquiries.items()):
            for number in inquiry.owed(site):
                self._pass_on(site, self._failed(job, site, number, f"the site was lost: {reason}"))

    def close(self) -> None:
        """Give up."""
        for task in self._tasks:
            task.cancel()
        for job in list(self._inquiries):
            self._forget(job)
        self._desk.close()

    # As a site that is asked

    def _ask(self, message: AskSites) -> None:
        deadline = self._loop.time() + message.seconds
        for question in message.questions:
            task = self._loop.create_task(self._answer(message.job, question, deadline))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, job: str, question: Question, deadline: float) -> None:
        try:
            given = dict(self._carrier.unpack(question.arguments))
        except (ValueDecodingError, TypeError, ValueError) as error:
            advice = SiteAdvice(reason=f"the arguments cannot be read: {error}", failed=True)
        else:
            asking = Asking(self._desk, question.operation, question.provider, deadline)
            advice = await asking.advice(self._config, given, question.asked, question.later)
        self._carrier.send(self._homesite, self._message(job, self._site, question.number, advice))

    def _message(self, job: str, site: str, number: int, advice: SiteAdvice) -> AdviceGiven:
        try:
            payload = self._carrier.pack(advice.to_data())
        except ValueEncodingError as error:
            return self._failed(job, site, number, f"its advice cannot be sent: {error}")
        return AdviceGiven(job, site, number, payload)

    def _failed(self, job: str, site: str, number: int, reason: str) -> AdviceGiven:
        payload = self._carrier.pack(SiteAdvice(reason=reason, failed=True).to_data())
        return AdviceGiven(job, site, number, payload)

    # As the homesite

    def _open(self, client: str, message: Discover) -> None:
        owed = {(site, question.number) for question in message.questions for site in question.sites}
        if not owed:
            return
        timer = self._loop.call_later(message.seconds + GRACE, self._forget, message.job)
        self._inquiries[message.job] = _Inquiry(client, owed, timer.cancel)
        for site in self._config.sites:
            questions = tuple(question for question in message.questions if site in question.sites)
            if questions:
                self._carrier.send(site, AskSites(message.job, questions, message.seconds))
        for site, number in sorted(owed):
            if site not in self._config.sites:
                self._pass_on(site, self._failed(message.job, site, number, "the homesite knows no such site"))

    def _pass_on(self, site: str, message: AdviceGiven) -> None:
        inquiry = self._inquiries.get(message.job)
        if inquiry is None or (site, message.number) not in inquiry.outstanding:
            return
        inquiry.outstanding.discard((site, message.number))
        # The name of the site is what the carrier says, not what the message says.
        self._carrier.send(inquiry.client, AdviceGiven(message.job, site, message.number, message.payload))
        if not inquiry.outstanding:
            self._forget(message.job)

    def _forget(self, job: str) -> None:
        inquiry = self._inquiries.pop(job, None)
        if inquiry is not None:
            inquiry.stop_timer()


class _Inquiry:
    """What a client wants to know, and which answers are still to come."""

    def __init__(self, client: str, outstanding: set[tuple[str, int]], stop_timer: Callable[[], Any]) -> None:
        self.client = client
        self.outstanding = outstanding
        self.stop_timer = stop_timer

    def owed(self, site: str) -> list[int]:
        """Numbers of the questions that a site has not answered."""
        return sorted(number for name, number in self.outstanding if name == site)
