"""The client's side of a target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AnyMessage, SiteLost

if TYPE_CHECKING:
    from dfmesh.targets.up.host_record import HostRecord
    from dfmesh.targets.up.messages import JobAttached, JobEntry

OnOutput = Callable[[str, str], None]
"""Takes a site and a line that it, or an adapter there, has printed; called on the event loop, and must not block."""


class FederationRunner(Protocol):
    """Starts the sites of a federation, supervises them, and connects the client to the homesite.

    All calls are made on the client's event loop.
    """

    async def start(self, on_message: Callable[[AnyMessage], None], on_lost: Callable[[SiteLost], None]) -> None:
        """Start the sites and connect to the homesite.

        Args:
            on_message: Gets each message that the homesite sends to this client, in order.
            on_lost: Told when the homesite is lost, and why. The runner restarts it by itself; the jobs that this
                client had there are gone.

        Raises:
            SessionError: a site did not start; says which, and what it printed.
        """
        ...

    async def close(self) -> None:
        """Stop all sites and free everything. Idempotent; ends within seconds also when sites hang."""
        ...

    def pack(self, value: Any) -> Payload:
        """As `Carrier.pack`."""
        ...

    def unpack(self, payload: Payload) -> Any:
        """As `Carrier.unpack`."""
        ...

    def send(self, message: AnyMessage) -> int:
        """Queue a message for the homesite and return its size in bytes."""
        ...


@runtime_checkable
class DirectRunner(Protocol):
    """A runner that can send from any thread, which saves waking the client's event loop."""

    def send_at_once(self, message: AnyMessage, before: Callable[[], None]) -> bool:
        """Send a message from the thread of the caller, if nothing waits to be sent before it.

        Args:
            message: The message.
            before: Called just before it is sent. The homesite is not lost until `send_at_once` returns.

        Returns:
            Whether it was sent; if not, `before` was not called.
        """
        ...


class HostingRunner(FederationRunner, Protocol):
    """The runner of a target whose jobs outlive their client.

    A job may be named by the beginning of its id. All methods raise `SessionError` if there is no such job, if there
    are several, or if the host is gone.
    """

    @property
    def host(self) -> HostRecord:
        """What the host says of itself."""
        ...

    async def list_jobs(self) -> tuple[JobEntry, ...]:
        """List all jobs that the host knows of, the oldest first."""
        ...

    async def attach(self, prefix: str, make: Callable[[JobAttached], Callable[[AnyMessage], None]]) -> tuple[str, int]:
        """Follow a job from its first result on.

        Args:
            prefix: Its id, or the beginning of that.
            make: Given what the host says of the job, gives what takes its messages. It is called on the event loop,
                before any of them comes.

        Returns:
            The whole id, and the number to detach with.
        """
        ...

    async def detach(self, job: str, number: int) -> None:
        """Follow a job no longer; the number is 0 for a job that this client has submitted.

        All that was sent for the job before has then been taken in by the host.
        """
        ...

    async def cancel(self, prefix: str, reason: str) -> str:
        """Cancel a job, whoever submitted it, and give its whole id."""
        ...

    async def forget(self, prefix: str) -> str:
        """Have the host forget a job that is over, and give its whole id."""
        ...

    async def lines(self, prefix: str, on_lines: Callable[[bytes, bool], None], *, follow: bool) -> None:
        """Give what the adapters of a job print and log or, if it is empty, all that sites print.

        Args:
            prefix: Of the job.
            on_lines: Gets a part of the lines `time site text`, cut anywhere, and whether it is the last one.
            follow: Whether to go on with what they print from now on.
        """
        ...

    async def stop_host(self) -> None:
        """Stop the sites and the host."""
        ...
