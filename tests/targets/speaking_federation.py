"""A federation whose adapters print, log, warn and raise, written to a directory."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

FEDERATION = """
dfm: 1.0.0
info: {code-package: talk}
operations:
  talk.Say: {parameters: {how: {type: string}, count: {type: integer, default: 1}}, required: [how]}
  talk.Fail: {parameters: {how: {type: string}}, required: [how]}
sites:
  app: {}
  us:
    interface: &all
      "#/operations/talk.Say": {adapter: speaking.say}
      "#/operations/talk.Fail": {adapter: speaking.fail}
  ca:
    interface: *all
"""

ADAPTERS = """
import json
import logging
import os
import subprocess
import sys
import warnings

import speaking_stations


def say(how, count=1):
    if how == "print":
        print("careful")
        print("and on stderr", file=sys.stderr)
    elif how == "log":
        logging.getLogger(__name__).info("quiet")
        logging.getLogger(__name__).warning("loud")
    elif how == "warn":
        warnings.warn("mind the gap")
    elif how == "configured":
        logging.basicConfig(format="my own %(message)s", level=logging.INFO, force=False)
        logging.getLogger("other").info("word")
    elif how == "child":
        subprocess.run(["echo", "from a child"], check=True)
    elif how == "part":
        sys.stdout.write("no end")
        sys.stdout.flush()
    elif how == "bar":
        sys.stderr.write("".join(f"\\r{percent}%" for percent in range(101)) + "\\n")
    elif how == "bytes":
        os.write(1, b"caf\\xc3\\xa9 \\xff\\n")
    elif how == "flood":
        for number in range(count):
            print("line", number, "x" * 50)
    return how


def fail(how):
    if how == "own":
        return [1, 2][99]
    if how == "deep":
        return speaking_stations.find("deep")
    if how == "library":
        return json.loads("{")
    if how == "from":
        try:
            return speaking_stations.find("from")
        except LookupError as error:
            raise RuntimeError("no such station") from error
    if how == "while":
        try:
            return speaking_stations.find("while")
        except LookupError:
            return len(None)
    if how == "hidden":
        try:
            return speaking_stations.find("hidden")
        except LookupError:
            raise RuntimeError("just this") from None
    if how == "group":
        raise ExceptionGroup("two things", [ValueError("one"), ValueError("other")])
    if how == "unsendable":
        return object()
"""

STATIONS = """


def find(name):
    return {}[name]
"""


def write_federation(directory: Path) -> Path:
    """Write the federation; gives its file."""
    (directory / "speaking.py").write_text(ADAPTERS, "utf-8")
    (directory / "speaking_stations.py").write_text(STATIONS, "utf-8")
    file = directory / "talk.dfm.yaml"
    file.write_text(dedent(FEDERATION), "utf-8")
    return file


def line_of(text: str) -> int:
    """Give the line of the adapters' module that has a text."""
    return next(number for number, line in enumerate(ADAPTERS.splitlines(), 1) if text in line)
