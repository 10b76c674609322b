"""Asking the advisors of one adapter, field by field and branch by branch."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from math import prod
from typing import Any

from dfmesh import values
from dfmesh.api import Advise, Parameter
from dfmesh.config import Constant, FederationConfig, FromParameter
from dfmesh.engine.adapters import Adapter, SiteAdapters
from dfmesh.engine.adapters.errors import AdapterLoadError, raised
from dfmesh.engine.adapters.hidden_secrets import HIDDEN_SECRETS
from dfmesh.engine.discovery.advice import AdvisedError, AdvisedOneOf, AdvisedValue, Okay
from dfmesh.engine.discovery.advisors import Advisor, find_advisors
from dfmesh.engine.discovery.context import AdviceContext
from dfmesh.engine.discovery.paths import Path, SiteAdvice, Step, ended, split
from dfmesh.engine.worker_threads import WorkerThreads
from dfmesh.errors import ValueEncodingError

MAX_PATHS = 1000
"""Branches of one operation at one site that are told apart; further ones are not asked about."""

MAX_AT_ONCE = 4
"""Questions of one operation that are asked at a time, so that advisors that hang hold few threads."""

MAX_STUCK = 4
"""Questions that one advisor may leave unanswered before it is not asked any more until it answers them."""

_GRACE = 0.5
"""Seconds that a coroutine gets beyond the deadline: who waits gives up first, and says so better."""

_log = logging.getLogger("dfmesh.engine")

_Answered = tuple[Path, tuple[Step | None, ...]]
"""A path, and the steps it may go on with; None for going on as it is."""


class StuckError(Exception):
    """An advisor, or the import of an adapter, did not end in time."""


class Desk:
    """Where the advisors of a site are asked: on threads of their own, which jobs never wait for."""

    def __init__(self, adapters: SiteAdapters, loop: asyncio.AbstractEventLoop) -> None:
        self.adapters = adapters
        self._loop = loop
        self._threads = WorkerThreads(loop)
        self._stuck: Counter[str] = Counter()

    def close(self) -> None:
        """Let the threads go."""
        self._threads.close()

    def now(self) -> float:
        """The loop's time in seconds."""
        return self._loop.time()

    async def run(self, name: str, function: Callable[[], Any], deadline: float) -> tuple[Any, BaseException | None]:
        """Run a function on a thread.

        Args:
            name: What runs, to tell what is stuck.
            function: The function.
            deadline: When to give up waiting, on the loop's clock.

        Returns:
            What it returns, or what it raises: StuckError if it does not end, now or several times before.
        """
        if self.now() >= deadline:
            return None, StuckError("was not asked any more, since the time was up")
        if self._stuck[name] >= MAX_STUCK:
            return None, StuckError(f"is not asked, since it has not answered {MAX_STUCK} earlier questions yet")
        future: asyncio.Future[tuple[Any, BaseException | None]] = self._loop.create_future()
        started = self.now()
        self._threads.submit(function, partial(self._ended, name, future))
        done, _ = await asyncio.wait([future], timeout=max(0.0, deadline - started))
        if not done:
            future.cancel()
            self._stuck[name] += 1
            return None, StuckError(f"did not answer within {deadline - started:.1f} s")
        return future.result()

    def _ended(
        self, name: str, future: asyncio.Future[Any], value: Any, error: BaseException | None, _seconds: float
    ) -> None:
        if future.cancelled():
            self._stuck[name] -= 1
        elif not future.done():
            future.set_result((value, error))


@dataclass(frozen=True)
class Fields:
    """The fields of one operation at one site.

    Attributes:
        names: The adapter's keywords to the operation's parameters.
        known: Parameters, and keywords fixed by the federation file, with their values.
        asked: Parameters for which the user asks.
        schemas: JSON Schema per parameter.
    """

    names: dict[str, str]
    known: dict[str, Any]
    asked: tuple[str, ...]
    schemas: dict[str, dict[str, Any]]

    @classmethod
    def of(
        cls,
        adapter: Adapter,
        parameters: tuple[Parameter, ...],
        given: Mapping[str, Any],
        asked: tuple[str, ...],
        later: tuple[str, ...],
    ) -> Fields:
        """Work them out.

        Args:
            adapter: The adapter.
            parameters: Parameters of the operation.
            given: What the user gave, as far as it is known before the run.
            asked: Parameters that are `Advise()`.
            later: Parameters whose values come at run time.
        """
        names: dict[str, str] = {}
        known: dict[str, Any] = {}
        for keyword, source in (adapter.spec.arguments or {}).items():
            if isinstance(source, FromParameter):
                names[keyword] = source.parameter
            else:
                names[keyword] = source.exposed_as or keyword
                if isinstance(source, Constant):
                    known[names[keyword]] = source.value
        everything = (*parameters, *adapter.spec.exposed)
        # None is what a parameter is that nobody gave: no value that an advisor could object to.
        known |= {parameter.name: parameter.default for parameter in parameters if parameter.default is not None}
        known |= given
        known = {name: value for name, value in known.items() if name not in asked and name not in later}
        return cls(names, known, asked, {parameter.name: parameter.schema for parameter in everything})


