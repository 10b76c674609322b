"""Reading what the user names on the command line: pipelines and parameters."""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dfmesh.cli.failures import CommandError, UsageError, near_text
from dfmesh.cli.own_output import own_standard_output
from dfmesh.errors import DfmeshError
from dfmesh.user_lines import is_own

if TYPE_CHECKING:
    from dfmesh.api import Pipeline
    from dfmesh.compiler import CompiledPipeline
    from dfmesh.compiler.placement import ObjectiveName
    from dfmesh.session import Federation

_MODULE = "dfmesh_user_pipeline"


def load_federation(file: Path) -> Federation:
    """Read a federation file.

    Raises:
        ConfigError: it has mistakes.
        UsageError: it is none.
    """
    from dfmesh.session import Federation

    if file.suffix == ".py":
        raise UsageError(f"{file} is no federation file; the order is FILE PIPELINE, such as shop.dfm.yaml {file}")
    if not file.exists():
        raise UsageError(f"there is no file {file}; FILE is a federation file, usually *.dfm.yaml")
    return Federation.load(file)


def check_homesite(homesite: str, federation: Federation) -> None:
    """Make sure that a site which the user named as the homesite is there.

    Raises:
        UsageError: it is not.
    """
    if homesite not in federation.sites:
        from dfmesh.api import did_you_mean

        raise UsageError(f"--homesite {homesite}: no such site; {did_you_mean(homesite, federation.sites)}")


def compile_files(
    file: Path, pipeline: str, homesite: str | None = None, objective: ObjectiveName = "time"
) -> tuple[Federation, CompiledPipeline]:
    """Read a federation and a pipeline, and compile the one for the other.

    Args:
        file: The federation file.
        pipeline: The pipeline, as `load_pipeline` takes it.
        homesite: Where the client attaches; None for the default.
        objective: What the sites are chosen for.

    Raises:
        ConfigError: the federation file has mistakes.
        PipelineError: the pipeline has.
        UsageError: there is no such file or site.
    """
    federation = load_federation(file)
    if homesite is not None:
        check_homesite(homesite, federation)
    return federation, federation.compile(load_pipeline(pipeline, federation), homesite=homesite, objective=objective)


def load_pipeline(source: str, federation: Federation) -> Pipeline:
    """Read a pipeline from a JSON document, or have a Python file of the user make it.

    The file is run, but starts no session: where it would, it ends, if the pipeline is there by then. What it prints
    goes to standard error.

    Args:
        source: Path of the file; `file.py:name` picks a function or variable of a Python file.
        federation: What `build(federation)` is given.

    Raises:
        PipelineError: it is not a pipeline, or the file starts a session before there is one.
        CommandError: there is no such file or name, or the user's code raised an exception.
    """
    from dfmesh.api import Pipeline

    path, name = _split(source)
    if not path.is_file():
        raise UsageError(f"there is no file {path}; PIPELINE is a JSON document or a Python file")
    if path.suffix != ".py":
        return Pipeline.load(path)
    with own_standard_output():  # What the script prints is none of the command's own output.
        module = _load(path, name)
        name = _pick(module, path, name)
        found = getattr(module, name)
        pipeline = found if isinstance(found, Pipeline) else _call(found, federation, path)
    if not isinstance(pipeline, Pipeline):
        what = f"what {name}(federation) gives" if callable(found) else f"the variable {name!r}"
        raise CommandError(f"{path}: {what} is no Pipeline but of type {type(pipeline).__name__}")
    return pipeline


def _split(source: str) -> tuple[Path, str | None]:
    before, colon, name = source.rpartition(":")
    if colon and before.endswith(".py"):
        return Path(before), name
    return Path(source), None


def _load(path: Path, name: str | None) -> ModuleType:
    """Run the user's file as a module, with its directory first on the module path, as Python does for scripts."""
    from dfmesh.session.loading_scripts import SessionWhileLoadingError, no_sessions

    spec = importlib.util.spec_from_file_location(_MODULE, path.resolve())
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[_MODULE] = module
    try:
        with no_sessions(str(path)):
            spec.loader.exec_module(module)
    except SessionWhileLoadingError:
        if not _named(module, name):
            raise
    except DfmeshError:
        raise
    except (Exception, SystemExit) as error:
        raise _script_error(error, path) from error
    return module


def _named(module: ModuleType, name: str | None) -> str | None:
    """Find what makes the pipeline, or is it; None if it is not there."""
    return next((item for item in ((name,) if name else ("build", "pipeline")) if hasattr(module, item)), None)


def _pick(module: ModuleType, path: Path, name: str | None) -> str:
    found = _named(module, name)
    if found is not None:
        return found
    if name:
        raise UsageError(f"{path} has no {name!r}")
    raise CommandError(
        f"{path} has neither a function `build(federation)` nor a variable `pipeline`; `{path}:name` picks another name"
    )


def _call(build: Any, federation: Federation, path: Path) -> Any:
    if not callable(build):
        return build
    try:
        return build(federation)
    except DfmeshError:
        raise
    except (Exception, SystemExit) as error:
        raise _script_error(error, path) from error


def _script_error(error: BaseException, path: Path) -> CommandError:
    """Say what the user's code raised, and by which of the user's own lines; dfmesh's are left out."""
    frames = [
        f"  {near_text(frame.filename)}:{frame.lineno}: {frame.line or ''}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not (is_own(frame.filename) or frame.filename.startswith("<frozen"))
    ]
    said = "".join(traceback.format_exception_only(error)).strip()
    return CommandError("\n".join([f"{path} raised an exception", *frames, f"  {said}"]))


def load_parameter_sets(file: Path | None, given: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read parameter sets from a file, and add those from the command line to each.

    Args:
        file: JSON file with a parameter set or a list of them; None for a single, empty one.
        given: `name=value`, where the value is JSON or, if it is not, text.

    Raises:
        CommandError: the file or one of the parameters cannot be read.
    """
    sets = [{}] if file is None else _read_sets(file)
    more = dict(map(_parameter, given))
    return [{**entry, **more} for entry in sets]


def _read_sets(file: Path) -> list[dict[str, Any]]:
    from dfmesh import values

    try:
        document = values.from_json(json.loads(file.read_text("utf-8-sig")))
    except (OSError, ValueError, DfmeshError) as error:
        raise CommandError(f"cannot read parameters from {file}: {error}") from error
    sets = document if isinstance(document, list) else [document]
    for entry in sets:
        if not isinstance(entry, dict):
            raise CommandError(f'{file}: a parameter set is an object, such as {{"day": 1}}, not {entry!r}')
    return sets


def _parameter(text: str) -> tuple[str, Any]:
    from dfmesh import values

    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--param {text}: write it as name=value")
    try:
        return name, values.from_json(json.loads(value))
    except ValueError:
        return name, value
    except DfmeshError as error:
        raise UsageError(f"--param {text}: {error}") from error
