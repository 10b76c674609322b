"""Loading every adapter of a federation, each site in a process of its own, to find what cannot be loaded."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfmesh.engine.adapters.trial import Part, parts_of
from dfmesh.errors import Fault, SourceLocation

if TYPE_CHECKING:
    from dfmesh.config import FederationConfig

TRIAL_SECONDS = 120.0
"""How long the adapters of one site may take to load."""


def loading_faults(config: FederationConfig, file: Path, seconds: float = TRIAL_SECONDS) -> list[Fault]:
    """Load all adapters of all sites, and the classes of sites and providers.

    Nothing is imported into this process. What crashes its process or does not come back is a fault; what stands
    behind it is tried in another process. Secrets are not fetched.

    Args:
        config: The federation.
        file: Its file, as the user named it.
        seconds: How long the processes of a site may take, each.

    Returns:
        What cannot be loaded, once per place in the file, in the order of the sites.
    """
    found: dict[tuple[object, str], Fault] = {}
    for site in config.sites:
        for fault in _site_faults(config, file, site, seconds):
            found.setdefault((fault.location, fault.message), fault)
    return list(found.values())


def _site_faults(config: FederationConfig, file: Path, site: str, seconds: float) -> Iterator[Fault]:
    parts = parts_of(config, site)
    first = 0
    while first < len(parts):
        lines, end = _try_site(file, site, first, seconds)
        for value in lines:
            if isinstance(value, int):
                first = value
            elif value is not None:
                yield _fault(parts[first], value)
        if lines and lines[-1] is None:
            return
        yield parts[first].fault(end)
        first += 1


def _fault(part: Part, said: dict[str, Any]) -> Fault:
    place = said.get("location")
    return part.fault(said["reason"], said.get("path", ""), None if place is None else SourceLocation(*place))


def _try_site(file: Path, site: str, first: int, seconds: float) -> tuple[list[Any], str]:
    """Try the parts of a site, from one on; give what the process said, and how it ended if not as it should."""
    # -P: the current directory is not where sites find their modules
    command = [sys.executable, "-P", "-X", "faulthandler", "-m", "dfmesh.engine.adapters.trial"]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603 - our own module
            [*command, str(file), site, str(first)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
            end = ""
        except subprocess.TimeoutExpired:
            _kill(process)
            output, _ = process.communicate()
            end = f"loading it did not end within {seconds:g} s"
        except BaseException:
            _kill(process)
            process.wait()
            raise
        errors.seek(0)
        return _values(output), end or _end(process.returncode, errors.read().decode(errors="replace"))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _values(output: bytes) -> list[Any]:
    """Read the lines that were written whole."""
    return [json.loads(line) for line in output.splitlines(keepends=True) if line.endswith(b"\n")]


def _end(code: int, errors: str) -> str:
    if code < 0:
        return f"loading it ended its process with {signal.Signals(-code).name}"
    last = next((f": {line.strip()}" for line in reversed(errors.splitlines()) if line.strip()), "")
    return f"loading it ended its process with exit code {code}{last}"