class Asking:
    """One operation at one site: asks its advisors until a deadline."""

    def __init__(self, desk: Desk, operation: str, provider: str | None, deadline: float) -> None:
        self._desk = desk
        self._operation = operation
        self._provider = provider
        self._deadline = deadline
        self._gate = asyncio.Semaphore(MAX_AT_ONCE)
        self._left = MAX_PATHS
        self._field_deadline = deadline
        self._fields = Fields({}, {}, (), {})

    async def advice(
        self, config: FederationConfig, given: Mapping[str, Any], asked: tuple[str, ...], later: tuple[str, ...]
    ) -> SiteAdvice:
        """Ask. Whatever the site's own code does is an answer.

        Args:
            config: The federation.
            given: Values that the user gave.
            asked: Parameters that are `Advise()`.
            later: Parameters whose values come at run time.
        """
        operation, provider = self._operation, self._provider
        if not self._desk.adapters.offers(operation, provider):
            return SiteAdvice(reason=f"does not offer {operation}" + (f" by provider {provider!r}" if provider else ""))
        loaded, error = await self._desk.run(f"import of {operation}", self._load, self._deadline)
        if error is not None:
            return _not_loaded(operation, error)
        adapter, advisors = loaded
        self._fields = Fields.of(adapter, config.operations[operation].parameters, given, asked, later)
        return SiteAdvice(await self._paths(advisors))

    def _load(self) -> tuple[Adapter, list[Advisor]]:
        adapter = self._desk.adapters.find(self._operation, self._provider)
        return adapter, find_advisors(adapter.target)

    async def _paths(self, advisors: list[Advisor]) -> tuple[Path, ...]:
        paths: list[Path] = [()]
        for position, advisor in enumerate(advisors, start=1):
            self._field_deadline = self._share(is_last=position == len(advisors))
            paths = await self._next_field(paths, advisor)
        advised = {self._name(advisor) for advisor in advisors}
        steps = tuple(self._unadvised(name) for name in self._fields.asked if name not in advised)
        return tuple(path if ended(path) else (*path, *steps) for path in paths)

    def _share(self, *, is_last: bool) -> float:
        """When to give up on a field: one that hangs must leave time for those after it."""
        rest = self._deadline - self._desk.now()
        return self._deadline if is_last else self._deadline - rest / 2

    def _unadvised(self, name: str) -> Step:
        """What can be said about a field that has no advisor: what its schema says."""
        schema = self._fields.schemas.get(name, {})
        listed = schema.get("enum") or ([False, True] if schema.get("type") == "boolean" else None)
        return Step(name, AdvisedOneOf(listed) if listed else Okay())

    def _name(self, advisor: Advisor) -> str:
        return self._fields.names.get(advisor.field, advisor.field)

    async def _next_field(self, paths: list[Path], advisor: Advisor) -> list[Path]:
        going_on = [path for path in paths if not ended(path)]
        self._left = MAX_PATHS
        answers = await asyncio.gather(*(self._ask(path, advisor) for path in going_on))
        answered: dict[int, list[_Answered]] = {
            id(path): answer for path, answer in zip(going_on, answers, strict=True)
        }
        looked_at = _steps_split(zip(going_on, answers, strict=True))
        found: list[Path] = []
        for path in paths:
            for before, steps in answered.get(id(path), [(path, (None,))]):
                for whole in split(before, looked_at):
                    found += [whole if step is None else (*whole, step) for step in steps]
        if len(found) <= MAX_PATHS:
            return found
        return [path if ended(path) else (*path, self._too_many(advisor)) for path in paths]

    def _too_many(self, advisor: Advisor) -> Step:
        note = f"there are more than {MAX_PATHS:,} branches; choose values of the fields before"
        return Step(self._name(advisor), None, note, failed=True)

    async def _ask(self, path: Path, advisor: Advisor) -> list[_Answered]:
        """Ask on one branch; as often as it has to be told apart by what the advisor looked at."""
        fields = self._fields
        surroundings = (self._desk.adapters, self._provider)
        context = AdviceContext(self._operation, fields.known, fields.names, path, surroundings)
        steps = await self._consult(advisor, context)
        read = tuple(context.read)
        if not read:
            return [(path, steps)]
        self._left -= prod(len(step.parts) for step in read)
        if self._left < 0:
            return [(path, (self._too_many(advisor),))]
        first, *others = product(*(step.parts for step in read))
        rest = await asyncio.gather(*(self._ask(_replaced(path, read, parts), advisor) for parts in others))
        return [(_replaced(path, read, first), steps), *chain.from_iterable(rest)]

    async def _consult(self, advisor: Advisor, context: AdviceContext) -> tuple[Step | None, ...]:
        field = self._name(advisor)
        name = f"advisor of {field} in {self._operation} ({self._provider or 'site'})"
        seconds = max(0.0, self._field_deadline - self._desk.now()) + _GRACE
        work = partial(_consult, advisor, field, self._fields.known, context, seconds)
        async with self._gate:
            steps, error = await self._desk.run(name, work, self._field_deadline)
        if error is None:
            answered: tuple[Step | None, ...] = steps
            return answered
        if isinstance(error, StuckError):
            return (Step(field, None, f"the advisor {error}", failed=True),)
        _log.warning("%s raised\n%s", name, HIDDEN_SECRETS.hide("".join(traceback.format_exception(error))))
        return (Step(field, None, f"the advisor raised {_text(error)}", failed=True),)


