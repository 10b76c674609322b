"""Parameter sets: how users write them, and how they get to a job."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from dfmesh.engine.messages import AddParameters, CancelJob, CloseParameters
from dfmesh.errors import SessionError
from dfmesh.session.connection import Connection
from dfmesh.session.job_inbox import JobInbox

ParameterSets = Mapping[str, Any] | Iterable[Mapping[str, Any]] | None
"""One parameter set, several, or none."""

MAX_UNFINISHED_SETS = 1024
"""Parameter sets of a job that run, or wait at the homesite, at a time; further ones wait at the client."""

_SPELLINGS = "give one set as {'name': value, ...} or name=value, several as a list of such dictionaries"


def parameter_sets(
    given: ParameterSets | str | bytes, more: Mapping[str, Any] | None = None, *, close: bool = True
) -> Iterable[Mapping[str, Any]]:
    """Read what a user gave as parameters.

    Args:
        given: A parameter set, or several. None is one empty set; if more will follow, it is none at all.
        more: Parameters given by keyword.
        close: Whether these are all.

    Raises:
        TypeError: it is neither, or several sets and keywords.
    """
    if isinstance(given, Mapping) or more:
        return [one_set(given, more or {})]
    if given is None:
        return [{}] if close else []
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise _not_a_set(given)
    if isinstance(given, Sequence):
        for entry in given:
            one_set(entry)
    return given


def one_set(given: Any, more: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Read one parameter set.

    Args:
        given: What was given as a mapping; None for nothing.
        more: What was given by keyword.

    Raises:
        TypeError: it is no mapping, its keys are no names, or something is given twice.
    """
    if given is not None and not isinstance(given, Mapping):
        if more:
            raise TypeError(
                f"parameters by keyword ({', '.join(more)}) go with one set, not with several: {_SPELLINGS}"
            )
        raise _not_a_set(given)
    names = [name for name in given or {} if not isinstance(name, str)]
    if names:
        raise TypeError(f"names of parameters are text, not {names[0]!r}: {_SPELLINGS}")
    twice = [name for name in more or {} if name in (given or {})]
    if twice:
        raise TypeError(f"parameter {twice[0]!r} is given twice, in the dictionary and by keyword")
    return {**(given or {}), **(more or {})}


def _not_a_set(given: Any) -> TypeError:
    return TypeError(f"{type(given).__name__} is no parameter set: {_SPELLINGS}")


class JobFeed(Protocol):
    """Where the parameter sets of a job go.

    Attributes:
        error: What the user's iterator of sets raised; None if nothing.
    """

    error: BaseException | None

    @property
    def count(self) -> int:
        """Sets that have been sent."""
        ...

    def send(self, given: Mapping[str, Any]) -> int:
        """Send a parameter set, and give its number."""
        ...

    def close(self) -> None:
        """Say that there will be no more."""
        ...

    def leave(self) -> None:
        """Send no more, since the job goes on without us."""
        ...


class ParameterFeed:
    """Sends the parameter sets of one job, no more at a time than the homesite shall hold. For any thread.

    Attributes:
        error: What the user's iterator of sets raised; None if nothing.
        count: Sets that have been sent.
    """

    def __init__(self, inbox: JobInbox, connection: Connection) -> None:
        """Begin with none.

        Args:
            inbox: What has come of the job.
            connection: With the homesite.
        """
        self.error: BaseException | None = None
        self.count = 0
        self._job = inbox.job
        self._inbox = inbox
        self._connection = connection
        self._closed = False
        self._lock = threading.Lock()

    def send(self, given: Mapping[str, Any]) -> int:
        """Send a parameter set, as soon as there is room for it.

        Returns:
            Its number.

        Raises:
            PipelineError: it does not fit the pipeline.
            SessionError: the job takes no more.
        """
        return self._send(given, MAX_UNFINISHED_SETS)

    def _send(self, given: Mapping[str, Any], most: int | None) -> int:
        filled = self._inbox.plan.compiled.parameter_set(given)
        self._connection.check_open()
        payloads = {name: self._connection.pack(value) for name, value in filled.items()}
        if most is not None:
            self._inbox.wait_for_frames(self.count - most + 1)
        with self._lock:
            if self._closed or self._inbox.over:
                raise SessionError(f"job {self._job} takes no more parameter sets; submit it with close=False")
            number = self.count
            self.count += 1
            self._connection.post(AddParameters(self._job, (number,), payloads))
        return number

    def send_all(self, sets: Iterable[Mapping[str, Any]], *, close: bool) -> None:
        """Send parameter sets as there is room for them; on a thread of its own if they are many.

        Args:
            sets: The sets; an iterator is read as the job gets on.
            close: Whether these are all.
        """
        hosted = self._connection.hosting is not None  # A host keeps any number of them, on disk.
        if isinstance(sets, Sequence) and (hosted or len(sets) < MAX_UNFINISHED_SETS):
            for given in sets:
                self._send(given, None)
            if close:
                self.close()
            return
        name = f"dfmesh-parameters-{self._job}"
        threading.Thread(target=self._feed, args=(sets, close), name=name, daemon=True).start()

    def _feed(self, sets: Iterable[Mapping[str, Any]], close: bool) -> None:
        try:
            for given in sets:
                if self._inbox.over:
                    return
                self.send(one_set(given))
            if close:
                self.close()
        except BaseException as error:
            if self._closed or self._inbox.over or self._connection.state == "closed":
                return  # The job or the session has ended meanwhile, which result() tells.
            self.error = error
            self._connection.post(CancelJob(self._job, "its parameter sets cannot be read"))

    def close(self) -> None:
        """Say that there will be no more."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._connection.post(CloseParameters(self._job))

    def leave(self) -> None:
        """Send no more: the job ends when those sent are done."""
        self.close()


__all__ = ["MAX_UNFINISHED_SETS", "JobFeed", "ParameterFeed", "ParameterSets", "one_set", "parameter_sets"]
