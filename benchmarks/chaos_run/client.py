"""A client process: one session with its sites, several jobs at a time, calm phases in which all must work.

    python -m chaos_run.client OPTIONS-AS-JSON

It writes a JSON object per line to its standard output, and ends in good order when its standard input closes.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from chaos_run.case import SITES
from chaos_run.faults import LATE, PROFILES, FaultLog, Injector, Loss
from chaos_run.worker import JOB_LIMIT, Worker, draw_job
from dfmesh import DfmeshError, Federation, Pipeline, Yield

FEDERATION = Path(__file__).with_name("federation") / "chaos.dfm.yaml"


@dataclass(frozen=True)
class Options:
    """What a client is started with.

    Attributes:
        seed: Of the run.
        client: Name of the client.
        incarnation: How often it was started before.
        profile: Name of the profile.
        scratch: Directory for files.
        jobs: Jobs at a time.
        calm_every: Seconds between calm phases.
        hosted: Whether its jobs go to a federation that is up, which others use, too.
        adopt: Jobs that a client of this name has left behind when it was killed.
    """

    seed: int
    client: str
    incarnation: int
    profile: str
    scratch: str
    jobs: int = 3
    calm_every: float = 15.0
    hosted: bool = False
    adopt: tuple[dict[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Prefix of the names of its jobs."""
        return f"{self.seed}/{self.client}/{self.incarnation}"


