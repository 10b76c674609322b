"""JobArrivals: what other sites send for one job, checked, decoded and counted, as events for its NetRunner."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dfmesh.engine import events, messages
from dfmesh.engine.bound_texts import keep_text
from dfmesh.engine.carrier import Carrier
from dfmesh.engine.events import Event
from dfmesh.engine.frame_run import depths_of
from dfmesh.engine.message_parts import Failure, Payload
from dfmesh.engine.messages import AnyMessage
from dfmesh.engine.portions import PORTION_VALUES
from dfmesh.engine.tokens import SKIPPED, Failed, NotSelected, Token
from dfmesh.engine.wiring import Target, WiredNet
from dfmesh.errors import UnknownClassError, ValueDecodingError
from dfmesh.netir import Frame


class JobArrivals:
    """Takes in the messages of other sites that belong to one job at one site.

    Attributes:
        received: Messages received so far that their senders count, by sending site.
        lost: Sites that have died; streams from there have broken.
        may_learn: Whether a value of an unknown class raises UnknownClassError, since the class may become known.
        broken_streams: Streams that ended early, since an item could not be read; what still comes is dropped.
    """

    def __init__(
        self,
        wired: WiredNet,
        senders: Mapping[int, tuple[str, int]],
        carrier: Carrier,
        report_failure: Callable[[Failure], None],
    ) -> None:
        """Begin with none.

        Args:
            wired: The site's part of the job.
            senders: As `WiredNet.senders` gives them.
            carrier: Decodes the values.
            report_failure: Gets told of a value that cannot be decoded.
        """
        self.received: dict[str, int] = {}
        self.lost: set[str] = set()
        self.may_learn = False
        self.broken_streams: set[tuple[int, Frame]] = set()
        self._site = wired.net.site
        self._homesite = wired.net.homesite
        self._texts = wired.texts
        self._scopes = wired.scopes
        self._expected = senders
        self._arriving = wired.arrivals
        self._parameters = wired.parameters
        self._carrier = carrier
        self._report_failure = report_failure

    def out_of_place(self, peer: str, message: AnyMessage) -> bool:
        """Tell whether a message is not that peer's to send."""
        match message:
            case messages.TokenPackage(route=route, frame=frame):
                return self._expected.get(route) != (peer, len(frame))
            case messages.TokenPackages(route=route, frames=frames):
                return any(self._expected.get(route) != (peer, depth) for depth in depths_of(frames))
            case messages.StreamPackage(route=route, frame=frame):
                return self._expected.get(route) != (peer, len(frame)) or peer in self.lost
            case messages.IterationsDone(scope=number):
                scope = self._scopes.get(number)
                return scope is None or scope.head_site != self._site or peer not in scope.participants
            case messages.ScopeEnded(scope=number, frame=frame):
                scope = self._scopes.get(number)
                return scope is None or scope.head_site != peer or scope.depth != len(frame) + 1
            case messages.StreamCredit():
                return False
            case messages.RouteResidency(route=route):
                return self._expected.get(route, ("", 0))[0] != peer
            case _:
                return peer != self._homesite

    def events_of(self, peer: str, message: AnyMessage) -> list[Event] | None:
        """Give what a message makes happen; None if it is none that sites send to one another."""
        happened: list[Event]
        match message:
            case messages.TokenPackage():
                happened = [events.TokenArrived(message.route, message.frame, self._token_of(message))]
            case messages.TokenPackages():
                happened = self._tokens(message)
            case messages.IterationsDone(scope=scope, frames=frames):
                happened = [events.IterationsDone(scope, frames, peer)]
            case messages.ScopeEnded(scope=scope, frame=frame, count=count, failure=failure):
                happened = [events.ScopeEnded(scope, frame, count, failure)]
            case messages.StreamPackage():
                happened = self._stream_items(message)
            case messages.StreamCredit(route=route, frame=frame, count=count, unwanted=unwanted):
                happened = [events.StreamCreditArrived(route, frame, count, unwanted)]
            case _:
                return None
        self.received[peer] = self.received.get(peer, 0) + 1
        return happened

    def frame_opened(self, message: messages.OpenFrame) -> events.FrameOpened:
        """Give what it means that the homesite opens a parameter set."""
        frame = message.frame
        places = self._parameters
        given = {name: self._unpacked(payload, frame, places.get(name)) for name, payload in message.parameters.items()}
        return events.FrameOpened(frame, given)

    def _stream_items(self, package: messages.StreamPackage) -> list[Event]:
        route, frame = package.route, package.frame
        if (route, frame) in self.broken_streams:
            if package.payload is None:
                self.broken_streams.discard((route, frame))
            return []
        if package.payload is None:
            return [events.StreamEndArrived(route, frame, package.failure)]
        items = self._unpacked(package.payload, frame, self._arriving[route], package.count)
        if isinstance(items, Failed):
            self.broken_streams.add((route, frame))
            return [events.StreamEndArrived(route, frame, items.failure)]
        return [events.StreamItemsArrived(route, frame, items if package.count else [items])]

    def _tokens(self, package: messages.TokenPackages) -> list[Event]:
        route, frames = package.route, package.frames
        if not frames:
            return []
        tokens = self._unpacked(package.payload, frames[0], self._arriving[route], len(frames))
        if isinstance(tokens, Failed):
            # A run may claim to be longer than any list could be.
            return [events.TokenArrived(route, frame, tokens) for frame in frames[:PORTION_VALUES]]
        return [events.TokensArrived(route, frames, tokens)]

    def _token_of(self, package: messages.TokenPackage) -> Token:
        if package.payload is not None:
            return self._unpacked(package.payload, package.frame, self._arriving[package.route])
        if package.failure is not None:
            return NotSelected(package.failure) if package.not_selected else Failed(package.failure)
        return SKIPPED if package.skipped else None

    def _unpacked(self, payload: Payload, frame: Frame, targets: list[Target] | None, count: int = 0) -> Token:
        """Give the value of a payload, or the list of so many values, or how that failed.

        Args:
            payload: What arrived.
            frame: For which frame, the first one of several.
            targets: Where it goes.
            count: How many values it has to be; 0 for one that is no list of them.

        Raises:
            UnknownClassError: it has an instance of a class that may become known.
        """
        try:
            value = self._carrier.unpack(payload)
            if count and (type(value) is not list or len(value) != count):
                raise ValueDecodingError(f"what arrived is no list of {count} values")
            return value
        except ValueDecodingError as error:
            if isinstance(error, UnknownClassError):
                if self.may_learn:
                    raise
                error = error.at(f"at site {self._site!r}")
            taker = targets[0][0].ir if targets else None
            operation, node, location = (
                ("decode", "", "") if taker is None else (taker.name, taker.node, taker.location)
            )
            failure = Failure(self._site, operation, node, frame, location, type(error).__name__, str(error))
            to_client = failure
            if self._texts is not None and taker is not None and not error.shows_no_value:
                full = failure
                to_client, failure = self._texts.told(taker.id, full)
                if failure is not full:
                    keep_text(full)
            self._report_failure(to_client)
            return Failed(failure)
