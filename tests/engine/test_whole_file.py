"""A file is there whole or not at all, and nothing else is, also when the process is killed while it writes."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dfmesh.engine import whole_file
from dfmesh.engine.whole_file import write_whole

KILLED_WHILE_IT_WRITES = """
import resource, signal, sys
from pathlib import Path
from dfmesh.engine.whole_file import write_whole
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
write_whole(Path(sys.argv[1]), bytes(2_000_000))
"""


def test_a_process_that_is_killed_while_it_writes_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "value"
    write_whole(path, b"before")
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_IT_WRITES, str(path)])
    assert killed.returncode == -signal.SIGXFSZ
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("without_name", [True, False])
def test_it_replaces_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_name: bool) -> None:
    if not without_name:
        monkeypatch.setattr(whole_file, "_WITHOUT_NAME", 0)
    path = tmp_path / "value"
    for content in (b"one", b"", b"three" * 100_000):
        write_whole(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_several_write_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "value"
    contents = [bytes([number]) * 50_000 for number in range(8)]
    threads = [
        threading.Thread(target=lambda content=content: [write_whole(path, content) for _ in range(30)])
        for content in contents
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        write_whole(tmp_path / "nowhere" / "value", b"x")
