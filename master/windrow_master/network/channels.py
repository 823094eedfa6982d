"""The interface through which this package reaches into a workload: channels, opened by host; the trunk implements it.
Pure.

Raises HostUnreachable when no route to the host is open, LinkClosed when one breaks.
"""

from typing import Protocol

from windrow_proto.ids import HostId
from windrow_proto.messages import ChannelClose, ChannelData, ChannelOpen


class ChannelStream(Protocol):
    """One open channel. Credits bound what is under way in each direction."""

    async def send(self, data: bytes, stream: int = 0) -> None:
        """Send at most 64 KiB; waits while the host is slow. Raises LinkClosed."""

    async def receive(self) -> ChannelData | ChannelClose:
        """Return the next message; ChannelClose once, as the last. Raises LinkClosed."""

    async def close(self, closing: ChannelClose) -> None:
        """Send no more; safe to call twice. What still comes, up to the host's own ChannelClose, can be received."""


class ChannelBroker(Protocol):
    """Opens channels to hosts."""

    async def open(self, host_id: HostId, opening: ChannelOpen) -> ChannelStream:
        """A channel to a workload of this host."""
