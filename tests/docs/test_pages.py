"""The pages of docs/ that are one script each, the example of the README, and what is said of commands: all true."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from dfmesh.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
DFMESH = [sys.executable, "-c", "from dfmesh.cli import main; main()"]
PAGES = ("docs/pipelines.md", "docs/discovery.md", "docs/jobs.md", "docs/caching.md")
_BLOCK = re.compile(r"^```(yaml|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_FILE_NAME = re.compile(r"# (\S+\.\w+)\n")


def write_files(page: Path, directory: Path) -> Path:
    """Write the files of a page, and all its other Python blocks as one script with the page's line numbers."""
    text = page.read_text(encoding="utf-8")
    script: list[str] = []
    for block in _BLOCK.finditer(text):
        name = _FILE_NAME.match(block[2])
        if name:
            (directory / name[1]).write_text(block[2], encoding="utf-8")
        elif block[1] == "python":
            line = text.count("\n", 0, block.start(2))
            script += [""] * (line - len(script)) + block[2].splitlines()
    path = directory / "script.py"
    path.write_text("\n".join(script) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script = write_files(ROOT / page, tmp_path)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, f"the lines below are those of {page}\n{done.stderr}"


def test_the_answer_that_the_page_on_discovery_shows(tmp_path: Path) -> None:
    page = ROOT / "docs/discovery.md"
    done = subprocess.run(
        [sys.executable, write_files(page, tmp_path)], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    said = re.sub(r"script\.py:\d+", "script.py:8", done.stdout.replace(f"{tmp_path}/", ""))
    shown = page.read_text(encoding="utf-8").partition("    sky.Read (read)")
    lines = "".join(shown[1:]).partition("\n\n")[0].splitlines()
    assert lines.pop() == "      ..."
    assert said.splitlines()[: len(lines)] == [line[4:] for line in lines]


def test_the_example_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_files(ROOT / "README.md", tmp_path)
    done = subprocess.run([sys.executable, "sums.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["[3, 5, 7] 15", "(0, 995) 1991"]
    commands = re.findall(r"`dfmesh ([^`]* sums\.py[^`]*)`", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(commands) == 2
    for command in commands:
        done = subprocess.run(
            [*DFMESH, *shlex.split(command)], cwd=tmp_path, capture_output=True, text=True, timeout=100
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "dfmesh-results" / "total").is_dir()


def commands_of(page: Path) -> list[list[str]]:
    """Words of each command of dfmesh that a page shows, without what is said of it."""
    text = page.read_text(encoding="utf-8").replace("`\n", "` \n")
    shown = re.findall(r"^(?: {4}|\$ )(?:\$ )?dfmesh ([^\n]*(?:\n {20,}[^\n]*)*)", text, re.MULTILINE)
    named = re.findall(r"`dfmesh (--?\w[^`]*|\w[^`]*)`", text)
    return [re.sub(r"[\[\]|]|\.\.\.", " ", line.partition("#")[0]).split() for line in (*shown, *named)]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name
)
def test_every_command_that_a_page_shows_is_there(page: Path) -> None:
    for words in commands_of(page):
        command: Any = typer.main.get_command(app)
        rest = words
        while rest and hasattr(command, "commands") and not rest[0].startswith("-"):
            assert rest[0] in command.commands, words
            command, rest = command.commands[rest[0]], rest[1:]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        given = {word.partition("=")[0] for word in rest if word.startswith("-")}
        assert given <= known | {"--help"}, words


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name
)
def test_every_link_leads_somewhere(page: Path) -> None:
    prose = re.sub(
        r"^(```.*?^```|    .*?$)|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        path, _, anchor = target.partition("#")
        if ":" in path:
            continue
        other = page.parent / path if path else page
        assert other.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", other.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}, target


def test_every_page_is_in_the_table_of_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name}" not in text] == []
