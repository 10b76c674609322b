"""Children that adapters fork, and that come back from the adapter into our code: there they end.

Such a child is a copy of the whole process with one thread. If it went on, it would be a second site that speaks over
the same connections, or would wait for work for ever, while the adapter waits for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Generator
from typing import Any, NoReturn

from dfmesh.processes.output import leave

forks = 0
"""How many times this process, and those that it was forked from, were forked off."""


def _note() -> None:
    global forks
    forks += 1


os.register_at_fork(after_in_child=_note)


def end_if_since(before: int, error: BaseException | None = None) -> None:
    """End this process, as Python ends one, if it was forked off since `before`.

    Args:
        before: What `forks` was before the adapter's code was entered.
        error: What that raised; its traceback is printed, unless it is `SystemExit`.
    """
    if forks != before:
        _end(error)


def _end(error: BaseException | None) -> NoReturn:
    code = 0
    try:
        if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
            code = (error.code or 0) & 0xFF
        elif error is not None:
            code = 1
            _show(error)
    finally:
        leave(code)  # also where what adapters have put in the place of the standard streams fails


def _show(error: BaseException) -> None:
    if isinstance(error, SystemExit):
        sys.stderr.write(f"{error.code}\n")
    else:
        sys.excepthook(type(error), error, error.__traceback__)


class ending_in_children:  # noqa: N801 - used like a function
    """Await something of an adapter's; in a child that this forks off, end before the event loop goes on.

    The loop of a child would read and write what belongs to its parent.
    """

    __slots__ = ("_awaited",)

    def __init__(self, awaited: Awaitable[Any]) -> None:
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Any]:
        before = forks
        steps = self._awaited.__await__()
        action: Any = steps.__next__
        given: tuple[Any, ...] = ()
        while True:
            try:
                step = action(*given)
            except StopIteration as end:
                end_if_since(before)
                return end.value
            except BaseException as error:
                end_if_since(before, error)
                raise
            end_if_since(before)
            try:
                sent = yield step
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:
                action, given = steps.throw, (error,)
            else:
                action, given = (steps.__next__, ()) if sent is None else (steps.send, (sent,))
