"""Peers that die and live again on the simulator, and what becomes of the messages between them.

As with a supervisor and connections of its own making: each survivor is told of a death, the homesite after the others,
and what it sends before that is lost, while what it sends afterwards reaches the next life. A message of an earlier
life is not taken once its receiver knows of the death.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from dfmesh.engine.messages import AnyMessage

Deliver = Callable[[str, str, AnyMessage], None]
"""Takes source, destination and message."""


class Letter(NamedTuple):
    """A message under way.

    Attributes:
        source: Who sent it.
        destination: For whom it is.
        source_life: Which life of the sender sent it.
        destination_life: Which life of the receiver it is for.
        message: The message.
    """

    source: str
    destination: str
    source_life: int
    destination_life: int
    message: AnyMessage


class SimulatedNetwork:
    """Who lives, who knows of whose death, and what waits to be taken.

    Attributes:
        alive: Peers that live.
    """

    def __init__(self, peers: Iterable[str], deliver: Deliver) -> None:
        """Begin with all peers alive.

        Args:
            peers: Their names.
            deliver: Gets each message that arrives.
        """
        self.alive = set(peers)
        self._lives = dict.fromkeys(self.alive, 1)
        # Observer and peer: with which life of the peer the observer is connected, or will be.
        self._known: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], deque[Letter]] = {}
        # Peers that do not meet yet: until which life of the other the first one has to wait.
        self._parted: dict[tuple[str, str], int] = {}
        self._deliver = deliver

    def life(self, name: str) -> int:
        """Give which life of a peer it is, or was if it is dead."""
        return self._lives[name]

    def letter(self, source: str, destination: str, message: AnyMessage) -> Letter:
        """Make a message ready to be sent."""
        return Letter(source, destination, self._lives[source], self._expected(source, destination), message)

    def _expected(self, observer: str, peer: str) -> int:
        return self._lives[peer] if observer == peer else self._known.get((observer, peer), 1)

    def arrived(self, letter: Letter) -> None:
        """A message has come to its destination: hand it over, drop it, or let it wait for the receiver."""
        pair = (letter.source, letter.destination)
        if pair in self._held:
            self._held[pair].append(letter)
        elif self._waits(letter):
            self._held[pair] = deque([letter])
        elif self._fits(letter):
            self._deliver(letter.source, letter.destination, letter.message)

    def _waits(self, letter: Letter) -> bool:
        source, destination = letter.source, letter.destination
        lives, known = self._lives[destination], self._expected(destination, source)
        if letter.destination_life < lives or letter.source_life < known:
            return False  # It is too late for it.
        parted = letter.destination_life > self._parted.get((source, destination), letter.destination_life)
        early = letter.destination_life > lives or letter.source_life > known or parted
        return early or (destination not in self.alive and letter.destination_life == lives + 1)

    def _fits(self, letter: Letter) -> bool:
        source, destination = letter.source, letter.destination
        return (
            destination in self.alive
            and letter.destination_life == self._lives[destination]
            and letter.source_life == self._expected(destination, source)
        )

    def die(self, name: str) -> None:
        """A peer dies."""
        self.alive.discard(name)

    def revive(self, name: str) -> None:
        """A peer lives again, and is to be connected to the lives of the others that are or will be."""
        self._lives[name] += 1
        self.alive.add(name)
        for other in self._lives:
            if other != name:
                self._known[name, other] = self._lives[other] + (other not in self.alive)
        self._release(lambda pair: pair[1] == name)

    def part(self, peer: str, name: str) -> None:
        """Keep a peer from the next life of one that has just died."""
        self._parted[peer, name] = self._lives[name]

    def meet(self, peer: str, name: str, life: int) -> None:
        """Let a peer meet the next life of another, after the given one."""
        if self._parted.get((peer, name)) == life:
            del self._parted[peer, name]
            self._release(lambda pair: pair == (peer, name))

    def is_news(self, observer: str, name: str, life: int) -> bool:
        """Whether a peer does not know yet that a life of another has ended."""
        return self._expected(observer, name) <= life

    def note(self, observer: str, name: str, life: int) -> None:
        """A peer knows now that a life of another has ended; what the next one has sent comes at once."""
        self._known[observer, name] = life + 1
        self._release(lambda pair: pair == (name, observer))

    def _release(self, concerned: Callable[[tuple[str, str]], bool]) -> None:
        for pair in [pair for pair in self._held if concerned(pair)]:
            letters = self._held.pop(pair)
            while letters and not self._waits(letters[0]):
                letter = letters.popleft()
                if self._fits(letter):
                    self._deliver(letter.source, letter.destination, letter.message)
            if letters:
                self._held[pair] = letters
