"""What happens to a NetRunner, and what it wants done about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dfmesh.engine.frame_run import Frames
from dfmesh.engine.message_parts import Failure
from dfmesh.engine.tokens import Token
from dfmesh.netir import Frame

# Events


class FrameOpened(msgspec.Struct):
    """A parameter set begins here."""

    frame: Frame
    parameters: dict[str, Token]


class TokenArrived(msgspec.Struct):
    """Another site sent a token."""

    route: int
    frame: Frame
    token: Token


class TokensArrived(msgspec.Struct):
    """Another site sent several values along one route. None of them is a failure or a skip.

    Attributes:
        route: The route.
        frames: Their frames.
        tokens: The values.
    """

    route: int
    frames: Frames
    tokens: list[Token]


class ScopeEnded(msgspec.Struct):
    """A loop elsewhere has opened all its iterations below `frame`."""

    scope: int
    frame: Frame
    count: int
    failure: Failure | None


class IterationsDone(msgspec.Struct):
    """Another site is done with iterations of a loop of this one."""

    scope: int
    frames: Frames
    site: str


class CallReturned(msgspec.Struct):
    """A call ended with a value."""

    call: int
    value: Any


class CallsReturned(msgspec.Struct):
    """Several calls of one transition, which is no reduce, ended with values.

    Attributes:
        calls: The calls, in the order in which they ended; a range if their numbers follow one another.
        values: What they gave.
    """

    calls: Sequence[int]
    values: list[Any]


class CallRaised(msgspec.Struct):
    """A call, or the stream it returned, ended with an error.

    Attributes:
        call: The call.
        failure: What happened.
        passed_on: The failure is that of a stream which the call was fed with; it was reported where it began.
        open_text: Its text shows nothing of a value.
    """

    call: int
    failure: Failure
    passed_on: bool = False
    open_text: bool = False


class StreamOpened(msgspec.Struct):
    """A call returned a generator. Its items come one by one, each after a `PullStream`."""

    call: int


class StreamItems(msgspec.Struct):
    """The generator produced items.

    Attributes:
        call: Its call.
        values: The items.
        more: It goes on producing what it was asked for.
    """

    call: int
    values: list[Any]
    more: bool = False


class StreamEnded(msgspec.Struct):
    """The generator has no more items."""

    call: int


class KeyFound(msgspec.Struct):
    """A look-up in the cache found a value."""

    call: int
    value: Any


class KeyMissed(msgspec.Struct):
    """A look-up in the cache found nothing; this job is to compute the value."""

    call: int


class StreamItemsArrived(msgspec.Struct):
    """Another site sent items of a stream."""

    route: int
    frame: Frame
    values: list[Any]


class StreamEndArrived(msgspec.Struct):
    """Another site sent the last item of a stream before."""

    route: int
    frame: Frame
    failure: Failure | None


class StreamCreditArrived(msgspec.Struct):
    """Another site has taken items of a stream of this one; or it wants no more."""

    route: int
    frame: Frame
    count: int
    unwanted: bool = False


class LoopsResumed(msgspec.Struct):
    """Loops that were paused may open further iterations."""


class SiteGone(msgspec.Struct):
    """A site has died, as the failure says: nothing more comes from there."""

    failure: Failure


class FedItemsTaken(msgspec.Struct):
    """A call has taken items of a stream that it was fed with."""

    call: int
    input: int
    count: int


Event = (
    FrameOpened
    | TokenArrived
    | ScopeEnded
    | IterationsDone
    | TokensArrived
    | CallReturned
    | CallsReturned
    | CallRaised
    | StreamOpened
    | StreamItems
    | StreamEnded
    | StreamItemsArrived
    | StreamEndArrived
    | StreamCreditArrived
    | FedItemsTaken
    | LoopsResumed
    | SiteGone
    | KeyFound
    | KeyMissed
)

# Instructions


class StartCall(msgspec.Struct):
    """Call the adapter of a transition.

    Attributes:
        call: Number of the call.
        transition: Position of the transition in the net.
        frame: Its frame.
        arguments: By parameter name; a `StreamInput` stands for a stream that `FeedItem` feeds.
        fed: Inputs that are such streams.
    """

    call: int
    transition: int
    frame: Frame
    arguments: dict[str, Any]
    fed: tuple[int, ...] = ()


class StartCalls(msgspec.Struct):
    """Call the adapter of a transition for several frames; none of the calls is fed.

    Attributes:
        first: Number of the first call; the others follow it.
        transition: Position of the transition in the net.
        frames: Their frames.
        arguments: Of each call, by parameter name.
    """

    first: int
    transition: int
    frames: Frames
    arguments: list[dict[str, Any]]


class PullStream(msgspec.Struct):
    """Let the generator of a call produce its next items, at most `count`. Each is told of as soon as it is there."""

    call: int
    count: int


class CloseStream(msgspec.Struct):
    """Close the generator of a call, of which nobody wants more items. Answered by `StreamEnded`."""

    call: int


class SendToken(msgspec.Struct):
    """Send a token to another site. `transition` made it."""

    site: str
    route: int
    frame: Frame
    token: Token
    transition: int


class SendTokens(msgspec.Struct):
    """Send several values along one route to another site. `transition` made them."""

    site: str
    route: int
    frames: Frames
    tokens: list[Token]
    transition: int


class SendStreamItems(msgspec.Struct):
    """Send items of a stream to another site."""

    site: str
    route: int
    frame: Frame
    values: list[Any]
    transition: int


class SendStreamEnd(msgspec.Struct):
    """Tell another site that a stream has no more items."""

    site: str
    route: int
    frame: Frame
    failure: Failure | None


class SendStreamCredit(msgspec.Struct):
    """Tell the site that sends a stream that items of it were taken here; or that nobody here wants more."""

    site: str
    route: int
    frame: Frame
    count: int
    unwanted: bool = False


class FeedItem(msgspec.Struct):
    """Give an item of a stream to a call that goes on. `input` says to which of its streams it belongs."""

    call: int
    input: int
    value: Any


class FeedEnd(msgspec.Struct):
    """Tell a call that a stream has no more items for it."""

    call: int
    input: int
    failure: Failure | None


class SendScopeEnded(msgspec.Struct):
    """Tell another site that a loop of this one has opened all its iterations."""

    site: str
    scope: int
    frame: Frame
    count: int
    failure: Failure | None


class SendIterationsDone(msgspec.Struct):
    """Tell the site of a loop that this one is done with iterations."""

    site: str
    scope: int
    frames: Frames


class SendYield(msgspec.Struct):
    """Send a result to the homesite. `transition` is the yield."""

    transition: int
    place: str
    frame: Frame
    value: Any


class SendYields(msgspec.Struct):
    """Send several results to the homesite. `transition` is the yield."""

    transition: int
    place: str
    frames: Frames
    values: list[Any]


class LookUpKey(msgspec.Struct):
    """Look a key up in the site's cache. The number of the call names it from then on."""

    call: int
    key: bytes
    ttl: float | None
    wait: bool


