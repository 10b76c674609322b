"""Who edits an adapter and opens a new session gets the new one, also on target `inproc`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dfmesh import Federation, Pipeline, Session, Yield

FILE = """
dfm: 1.0.0
operations: {edit.Say: {parameters: {}}}
sites: {lab: {interface: {edit.Say: edited_adapter.say}}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "edit.dfm.yaml").write_text(FILE)
    write(tmp_path, "first")
    yield tmp_path / "edit.dfm.yaml"
    for name in ("edited_adapter", "edited_words"):
        sys.modules.pop(name, None)


def write(folder: Path, word: str) -> None:
    (folder / "edited_adapter.py").write_text("import edited_words\ndef say(): return edited_words.WORD\n")
    (folder / "edited_words.py").write_text(f"WORD = {word!r}\n")


def say(session: Session) -> Any:
    with Pipeline() as pipeline:
        Yield(session.federation.ops.edit.Say())
    return session.run(pipeline).one()


@pytest.mark.parametrize("target", ["inproc", "local"])
def test_a_new_session_has_the_new_adapter(file: Path, target: str) -> None:
    for word in ("first", "second one", "the third one"):
        write(file.parent, word)
        with Federation.load(file).session(target=target) as session:
            assert say(session) == word


def test_modules_that_a_session_uses_stay(file: Path) -> None:
    with Federation.load(file).session(target="inproc") as session:
        assert say(session) == "first"
        write(file.parent, "second one")
        with Federation.load(file).session(target="inproc") as other:
            assert say(other) == "first"
    with Federation.load(file).session(target="inproc") as session:
        assert say(session) == "second one"


def test_a_module_that_the_user_has_imported_stays(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(file.parent))
    import edited_words  # type: ignore[import-not-found]

    with Federation.load(file).session(target="inproc") as session:
        assert say(session) == "first"
    write(file.parent, "second one")
    with Federation.load(file).session(target="inproc") as session:
        assert say(session) == "first"
    assert sys.modules["edited_words"] is edited_words
