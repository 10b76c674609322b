"""`dfmesh up`: a federation that runs on its own, here or in the background."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dfmesh.cli.documents import check_homesite, load_federation
from dfmesh.cli.failures import error_lines, exit_code, near_text, print_error
from dfmesh.compiler.quantity_text import count_text
from dfmesh.errors import DfmeshError, SessionError
from dfmesh.shown_text import shown_line

if TYPE_CHECKING:
    from dfmesh.config import FederationConfig
    from dfmesh.targets.up.host_record import HostRecord

_TOLD_LINES = 10


@dataclass(frozen=True)
class UpRequest:
    """The arguments of `dfmesh up`.

    Attributes:
        file: The federation file.
        homesite: Where clients attach; None for the default.
        name: Name of the host; None for that of the file.
        detach: Whether it is to run in the background.
        as_json: Whether standard output is for a machine.
        report_to: Descriptor on which a host in the background says that it is ready; -1 for none.
    """

    file: Path
    homesite: str | None
    name: str | None
    detach: bool
    as_json: bool
    report_to: int = -1


class _Ready(msgspec.Struct):
    """What a host in the background reports: that it is ready, or why not.

    Attributes:
        host: The host.
        resumed: How many jobs of an earlier host go on.
        error: Why it is not ready; empty if it is.
        code: Exit code then.
    """

    host: Any = None
    resumed: int = 0
    error: str = ""
    code: int = 0


def bring_up(request: UpRequest) -> None:
    """Run a federation until it is stopped or, in the background, return when its sites are ready.

    Raises:
        ConfigError: the federation file has mistakes.
        UsageError: there is no such site.
        SessionError: it is up already, or a site did not start.
        SystemExit: a host in the background did not start; it has been told why.
    """
    if request.report_to >= 0:
        _report(request)
        return
    chosen = _checked(request)
    if request.detach:
        tell_ready(*_start_detached(request, chosen[2]), as_json=request.as_json)
        return
    _serve(*chosen, as_json=request.as_json)


def _checked(request: UpRequest) -> tuple[FederationConfig, str, str]:
    """Give what is to run: federation, homesite, name of the host."""
    from dfmesh.session import default_homesite
    from dfmesh.targets.up.directories import check_name, host_name

    federation = load_federation(request.file)
    config = federation.config
    homesite = request.homesite or default_homesite(config)
    check_homesite(homesite, federation)
    return config, homesite, host_name(config.path) if request.name is None else check_name(request.name)


def _serve(config: FederationConfig, homesite: str, name: str, *, as_json: bool) -> None:
    from dfmesh.session.site_output import SiteOutput
    from dfmesh.targets.up.serving import Serving, serve

    output = SiteOutput("stderr")

    def ready(host: HostRecord, resumed: int) -> None:
        tell_ready(host, resumed, as_json=as_json)

    try:
        serve(Serving(config, homesite, name, ready, output.take))
    finally:
        output.close()
    if not as_json:
        print(f"{shown_line(config.name)} is down")


def tell_ready(host: HostRecord, resumed: int, *, as_json: bool) -> None:
    """Say what is up, and how it is used."""
    if as_json:
        print(json.dumps({"event": "up", **msgspec.to_builtins(host), "resumed": resumed}), flush=True)
        return
    sites = ", ".join(f"{site} (homesite)" if site == host.homesite else site for site in host.sites)
    file = near_text(host.federation)
    lines = [
        f"{shown_line(host.title)} is up: host {host.name}, process {host.pid}",
        f"  sites   {shown_line(sites)}",
        f"  submit  dfmesh run {file} PIPELINE --target up [--detach], or federation.session(target='up')",
        "  look    dfmesh jobs, dfmesh attach JOB, dfmesh cancel JOB, dfmesh logs [SITE] [--follow]",
        f"  stop    dfmesh down {file}",
    ]
    if resumed:
        lines.insert(1, f"  {count_text(resumed, 'job')} of before {'goes' if resumed == 1 else 'go'} on")
    print("\n".join(lines), flush=True)


# In the background


def _start_detached(request: UpRequest, name: str) -> tuple[HostRecord, int]:
    from dfmesh.processes.starting import environment, interpreter
    from dfmesh.targets.up.directories import state_directory
    from dfmesh.targets.up.host_record import HostRecord

    reader, writer = os.pipe()
    log = state_directory(name) / "host.log"
    command = [*interpreter(), "-m", "dfmesh", "up", os.path.abspath(request.file), "--name", name]
    command += ["--report-to", str(writer)]
    command += [] if request.homesite is None else ["--homesite", request.homesite]
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        private = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(private, "wb") as output:
            os.fchmod(private, 0o600)  # One that an older dfmesh made.
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[writer],
                start_new_session=True,
                env=environment(),
            )
    except OSError as error:
        raise SessionError(f"the host cannot be started: {error}") from error
    finally:
        os.close(writer)
    ready = _wait_for_report(process, reader)
    if ready is None:
        lines = log.read_text("utf-8", "replace").splitlines()[-_TOLD_LINES:]
        code = process.wait()
        raise SessionError("\n".join([f"the host ended with code {code} before it was ready ({log}):", *lines]))
    if ready.error:
        process.wait()
        print_error(ready.error)
        raise SystemExit(ready.code)
    return msgspec.convert(ready.host, HostRecord), ready.resumed


def _wait_for_report(process: subprocess.Popen[bytes], reader: int) -> _Ready | None:
    """Read what the host reports; None if it ended without a word. Ctrl-C ends it."""
    try:
        with os.fdopen(reader, "rb") as pipe:
            report = pipe.read()
    except BaseException:
        process.send_signal(signal.SIGTERM)
        process.wait()
        raise
    return msgspec.json.decode(report, type=_Ready) if report else None


def _report(request: UpRequest) -> None:
    """Be the host in the background."""
    os.set_inheritable(request.report_to, False)

    def say(ready: _Ready) -> None:
        os.write(request.report_to, msgspec.json.encode(ready))
        os.close(request.report_to)

    from dfmesh.targets.up.serving import Serving, serve

    try:
        serve(Serving(*_checked(request), lambda host, resumed: say(_Ready(host, resumed))))
    except DfmeshError as error:
        say(_Ready(error="\n".join(error_lines(error)), code=exit_code(error)))
        raise


__all__ = ["UpRequest", "bring_up", "tell_ready"]