def _not_loaded(operation: str, error: BaseException) -> SiteAdvice:
    if isinstance(error, AdapterLoadError):
        return SiteAdvice(reason=HIDDEN_SECRETS.hide(str(error)))
    if isinstance(error, StuckError):
        return SiteAdvice(reason=f"the adapter of {operation} cannot be loaded: its import {error}", failed=True)
    return SiteAdvice(reason=f"the adapter of {operation} cannot be used: {_text(error)}")


def _consult(
    advisor: Advisor, field: str, known: Mapping[str, Any], context: AdviceContext, seconds: float
) -> tuple[Step | None, ...]:
    """Ask an advisor and look at its answer; runs on a thread, as any of it may be slow."""
    given = field in known
    answer = advisor.ask(known[field] if given else Advise(), context, seconds)
    if not isinstance(answer, AdvisedValue):
        hint = "return AdvisedOneOf([...]), AdvisedLiteral(...), Okay() or the like"
        return (Step(field, None, f"the advisor returned {answer!r:.80}; {hint}", failed=True),)
    if isinstance(answer, AdvisedError):
        return (Step(field, None, HIDDEN_SECRETS.hide(str(answer))),)
    if given:
        problem = answer.validate(known[field])
        return (Step(field, None, problem),) if problem else (None,)
    try:
        values.normalise(answer.describe())
    except ValueEncodingError as error:
        return (Step(field, None, f"the advisor's values cannot be sent: {error}", failed=True),)
    branches = answer.branches()
    if not branches or answer.options() == ():
        return (Step(field, None, "no value is possible"),)
    return tuple(Step(field, branch) for branch in branches)


def _replaced(path: Path, steps: tuple[Step, ...], parts: tuple[Step, ...]) -> Path:
    by_step = {id(step): part for step, part in zip(steps, parts, strict=True)}
    return tuple(by_step.get(id(step), step) for step in path)


def _steps_split(asked: Any) -> list[Step]:
    """The steps that some answer told apart; all paths through them have to be."""
    found: dict[int, Step] = {}
    for path, answers in asked:
        for before, _ in answers:
            found |= {id(old): old for old, new in zip(path, before, strict=True) if old is not new}
    return list(found.values())


def _text(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return HIDDEN_SECRETS.hide(f"SystemExit: it called sys.exit({error.code!r})")
    try:
        return HIDDEN_SECRETS.hide(raised(error))
    except Exception:
        return type(error).__name__
