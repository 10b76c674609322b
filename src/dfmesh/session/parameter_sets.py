"""Parameter sets: how users write them, and how they get to a job."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dfmesh import values
from dfmesh.api import user_location
from dfmesh.compiler.parameters import parameters_error
from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AddParameters, CloseParameters, SubmitJob
from dfmesh.errors import OperationFailure, PipelineError, SessionError, SourceLocation
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
    if type(given) is dict or isinstance(given, Mapping) or more:
        return [one_set(given, more)]
    if given is None:
        return [{}] if close else []
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise _not_a_set(given)
    if isinstance(given, Sequence):
        for number, entry in enumerate(given):
            numbered_set(number, entry)
    return given


def numbered_set(number: int, given: Any) -> Mapping[str, Any]:
    """Read one of several parameter sets.

    Raises:
        TypeError: as of `one_set`, with its number.
    """
    try:
        if given is None:
            raise _not_a_set(given)
        return one_set(given)
    except TypeError as error:
        raise TypeError(f"parameter set {number}: {error}") from None


def one_set(given: Any, more: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Read one parameter set.

    Args:
        given: What was given as a mapping; None for nothing.
        more: What was given by keyword.

    Raises:
        TypeError: it is no mapping, its keys are no names, or something is given twice.
    """
    if given is not None and type(given) is not dict and not isinstance(given, Mapping):
        if more:
            raise TypeError(
                f"parameters by keyword ({', '.join(more)}) go with one set, not with several: {_SPELLINGS}"
            )
        raise _not_a_set(given)
    names = [name for name in given or {} if not isinstance(name, str)]
    if names:
        raise TypeError(f"names of parameters are text, not {names[0]!r}: {_SPELLINGS}")
    if not more:
        return dict(given or {})
    twice = [name for name in more if name in (given or {})]
    if twice:
        raise TypeError(f"parameter {twice[0]!r} is given twice, in the dictionary and by keyword")
    return {**(given or {}), **more}


def _not_a_set(given: Any) -> TypeError:
    return TypeError(f"{type(given).__name__} is no parameter set: {_SPELLINGS}")


def iterator_failure(error: BaseException, count: int) -> OperationFailure:
    """Describe what an iterator of parameter sets raised.

    Args:
        error: What it raised, or what was wrong with a set that it gave.
        count: Sets that it had given before.
    """
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return OperationFailure(
        site="",
        operation="parameters",
        node="",
        frame=(count,),
        location="".join(f"{line.filename}:{line.lineno}" for line in last),
        kind=type(error).__name__,
        message=str(error),
        traceback="".join(traceback.format_exception(error)),
    )


def _taken_over(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copy what an iterator could change before it gives the next set."""
    taken = {name: values.take_over([value]) for name, value in given.items()}
    return {name: item.value if isinstance(item, values.Private) else item for name, item in taken.items()}


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
        self._location: SourceLocation | None = None
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
        payloads = self._packed(self._inbox.plan.compiled.parameter_set(given))
        self._connection.check_open()
        self._inbox.wait_for_frames(self.count - MAX_UNFINISHED_SETS + 1)
        with self._lock:
            if self._closed or self._inbox.over:
                raise SessionError(f"job {self._job} takes no more parameter sets; submit it with close=False")
            number = self.count
            self.count += 1
            self._connection.post(AddParameters(self._job, (number,), payloads))
        return number

    def _packed(self, filled: Mapping[str, Any]) -> dict[str, Payload]:
        return {name: self._connection.pack(value) for name, value in filled.items()}

    def checked(self, sets: Iterable[Mapping[str, Any]], *, close: bool) -> list[AddParameters] | None:
        """Check the parameter sets that are all there, before anything is sent.

        Args:
            sets: The sets; an iterator is read as the job gets on, and checked then.
            close: Whether these are all.

        Returns:
            What sends them, if they may all be sent at once.

        Raises:
            PipelineError: one does not fit the pipeline.
        """
        if not isinstance(sets, Sequence):
            return None
        fitting = self._inbox.plan.compiled.parameter_sets(sets, location=user_location)
        # A host keeps any number of them, on disk.
        if self._connection.hosting is None and len(sets) >= MAX_UNFINISHED_SETS:
            for _ in fitting:
                pass
            return None
        # A host journals what it is told, the end as well.
        last = len(sets) if close and self._connection.hosting is None else 0
        return [
            AddParameters(self._job, (number - 1,), self._packed(filled), last=number == last)
            for number, filled in enumerate(fitting, 1)
        ]

    def begin(
        self, submit: SubmitJob, sets: Iterable[Mapping[str, Any]], adds: list[AddParameters] | None, *, close: bool
    ) -> None:
        """Submit the job and send parameter sets as there is room for them; on a thread of its own if they are many.

        Args:
            submit: What submits the job.
            sets: The sets.
            adds: What `checked` gave for them.
            close: Whether these are all.
        """
        if adds is not None:
            with self._lock:
                self.count = len(adds)
                self._closed = close
                told = bool(adds) and adds[-1].last
                if told and len(adds) == 1:
                    self._connection.submit(msgspec.structs.replace(submit, opening=adds[0]))
                else:  # All in one go, so that the homesite is woken once.
                    self._connection.post(submit, *adds, *([CloseParameters(self._job)] if close and not told else ()))
            return
        self._location = user_location()
        self._connection.post(submit)
        name = f"dfmesh-parameters-{self._job}"
        threading.Thread(target=self._feed, args=(sets, close), name=name, daemon=True).start()

    def _feed(self, sets: Iterable[Mapping[str, Any]], close: bool) -> None:
        try:
            for given in sets:
                if self._inbox.over:
                    return
                self._send_numbered(given)
            if close:
                self.close()
        except BaseException as error:
            if self._closed or self._inbox.over or self._connection.state == "closed":
                return  # The job or the session has ended meanwhile, which result() tells.
            self.error = error
            self.close()  # Those before it are good, and are done.

    def _send_numbered(self, given: Any) -> None:
        try:
            self.send(_taken_over(numbered_set(self.count, given)))
        except PipelineError as error:
            raise parameters_error([(self.count, error)], None, self._location) from None

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


__all__ = [
    "MAX_UNFINISHED_SETS",
    "JobFeed",
    "ParameterFeed",
    "ParameterSets",
    "iterator_failure",
    "one_set",
    "parameter_sets",
]
