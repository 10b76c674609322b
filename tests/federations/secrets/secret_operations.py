"""Adapters that tell their secrets."""

from __future__ import annotations

import json
import logging
import sys
from urllib.parse import quote


def fail(how: str, key: str) -> object:
    if how == "unsendable":
        return {key: object()}
    if how == "cause":
        try:
            raise KeyError(key)
        except KeyError as error:
            raise ValueError("the server says no") from error
    raise ValueError({"plain": key, "quoted": repr(key), "json": json.dumps({"key": key}), "address": quote(key)}[how])


def say(how: str, key: str) -> None:
    if how == "log":
        logging.getLogger("client").warning("login with %s", key)
    elif how == "logger":
        logging.getLogger(f"client of {key}").warning("login with %s", key)
    elif how == "pieces":
        half = len(key) // 2
        sys.stdout.write(key[:half])
        sys.stdout.write(f"{key[half:]}\n")
    else:
        print("login with", key, file=sys.stderr if how == "stderr" else sys.stdout)


def give(key: str, short: str) -> list[object]:
    print("the short one is", short)
    return [key, key.encode()]