class Reporter:
    """Writes what happens to where the driver reads it."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
        self._lock = threading.Lock()

    def __call__(self, kind: str, **fields: Any) -> None:
        """Write a line."""
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._out.write(json.dumps({"kind": kind, **fields}, default=str) + "\n")
            self._out.flush()


class Client:
    """One client of the run.

    Attributes:
        recovery_limit: Seconds after the last fault within which all sites must work again.
    """

    recovery_limit = 60.0

    def __init__(self, options: Options, report: Reporter) -> None:
        """Begin; nothing is started.

        Args:
            options: Of this client.
            report: Gets what happens.
        """
        self._options = options
        self._profile = PROFILES[options.profile]
        self._report = report
        self._federation = Federation.load(FEDERATION)
        self._log = self._make_log()
        self._output: deque[str] = deque(maxlen=300)
        self._session: Any = None
        self._closed: dict[int, bool] = {}
        injector = Injector(self._log, self._process_ids)
        self._worker = self._make_worker(self._current, self._log, injector, report, Path(options.scratch))
        self._number = 0
        self._lock = threading.Lock()
        self._go = threading.Event()
        self._ending = threading.Event()
        self._busy = 0
        self._idle = threading.Condition(self._lock)
        self._random = random.Random(f"{options.name}/client")

    def _make_log(self) -> FaultLog:
        return FaultLog()

    def _make_worker(self, *given: Any) -> Worker:
        return Worker(*given)

    def run(self) -> None:
        """Run until standard input closes."""
        self._connect()
        self._probe()
        self._begin()
        self._go.set()
        workers = [threading.Thread(target=self._work, daemon=True) for _ in range(self._options.jobs)]
        for worker in workers:
            worker.start()
        while not self._ending.wait(self._options.calm_every):
            self._calm()
        self._calm(last=True)
        for worker in workers:
            worker.join(5)
        self._close()
        self._report("end", faults=self._log.take_counts())

    def _begin(self) -> None:
        """What comes before the first job."""

    def end(self) -> None:
        """Let it end in good order."""
        self._ending.set()

    # The session

    def _current(self) -> tuple[Any, Any]:
        session = self._session
        return session, lambda: self._closed.get(id(session), False)

    def _process_ids(self) -> dict[str, int]:
        for _ in range(10):
            with contextlib.suppress(AttributeError, RuntimeError):  # A site died while we looked.
                return dict(self._session._connection._runner.processes)
        return {}

    def _connect(self) -> None:
        begin = time.monotonic()
        session = self._federation.session(output=self._site_output)
        self._session = session.connect()
        self._report("connected", seconds=time.monotonic() - begin, sites=list(self._process_ids().values()))

    def _site_output(self, site: str, line: str) -> None:
        self._output.append(f"[{site}] {line}")
        print(f"[{site}] {line}", file=sys.stderr)

    def _close(self) -> None:
        session, sites = self._session, self._process_ids()
        begin = time.monotonic()
        self._closed[id(session)] = True
        session.close()
        took = time.monotonic() - begin
        left = [name for name, pid in sites.items() if psutil.pid_exists(pid)]
        if left or took > self.recovery_limit:
            self._report("wrong", job="", template="", wrong=[f"closing took {took:.1f} s and left {left}"])

    # Jobs

    def _work(self) -> None:
        while not self._ending.is_set():
            self._go.wait()
            with self._lock:
                if not self._go.is_set():
                    continue
                self._busy += 1
                self._number += 1
                name = f"{self._options.name}/{self._number}"
            fine = True
            try:
                job = draw_job(name, self._profile, self._federation.ops, Path(self._options.scratch))
                fine = self._worker.run(job)
            except Exception as error:
                import traceback

                self._report("wrong", job=name, template="", wrong=[repr(error), traceback.format_exc()])
            finally:
                with self._idle:
                    self._busy -= 1
                    self._idle.notify_all()
            if not fine:
                self._dump()

    def _dump(self) -> None:
        """Have all sites print where they are, which ends them."""
        for site, pid in self._process_ids().items():
            now = time.monotonic()
            self._log.lose(Loss(site, "killed by SIGABRT", now, now + LATE))
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGABRT)
        time.sleep(1)
        self._report("dump", lines=list(self._output)[-250:])

    # Calm phases

    def _calm(self, *, last: bool = False) -> None:
        if self._profile.closes and not last and self._random.random() < 0.15:
            self._log.add("session closed while jobs run")
            self._go.clear()
            self._close()
            self._wait_idle()
            self._connect()
        self._go.clear()
        self._wait_idle()
        seconds, tries = self._probe()
        self._sample(seconds, tries)
        if not last:
            self._go.set()
        else:
            self._ending.set()
            self._go.set()

    def _wait_idle(self) -> None:
        with self._idle:
            if not self._idle.wait_for(lambda: self._busy == 0, JOB_LIMIT + 30):
                self._report("wrong", job="", template="", wrong=[f"{self._busy} jobs are still going on in a calm"])

    def _probe(self) -> tuple[float, int]:
        """Use every site, until that goes well; gives seconds and tries."""
        begin, tries = time.monotonic(), 0
        ops = self._federation.ops.chaos
        with Pipeline() as pipeline:
            for site in SITES:
                Yield(ops.Affine(x=1, a=2, b=3, site=site), place=site)
        said = ""
        while time.monotonic() - begin < self.recovery_limit:
            tries += 1
            try:
                results = self._current()[0].submit(pipeline).result(self.recovery_limit)
            except (DfmeshError, TimeoutError) as error:
                said = str(error)
                time.sleep(0.2)
                continue
            if dict(results) == {site: [5] for site in SITES}:
                return time.monotonic() - begin, tries
            said = f"it gave {dict(results)}"
        wrong = [f"does not work {self.recovery_limit} s after the last fault: {said}"]
        history = self._log.history(begin - 20, time.monotonic())
        self._report("wrong", job="", template="probe", wrong=wrong, history=history, output=list(self._output)[-100:])
        self._dump()
        return self.recovery_limit, tries

    def _sample(self, seconds: float, tries: int) -> None:
        """Report what all processes hold while nothing goes on."""
        held = {"client": _held(os.getpid())}
        for site, pid in self._process_ids().items():
            with contextlib.suppress(psutil.Error, OSError):
                held[site] = _held(pid)
        self._report("calm", seconds=seconds, tries=tries, held=held, faults=self._log.take_counts())


def _held(pid: int) -> dict[str, float]:
    process = psutil.Process(pid)
    with process.oneshot():
        links = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()]
        segments = sum(link.startswith("/memfd:dfmesh ") for link in links)
        return {
            "age": time.time() - process.create_time(),
            "memory": process.memory_info().rss - process.memory_info().shared,
            "shared": process.memory_info().shared,
            "descriptors": len(links) - segments,
            "threads": process.num_threads(),
        }


def _wait_for_end(client: Client) -> None:
    sys.stdin.read()
    client.end()


def make_client(options: Options, report: Reporter) -> Client:
    """Make the client that the options ask for."""
    if options.hosted:
        from chaos_run.hosted_client import HostedClient

        return HostedClient(options, report)
    return Client(options, report)


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    report = Reporter()
    options = Options(**json.loads(sys.argv[1]))
    report("options", **asdict(options))
    client = make_client(options, report)
    threading.Thread(target=_wait_for_end, args=(client,), daemon=True).start()
    try:
        client.run()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        import traceback

        report("wrong", job="", template="client", wrong=[repr(error), traceback.format_exc()])
        raise


if __name__ == "__main__":
    main()
