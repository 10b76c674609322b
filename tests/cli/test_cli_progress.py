"""What people see while a job runs."""

from __future__ import annotations

import io
import re
import sys
import threading

import pytest
from rich.console import Console

from dfmesh.cli.progress import JobView, LiveProgress, ProgressAsker, draw
from dfmesh.engine.message_parts import OperationReport, SiteReport
from dfmesh.session import JobProgress, JobStatus


def report(site, *operations, sent=None):
    return SiteReport(site, tuple(operations), sent or {})


def operation(name, node="%1", waiting=0, running=0, done=0, failed=0, seconds=0.0):
    return OperationReport(node, name, "p.py:1", waiting, running, done, failed, seconds, 0)


def text_of(view, most_rows=1000):
    console = Console(file=io.StringIO(), width=120)
    console.print(draw(view, most_rows))
    return console.file.getvalue()


VIEW_SITES = (
    report(
        "a",
        operation("x.Read", "%1", done=2, seconds=0.5),
        operation("x.Read", "%2", running=1, seconds=0.25),
        operation("x.Bin", "%3", failed=1),
        sent={"b": 2000, "a": 5, "client:77": 10},
    ),
    report("b", operation("x.Merge", "%4", waiting=3), sent={"a": 0}),
)


def view_of(*sites):
    return JobView("test", progress=JobProgress(JobStatus.RUNNING, sites, 0))


def test_statements_of_an_operation_are_added_up():
    operations = JobProgress(JobStatus.RUNNING, VIEW_SITES, 0).operations
    read = operations[0]
    assert (read.site, read.operation, read.done, read.running, read.seconds) == ("a", "x.Read", 2, 1, 0.75)
    assert [entry.operation for entry in operations] == ["x.Read", "x.Bin", "x.Merge"]


def test_links_leave_out_a_site_itself_and_nothing():
    progress = JobProgress(JobStatus.RUNNING, VIEW_SITES, 0)
    assert progress.links == [("a", "b", 2000), ("a", "client", 10)]
    assert progress.bytes_between_sites == 2000


def test_the_picture_says_what_happens():
    view = view_of(*VIEW_SITES)
    view.result_came()
    view.ended("finished")
    shown = text_of(view)
    assert "test: finished" in shown
    assert "1 result, first at" in shown
    assert "x.Read" in shown
    assert "between sites 2 kB" in shown


def test_of_too_many_rows_the_busy_ones_are_shown():
    idle = [operation(f"x.Idle{number}") for number in range(50)]
    view = view_of(report("a", *idle, operation("x.Busy", running=1), operation("x.Bad", failed=1)))
    shown = text_of(view, most_rows=4)
    assert "x.Busy" in shown
    assert "x.Bad" in shown
    assert "and 48 more" in shown


class SlowJob:
    """Answers a time-out first, then a report."""

    def __init__(self):
        self.asked = 0
        self.status = type("Status", (), {"value": "running"})

    def progress(self, timeout):
        self.asked += 1
        if self.asked == 1:
            raise TimeoutError
        return JobProgress(JobStatus.RUNNING, VIEW_SITES, 0)


def test_the_asker_survives_a_time_out_and_stops():
    told = threading.Event()
    view = JobView("test")

    def tell(view):
        if view.progress.sites:
            told.set()

    asker = ProgressAsker(view, 0.01, tell)
    job = SlowJob()
    asker.ask(job)
    assert told.wait(60)
    asker.stop()
    asked = job.asked
    assert view.status == "running"
    assert not told.wait(0) or job.asked == asked


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def threads_switch_often():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("threads_switch_often")
def test_what_is_printed_while_the_table_ends_stands_alone(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for _ in range(60):
        terminal, stopped, begun = Terminal(), threading.Event(), threading.Event()
        monkeypatch.setattr(sys, "stderr", terminal)
        printed = []

        def print_lines(printed=printed, stopped=stopped, begun=begun):
            while not stopped.is_set() and len(printed) < 2_000:
                printed.append(f"line {len(printed)}")
                print(printed[-1], file=sys.stderr)
                begun.set()

        thread = threading.Thread(target=print_lines)
        with LiveProgress(JobView("weather")):
            thread.start()
            begun.wait(60)
        stopped.set()
        thread.join()
        assert sys.stderr is terminal
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
        lines = {line.rstrip() for line in re.split(r"[\r\n]+", text)}
        assert set(printed) <= lines
