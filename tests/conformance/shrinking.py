"""Makes a failing description smaller, by leaving out what the failure does not need."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .descriptions import (
    Branch,
    Cached,
    Call,
    Description,
    Loop,
    Sub,
    Yield,
    defined,
    mentioned,
    only_used_parameters,
    parameters_of,
    walk,
)


def shrink(
    description: Description,
    fails: Callable[[Description], bool],
    attempts: int = 400,
    seconds: float = 60,
) -> Description:
    """Give a smaller description that still fails.

    Args:
        description: One that fails.
        fails: Says whether a description fails.
        attempts: How often to ask at most.
        seconds: How long to go on at most.
    """
    left, end = attempts, time.monotonic() + seconds
    progress = True
    while progress:
        progress = False
        for candidate in _smaller(description):
            left -= 1
            if fails(candidate):
                description, progress = candidate, True
                break
            if left <= 0 or time.monotonic() > end:
                return description
    return description


def _smaller(description: Description) -> Iterator[Description]:
    sets = description.parameter_sets
    if len(sets) > 1:
        for given in sets:
            yield replace(description, parameter_sets=(given,))
    for body in _smaller_blocks(description.body):
        consistent = _consistent(body)
        if consistent:
            yield only_used_parameters(replace(description, body=consistent))


def _smaller_blocks(body: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if len(body) > 3:
        half = len(body) // 2
        yield body[:half]
        yield body[half:]
    for at in reversed(range(len(body))):
        yield (*body[:at], *body[at + 1 :])
    for at in reversed(range(len(body))):
        for smaller in _smaller_statements(body[at]):
            yield (*body[:at], *smaller, *body[at + 1 :])


def _smaller_statements(statement: Any) -> Iterator[tuple[Any, ...]]:
    """Give smaller versions of one statement, each as the statements to put in its place."""
    if getattr(statement, "after", ()):
        yield (replace(statement, after=()),)
    match statement:
        case Call(site=site, retries=retries):
            if retries:
                yield (replace(statement, retries=0),)
            if site is not None:
                yield (replace(statement, site=None),)
        case Loop(body=body, gathers=gathers, window=window):
            if window is not None:
                yield (replace(statement, window=None),)
            for at in range(len(gathers)):
                yield (replace(statement, gathers=(*gathers[:at], *gathers[at + 1 :])),)
            for smaller in _smaller_blocks(body):
                yield (replace(statement, body=smaller),)
        case Cached(body=body, site=site):
            if site is not None:
                yield (replace(statement, site=None),)
            for smaller in _smaller_blocks(body):
                yield (replace(statement, body=smaller),)
        case Sub(pipeline=pipeline):
            for smaller in _smaller_blocks(pipeline.body):
                yield (replace(statement, pipeline=replace(pipeline, body=smaller)),)
        case Branch(then=then, otherwise=otherwise):
            yield then
            if otherwise is not None:
                yield otherwise
                yield (replace(statement, otherwise=None),)
            for smaller in _smaller_blocks(then):
                yield (replace(statement, then=smaller),)
            for smaller in _smaller_blocks(otherwise or ()):
                yield (replace(statement, otherwise=smaller),)


def _consistent(body: tuple[Any, ...], known: frozenset[str] = frozenset()) -> tuple[Any, ...]:
    """Leave out what refers to statements that are no longer there."""
    kept: list[Any] = []
    names = set(known)
    for statement in body:
        match statement:
            case Loop(id=loop):
                if not set(mentioned(statement.sequence)) <= names:
                    continue
                inner = _consistent(statement.body, frozenset({*names, loop}))
                visible = {*names, loop, *(name for part in inner for name in defined(part))}
                gathers = tuple(gather for gather in statement.gathers if set(mentioned(gather.value)) <= visible)
                statement = replace(statement, body=inner, gathers=gathers)
                if not inner and not gathers:
                    continue
            case Cached(id=cached):
                if not set(mentioned(statement.key)) <= names:
                    continue
                inner = _consistent(statement.body, frozenset({*names, cached}))
                if not set(mentioned(statement.value)) <= {*names, *(name for part in inner for name in defined(part))}:
                    continue
                statement = replace(statement, body=inner)
            case Sub():
                if not set(mentioned(statement.arguments)) <= names:
                    continue
                statement = _consistent_sub(statement)
                if not statement.pipeline.body:
                    continue
            case Branch():
                if not set(mentioned(statement.condition)) <= names:
                    continue
                then = _consistent(statement.then, frozenset(names))
                otherwise = _consistent(statement.otherwise or (), frozenset(names)) or None
                if not then:
                    continue
                statement = replace(statement, then=then, otherwise=otherwise)
            case _:
                if not set(mentioned(statement)) <= names:
                    continue
        kept.append(statement)
        names |= defined(statement)
    return tuple(kept)


def _consistent_sub(sub: Sub) -> Sub:
    body = _consistent(sub.pipeline.body)
    places = {statement.place for statement in walk(body) if isinstance(statement, Yield)}
    used = set(parameters_of(body))
    pipeline = replace(
        sub.pipeline, body=body, defaults=tuple(pair for pair in sub.pipeline.defaults if pair[0] in used)
    )
    return replace(
        sub,
        pipeline=pipeline,
        arguments=tuple(pair for pair in sub.arguments if pair[0] in used),
        outputs=tuple(pair for pair in sub.outputs if pair[0] in places),
    )
