"""What all tests run in: directories of their own, in which nothing may stay, and nothing of what earlier runs cost.

Tests run in several processes at once (`-n`). Each process has its own directory for temporary files, sockets, jobs
and caches, and gives it to whatever it starts; so tests of different processes do not see each other, nor what else
runs on the machine. What is left in it when a module is through is a fault of that module, and what still runs when
all tests are through is a fault of the suite.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

HOME_OF_RUN = "DFMESH_TESTS_IN"
"""Environment variable with the directory of the run, in everything that the tests start."""

DIRECTORIES = {"TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache"}
"""Environment variable to name of the directory of a process of tests that it names."""

STAYS_EMPTY = ("tmp", "run/dfmesh")

os.environ["DFMESH_MEASURE"] = "0"

# The tests start some thousand processes. Where the environment forbids bytecode, as images of containers like to do,
# each of them would compile dfmesh anew, which takes longer than all else that it does.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that starts the tests in the background has SIGINT ignored, and every process started here would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def is_worker() -> bool:
    """Whether this process runs tests for another one, that has been started by the user."""
    return "PYTEST_XDIST_WORKER" in os.environ


def pytest_configure() -> None:
    """Make the directories before anything is imported that could look for them."""
    if not is_worker():
        # Pytest's own directory stays where it always is: what failed tests have written can be found there.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        os.environ[HOME_OF_RUN] = tempfile.mkdtemp(prefix="dfmesh-tests-")
    for variable, name in DIRECTORIES.items():
        directory = own_directory() / name
        directory.mkdir(mode=0o700, parents=True)
        os.environ[variable] = str(directory)
    tempfile.tempdir = None


def own_directory() -> Path:
    """Give the directory of this process; short, since paths of sockets must be."""
    return Path(os.environ[HOME_OF_RUN]) / os.environ.get("PYTEST_XDIST_WORKER", "main")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Say how many processes run tests: some more than there are cores, since most tests wait much of their time.

    None but this one if the tests of a single file were asked for.
    """
    asked = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
    if len(asked) == 1 and ".py" in asked[0]:
        return 0
    return min(8, (3 * (os.cpu_count() or 1) + 1) // 2)


@pytest.fixture
def calls_made() -> Callable[[Callable[[], object]], int]:
    """Count the calls of functions that something makes: how fast it is, whatever the machine and who else is on it."""

    def count(body: Callable[[], object]) -> int:
        seen = 0

        def see(_frame: object, event: str, _function: object) -> None:
            nonlocal seen
            seen += event in {"call", "c_call"}

        sys.setprofile(see)
        try:
            body()
        finally:
            sys.setprofile(None)
        return seen

    return count


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Temporary files and sockets that a module leaves are its fault."""
    before = left_files()
    yield
    left = left_files() - before
    assert not left, "left behind: " + ", ".join(sorted(map(str, left)))


def left_files() -> set[Path]:
    folders = [own_directory() / name for name in STAYS_EMPTY]
    return {path for folder in folders if folder.is_dir() for path in folder.iterdir()}


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End what still runs, so that it does no harm, and fail for it."""
    if is_worker():
        return
    left = left_processes()
    for process, _ in left:
        process.kill()
    if left and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    session.config.stash[LEFT] = [command for _, command in left]


LEFT = pytest.StashKey[list[str]]()


def left_processes() -> list[tuple[psutil.Process, str]]:
    """Give the processes of this run, also those that have made themselves independent, and what they are."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get(HOME_OF_RUN) == os.environ[HOME_OF_RUN]
            if ours and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                found.append((process, " ".join(process.cmdline())[:300]))
        except psutil.Error:
            continue
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tell of what still ran."""
    for command in config.stash.get(LEFT, []):
        terminalreporter.line(f"still running at the end, and ended: {command}", red=True)


def pytest_unconfigure() -> None:
    """Remove the directory of the run."""
    if not is_worker():
        shutil.rmtree(os.environ[HOME_OF_RUN], ignore_errors=True)
