"""Adapters that do not end by themselves. They write down when they begin and when they are left."""

from __future__ import annotations

import asyncio
import queue
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dfmesh import this_call


@contextmanager
def marked(mark: str) -> Iterator[None]:
    Path(f"{mark}.begun").touch()
    try:
        yield
    finally:
        Path(f"{mark}.left").touch()


def add(a, b):
    return a + b


def spin():
    while True:
        sum(range(100))


def spin_and_catch():
    while True:
        try:
            spin()
        except Exception:
            continue


def poll():
    while not this_call().cancelled:
        this_call().sleep(60)


def read_connection():
    ours, theirs = socket.socketpair()
    with theirs, ours.makefile("rb") as file:
        file.readline()


def stay_in_c():
    re.match(r"(a+)+$", "a" * 60 + "b")


def wait_for_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


WAITS: dict[str, Callable[[], object]] = {
    "spin": spin,
    "spin and catch": spin_and_catch,
    "sleep": lambda: time.sleep(300),
    "event": lambda: threading.Event().wait(),
    "queue": lambda: queue.Queue().get(),
    "command": lambda: subprocess.run(["sleep", "300"], check=True),
    "connection": read_connection,
    "poll": poll,
    "lock": wait_for_lock,
    "C": stay_in_c,
}


class Waiting:
    def body(self, how, mark):
        with marked(mark):
            WAITS[how]()


class Counting:
    def body(self, how, mark):
        with marked(mark):
            yield 0
            WAITS[how]()
            yield 1


class AsyncWaiting:
    async def body(self, how, mark):
        with marked(mark):
            while True:
                try:
                    await asyncio.sleep(300)
                except asyncio.CancelledError:
                    if how != "catch":
                        raise


class AsyncCounting:
    async def body(self, how, mark):
        with marked(mark):
            yield 0
            await asyncio.sleep(300)
            yield 1
