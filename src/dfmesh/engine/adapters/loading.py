"""Importing a site's own code by dotted path."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from dfmesh.engine.adapters.errors import AdapterLoadError, raised
from dfmesh.engine.adapters.present_call import CallStopped
from dfmesh.errors import SourceLocation

_importing = threading.RLock()
_federation_directories: set[str] = set()
_own_modules: dict[str, tuple[str, tuple[int, int]]] = {}
"""File, and time and size when it was imported, of modules beside federation files that were imported here first."""

_users: Counter[str] = Counter()
"""How many federations of a directory have sites in this process."""


def load_object(path: str, directory: Path, location: SourceLocation | None) -> Any:
    """Import what a dotted path names, with a directory first on the module search path.

    Args:
        path: Dotted path of a class or function.
        directory: Directory of the federation file.
        location: Where the federation file names the path, for errors.

    Raises:
        AdapterLoadError: If there is no such thing, or importing it fails in any way.
    """
    with _importing:
        _put_first(str(directory))
        _make_room(path.partition(".")[0], directory, path, location)
        importlib.invalidate_caches()
        before = set(sys.modules)
        try:
            return guarded(path, location, "importing it failed", lambda: _resolve(path, location))
        finally:
            _note_own_modules(sys.modules.keys() - before)


def begin_use(directory: Path) -> None:
    """Take note that sites of a federation begin to live in this process; to be ended by `end_use`.

    If nobody else uses the modules beside the federation file, and a file of them was changed, all of them will be
    imported anew. Only modules are forgotten that `load_object` imported: those that a user has imported stay.

    Args:
        directory: Directory of the federation file.
    """
    home = os.path.realpath(directory)
    with _importing:
        _users[home] += 1
        own = {name: known for name, known in _own_modules.items() if known[0].startswith(f"{home}{os.sep}")}
        if _users[home] == 1 and any(_state(file) != state for file, state in own.values()):
            for name in own:
                del _own_modules[name]
                sys.modules.pop(name, None)


def end_use(directory: Path) -> None:
    """Take note that the sites of a federation do not live here any more."""
    with _importing:
        _users[os.path.realpath(directory)] -= 1


def _note_own_modules(names: Iterable[str]) -> None:
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None)
        real = os.path.realpath(file) if file else ""
        if any(real.startswith(f"{home}{os.sep}") for home in _federation_directories):
            _own_modules[name] = (real, _state(real))


def _state(file: str) -> tuple[int, int]:
    """Give what tells a file from an earlier state of it; the same for all that are not there."""
    try:
        found = os.stat(file)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def guarded(path: str, location: SourceLocation | None, doing: str, call: Callable[[], Any]) -> Any:
    """Run code of the site; whatever it raises becomes an AdapterLoadError.

    Args:
        path: Dotted path of what is being made.
        location: Where the federation file names it.
        doing: What failed, for the message.
        call: The code to run.

    Raises:
        AdapterLoadError: If the code raises anything, SystemExit included. Only Ctrl-C passes, and that the call of an
            adapter is stopped.
    """
    try:
        return call()
    except (KeyboardInterrupt, CallStopped, AdapterLoadError):
        raise
    except BaseException as error:  # a site must outlive whatever its adapters raise
        raise AdapterLoadError(path, f"{doing}: {raised(error)}", location) from error


def _put_first(directory: str) -> None:
    _federation_directories.add(os.path.realpath(directory))
    if sys.path[:1] != [directory]:
        if directory in sys.path:
            sys.path.remove(directory)
        sys.path.insert(0, directory)


def _make_room(name: str, directory: Path, path: str, location: SourceLocation | None) -> None:
    """Forget a module of another federation that has the name of one of ours.

    In a process that hosts several federations, both may have an `adapters.py`; each must get its own.
    """
    loaded = sys.modules.get(name)
    if loaded is None or not ((directory / f"{name}.py").is_file() or (directory / name).is_dir()):
        return
    home = _home(loaded)
    if home is None or home == os.path.realpath(directory):
        return
    if home not in _federation_directories:
        reason = f"a module {name!r} from {home} is loaded already; rename the one in {directory}"
        raise AdapterLoadError(path, reason, location)
    for module in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
        del sys.modules[module]


def _home(module: ModuleType) -> str | None:
    """The directory on the search path from which a top-level module came."""
    file: str | None = getattr(module, "__file__", None)
    if file:
        directory = os.path.dirname(os.path.realpath(file))
        return os.path.dirname(directory) if hasattr(module, "__path__") else directory
    places: list[str] = list(getattr(module, "__path__", []))
    return os.path.dirname(os.path.realpath(places[0])) if places else None


def _resolve(path: str, location: SourceLocation | None) -> Any:
    first, *rest = path.split(".")
    found: Any = _import(first, path, location)
    name = first
    for part in rest:
        name = f"{name}.{part}"
        if not hasattr(found, part) and isinstance(found, ModuleType):
            submodule = _import(name, path, location, parent=found)
            found = getattr(found, part, submodule)
        elif hasattr(found, part):
            found = getattr(found, part)
        else:
            raise AdapterLoadError(path, _missing(part, found), location)
    if isinstance(found, ModuleType):
        raise AdapterLoadError(path, "it is a module; name the class or function in it", location)
    return found


def _import(name: str, path: str, location: SourceLocation | None, parent: ModuleType | None = None) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise  # found, but it imports something that is missing
        if parent is not None:
            raise AdapterLoadError(path, _missing(name.rpartition(".")[2], parent), location) from None
        reason = f"there is no module {name!r} in {sys.path[0]} or among the installed packages"
        raise AdapterLoadError(path, reason, location) from None


def _missing(part: str, owner: Any) -> str:
    public = [name for name in dir(owner) if not name.startswith("_")]
    close = get_close_matches(part, public, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    what = "module" if isinstance(owner, ModuleType) else "class"
    file = getattr(owner, "__file__", None)
    where = f" ({file})" if file else ""
    return f"{what} {getattr(owner, '__name__', owner)!r}{where} has no {part!r}{hint}"
