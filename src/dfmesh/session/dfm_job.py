"""A job with DFM's interface: callbacks per place, stop and error tokens, `wait_until_finished`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dfmesh.api import STATUS_PLACE
from dfmesh.session.connection import Connection
from dfmesh.session.given_arguments import seconds
from dfmesh.session.job import Job
from dfmesh.session.job_inbox import JobInbox, JobStatus
from dfmesh.session.parameter_sets import ParameterFeed, ParameterSets, parameter_sets

DataCallback = Callable[[str, str, tuple[int, ...], str, Any], None]
"""DFM's callback: site, node, frame, place, value."""


@dataclass(frozen=True)
class StopToken:
    """Says that a job sends nothing more."""


@dataclass(frozen=True)
class ErrorToken:
    """Says that something failed.

    Attributes:
        message: What happened, in one line.
        traceback: Traceback at the site.
    """

    message: str
    traceback: str = ""


class DfmJob(Job):
    """A job whose results go to callbacks, on a thread of its own, one at a time and in the order they come."""

    def __init__(
        self,
        inbox: JobInbox,
        feed: ParameterFeed,
        connection: Connection,
        default_callback: DataCallback | None,
        place_callbacks: Mapping[str, DataCallback],
    ) -> None:
        super().__init__(inbox, feed, connection)
        self._default = default_callback
        self._by_place = dict(place_callbacks)
        self._delivered = threading.Event()
        if self._default is None and not self._by_place:
            self._delivered.set()
        else:
            threading.Thread(target=self._deliver, name=f"dfmesh-callbacks-{self.id}", daemon=True).start()

    def _deliver(self) -> None:
        try:
            for item in self.results(ordered=False):
                self._call(item.place, item.site, item.node, item.frame, item.value)
            for error in self.errors:
                token = ErrorToken(str(error), error.traceback)
                self._call(STATUS_PLACE, error.site, error.node, error.frame, token)
            self._call(STATUS_PLACE, self.compiled.homesite, "", (-1,), StopToken())
        finally:
            self._delivered.set()

    def _call(self, place: str, site: str, node: str, frame: tuple[int, ...], value: Any) -> None:
        callback: Callable[..., None] | None = self._by_place.get(place, self._default)
        if callback is not None:
            self._inbox.call(callback, site, node, frame, place, value)

    @property
    def job_id(self) -> str:
        """Id of the job."""
        return self.id

    def get_status(self) -> JobStatus:
        """How the job stands."""
        return self.status

    def wait_until_finished(self, timeout: float | None = None) -> bool:
        """Wait until the job is over and all callbacks have returned; False after the time-out."""
        limit = seconds(timeout)
        began = time.monotonic()
        over = self.wait(limit)
        left = None if limit is None else max(0.0, began + limit - time.monotonic())
        return over and self._delivered.wait(left)

    def send_input_params(self, input_params: ParameterSets) -> None:
        """Run a further parameter set, or several."""
        for given in parameter_sets(input_params):
            self.send(given)

    def send_stop_frame(self) -> None:
        """Say that there will be no more parameter sets."""
        self.close()


__all__ = ["STATUS_PLACE", "DataCallback", "DfmJob", "ErrorToken", "StopToken"]
