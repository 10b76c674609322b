"""HomeProgress: what the sites said of how far a job is, at its homesite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from dfmesh.engine.messages import Progress, ReportProgress, SiteReport


class HomeProgress:
    """Collects the reports of one job for its client. Part of a HomeJob, and as pure."""

    def __init__(self, job: str, client: str, sites: list[str], homesite: str) -> None:
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
        self._latest.update({report.site: report for report in reports})
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
        told = {**self._latest, **{site: report for site, report in last.items() if report.operations}}
        found = [told.get(site, last.get(site)) for site in self._sites]
        if self._homesite not in self._sites:
            found.append(SiteReport(self._homesite, (), {}))  # It had nothing to do but to pass results on.
        return tuple(self._with_client(report) for report in found if report is not None)

    def _with_client(self, report: SiteReport) -> SiteReport:
        """Add what this site sent to the client as the homesite."""
        if report.site != self._homesite:
            return report
        return msgspec.structs.replace(report, bytes_sent={**report.bytes_sent, self._client: self._client_bytes})

    def count_sent(self, peer: str, size: int) -> None:
        """Note the size of a message that was sent for the job."""
        if peer == self._client:
            self._client_bytes += size
