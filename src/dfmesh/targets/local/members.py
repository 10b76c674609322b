"""Who takes part in a federation on this machine, as its supervisor sees them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Protocol

from dfmesh.targets.local.call_log import make_table
from dfmesh.targets.local.control import Introduce
from dfmesh.targets.local.link import Link
from dfmesh.targets.local.process import SiteProcess


class Member(Protocol):
    """Somebody who can be introduced to others."""

    @property
    def name(self) -> str:
        """Its name as a peer."""
        ...

    @property
    def generation(self) -> int:
        """Which of its lives this is."""
        ...

    @property
    def port(self) -> int:
        """Where it can be called."""
        ...

    def introduce(self, introduction: Introduce, connection: socket.socket | None) -> None:
        """Tell it how it is connected to a peer."""
        ...


class Client:
    """The one client, in our own process; it never dies before us, and is never called."""

    generation = 1
    port = 0

    def __init__(self, name: str, introduce: Callable[[Introduce, socket.socket | None], None]) -> None:
        self.name = name
        self.introduce = introduce


class Site:
    """A site through all of its lives.

    Attributes:
        name: Its name.
        generation: Counts its lives.
        process: Its process; None while it waits for a restart.
        control: The control connection of this life.
        ready: Whether it may be introduced.
        port: Where it can be called; 0 if it takes sockets.
        deaths: Deaths in a row that came soon after a start.
        started_at: When this life began, on the clock of the event loop.
        calls: Descriptor of its table of calls.
        verdict: Why we ended it ourselves; empty if we did not.
        last_output: What its previous process printed.
        traffic: The answer that was asked for.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.generation = 0
        self.process: SiteProcess | None = None
        self.control: Link | None = None
        self.ready = False
        self.port = 0
        self.deaths = 0
        self.started_at = 0.0
        self.calls = make_table()
        self.verdict = ""
        self.last_output = ""
        self.traffic: asyncio.Future[dict[str, int]] | None = None

    @property
    def output(self) -> str:
        """What its present process printed, or the last one if there is none."""
        return self.last_output if self.process is None else self.process.output

    def say(self, message: Any) -> None:
        """Send it a control message, if it lives."""
        if self.control is not None:
            self.control.send(message)

    def introduce(self, introduction: Introduce, connection: socket.socket | None) -> None:
        """Tell it how it is connected to a peer."""
        if self.control is None:
            return
        if connection is None:
            self.control.send(introduction)
        else:
            self.control.send_connection(introduction, connection)

    def answer_traffic(self, received: dict[str, int]) -> None:
        """Give the answer to whoever asked."""
        if self.traffic is not None and not self.traffic.done():
            self.traffic.set_result(received)
        self.traffic = None

    def end_life(self) -> None:
        """Forget what belongs to the process that ended."""
        if self.process is not None:
            self.last_output = self.process.output
        self.process = self.control = None
        self.ready = False
        self.answer_traffic({})
