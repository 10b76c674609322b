"""Ctrl-C while a session starts: nothing of it stays, and the next one works."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from dfmesh import Federation, Pipeline, Yield


def interrupt_when_a_site_starts() -> None:
    while not psutil.Process().children():
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_while_sites_start(tmp_path: Path) -> None:
    path = tmp_path / "one.dfm.yaml"
    path.write_text("dfm: 1.0.0\noperations: {}\nsites: {a: {}}\n")
    federation = Federation.load(path)
    thread = threading.Thread(target=interrupt_when_a_site_starts)
    thread.start()
    with pytest.raises(KeyboardInterrupt), federation.session(measure=False):
        threading.Event().wait(60)
    thread.join()
    assert psutil.Process().children() == []
    with Pipeline() as pipeline:
        Yield(1)
    with federation.session(measure=False) as session:
        assert session.run(pipeline).one() == 1