class StoreValue(msgspec.Struct):
    """Keep the value of a key that was missed."""

    call: int
    value: Any


class ReleaseKey(msgspec.Struct):
    """No value will come for a key that was missed."""

    call: int


class PauseLoops(msgspec.Struct):
    """Answer with `LoopsResumed` when all else has had its turn, and there is room for what iterations send.

    Loops have opened as many iterations as one event may lead to. Those of a body without calls are over at once, so
    that all that the loop goes over would be done in this event.
    """


class ReportFailure(msgspec.Struct):
    """Tell of an error that began here: the homesite, or, if a loop tolerates it, the log of the job."""

    transition: int
    failure: Failure
    tolerated: bool


class KeepText(msgspec.Struct):
    """Write a failure to the log of this site, since a rule of residency keeps its text from others."""

    failure: Failure


class ReportFrame(msgspec.Struct):
    """Tell the homesite that a parameter set is done here, after the yields sent so far in it."""

    frame: Frame


Instruction = (
    StartCall
    | StartCalls
    | PullStream
    | CloseStream
    | SendToken
    | SendTokens
    | SendScopeEnded
    | SendIterationsDone
    | SendYield
    | SendYields
    | SendStreamItems
    | SendStreamEnd
    | SendStreamCredit
    | FeedItem
    | FeedEnd
    | LookUpKey
    | StoreValue
    | ReleaseKey
    | PauseLoops
    | ReportFailure
    | KeepText
    | ReportFrame
)
