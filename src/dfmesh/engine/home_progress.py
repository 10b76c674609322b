"""HomeProgress: what the sites said of how far a job is, at its homesite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from dfmesh.engine.message_parts import SiteReport
from dfmesh.engine.messages import Progress, ReportProgress


class HomeProgress:
    """Collects the reports of one job for its client. Part of a HomeJob, and as pure."""

    def __init__(self, job: str, client: str, sites: tuple[str, ...], homesite: str) -> None:
        """Begin with no reports.

        Args:
            job: Id of the job.
            client: Who asks.
            sites: Sites that take part, in the order of the reports.
            homesite: The homesite; it need not take part.
        """
        self._job = job
        self._client = client
        self._sites = sites
        self._homesite = homesite
        self._client_bytes = 0
        self._latest: dict[str, SiteReport] = {}
        self._awaited: set[str] = set()

    def ask(self, attempt: str, sites: Iterable[str]) -> list[tuple[str, ReportProgress | Progress]]:
        """The client asks: ask these sites, or answer at once if there is none to ask."""
        if self._awaited:
            return []  # The answer that is under way is for this request too.
        self._awaited = set(sites)
        return [(site, ReportProgress(attempt)) for site in sorted(self._awaited)] or [self._answer()]

    def told(self, site: str, reports: tuple[SiteReport, ...]) -> list[tuple[str, Progress]]:
        """Take in what a site says, or, without a report, that it will not say anything; answer if it was the last."""
        for report in reports:
            self._latest[report.site] = report
        if site not in self._awaited:
            return []
        self._awaited.discard(site)
        return [] if self._awaited else [self._answer()]

    def answer_now(self) -> list[tuple[str, Progress]]:
        """Answer who waits with what is known."""
        if not self._awaited:
            return []
        self._awaited.clear()
        return [self._answer()]

    def _answer(self) -> tuple[str, Progress]:
        return (self._client, Progress(self._job, self.reports({})))

    def reports(self, last: Mapping[str, SiteReport]) -> tuple[SiteReport, ...]:
        """Give the latest report of each site.

        Args:
            last: Reports that sites gave at their end; one without operations says nothing.
        """
        found = []
        to_client = {self._client: self._client_bytes}  # What the homesite sent as such.
        for site in self._sites:
            report = last.get(site)
            if report is None or not report.operations:
                report = self._latest.get(site, report)
            if report is None:
                continue
            if report.site == self._homesite:
                report = msgspec.structs.replace(report, bytes_sent={**report.bytes_sent, **to_client})
            found.append(report)
        if self._homesite not in self._sites:
            found.append(SiteReport(self._homesite, (), to_client))  # It had nothing to do but to pass results on.
        return tuple(found)

    def count_sent(self, size: int) -> None:
        """Note the size of messages that were sent to the client for the job."""
        self._client_bytes += size
