"""Adapters that run in processes of their own."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dfmesh import register_type, this_call


@register_type
@dataclass
class Grid:
    cells: list[int]


def echo(value):
    if not isinstance(value, str):
        return value
    if value == "pid":
        return os.getpid()
    if value == "grid":
        return Grid([1, 2])
    if value == "lambda":
        return lambda: 1
    if value == "talk":
        print("printed in a process")
        logging.getLogger("isolated").warning("logged in a process")
    return value


class AsyncEcho:
    async def body(self, value):
        return value


def count(count, mark):
    try:
        for number in range(count):
            if mark:
                Path(mark).write_text(str(number))
            yield number
    finally:
        if mark:
            Path(f"{mark}.closed").touch()


async def async_count(count):
    for number in range(count):
        yield number


def total(items: Iterator[int]):
    return sum(items)


def length(items):
    return [type(items).__name__, len(items)]


def first(items: Iterator[int]):
    return next(items)


class Surroundings:
    def __init__(self, site, provider, factor):
        self.site = site
        self.provider = provider
        self.factor = factor

    def body(self, key, url, region):
        return [self.site.name, self.provider.name, self.factor, key, url, region, this_call().operation]


def fail(how):
    match how:
        case "raise":
            raise ValueError("no such luck")
        case "sys.exit":
            sys.exit(3)
        case "os._exit":
            os._exit(4)
        case "crash":
            ctypes.string_at(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "close":
            for path in Path("/proc/self/fd").iterdir():
                if path.is_socket():
                    os.close(int(path.name))
            time.sleep(60)


def flaky(mark):
    """Takes its process down the first time."""
    if not os.path.exists(mark):
        Path(mark).touch()
        os._exit(5)
    return "well"


def killed(mark, most):
    """Has its process killed as often as is said, and says then how often it was called."""
    with Path(mark).open("a") as file:
        file.write(".")
    calls = len(Path(mark).read_text())
    if calls <= most:
        os.kill(os.getpid(), signal.SIGKILL)
    return calls


class Burn:
    def body(self, how, mark):
        Path(mark).write_text(str(os.getpid()))
        try:
            if how == "hash":
                hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 2**31 - 1)
            elif how == "pattern":
                re.match(r"(a+)+$", "a" * 60 + "b")
            elif how == "deaf":
                ctypes.CDLL(None).signal(signal.SIGTERM, ctypes.c_void_p(1))  # SIG_IGN, from a thread
                re.match(r"(a+)+$", "a" * 60 + "b")
            else:
                time.sleep(300)
        finally:
            Path(f"{mark}.left").touch()
