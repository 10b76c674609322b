"""Adapters that print and log in all ways."""

import asyncio
import contextvars
import logging
import os
import sys
import threading
import time

from dfmesh import this_call

print("imported")

_log = logging.getLogger("loud")


def say(text):
    print(text)
    sys.stderr.write(f"{text} on stderr\n")
    _log.warning("%s logged", text)
    return text


async def say_in_coroutine(text):
    await asyncio.sleep(0)
    say(text)
    await asyncio.to_thread(print, f"{text} on another thread")
    return text


def count(text):
    print(f"{text} begins")
    for number in range(2):
        print(f"{text} {number}")
        yield number


async def count_in_coroutine(text):
    print(f"{text} begins")
    for number in range(2):
        await asyncio.sleep(0)
        print(f"{text} {number}")
        yield number


def raw(text):
    sys.stdout.write(text)
    return len(text)


def flood(count):
    for number in range(count):
        print(number)
    return count


def in_threads(text):
    this_call()
    context = contextvars.copy_context()
    for function in (lambda: print(f"{text} alone"), lambda: context.run(print, f"{text} in its context")):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()
    return text


def fail(text):
    print(text)
    raise ValueError(text)


def join(texts):
    return " ".join(texts)


def hold(text, gate):
    print(text)
    while not os.path.exists(gate):
        time.sleep(0.01)
    return text
