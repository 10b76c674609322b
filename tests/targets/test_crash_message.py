"""What is told of a site that crashed: the crash, and where its thread was, however many other threads there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from dfmesh import Federation, JobError, Pipeline, Yield

FILE = """
dfm: 1.0.0
operations: {crash.Read: {parameters: {}}}
sites: {lab: {interface: {crash.Read: crashing_adapter.read}}}
"""
ADAPTER = """
import faulthandler
import threading

def read():
    for _ in range(4):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    crash_here()

def crash_here():
    faulthandler._sigsegv()
"""


def test_the_thread_that_crashed_is_shown(tmp_path: Path) -> None:
    (tmp_path / "crash.dfm.yaml").write_text(FILE)
    (tmp_path / "crashing_adapter.py").write_text(ADAPTER)
    federation = Federation.load(tmp_path / "crash.dfm.yaml")
    with federation.session(output="none") as session:
        with Pipeline() as pipeline:
            Yield(federation.ops.crash.Read())
        with pytest.raises(JobError, match=r"(?s)Fatal Python error: Segmentation fault\s+Current thread .*crash_here"):
            session.run(pipeline)
