"""Channels to workloads over a host's route: files, logs and exec, with credits both ways and bounded queues.

A channel belongs to one route. When the route ends, so does the channel: whoever reads it gets LinkClosed.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from windrow_proto.errors import InvalidInput, LinkClosed
from windrow_proto.messages import (
    CHANNEL_CHUNK_BYTES,
    Channel,
    ChannelClose,
    ChannelCredit,
    ChannelData,
    ChannelOpen,
)

CLOSE_PATIENCE: Final = 60
"""Seconds for a host to answer a close."""
SMALL_BYTES: Final = 64
"""The credit that a chunk costs beside its data, so that empty chunks are not free."""


class ChannelPipe:
    """The Master's end of one channel."""

    def __init__(
        self, channel_id: int, credit_bytes: int, put: Callable[[Channel], None], forget: Callable[[int], None]
    ) -> None:
        """credit_bytes: what each side may send at first, a chunk at least. put: sends a step, raises LinkClosed;
        forget: the route drops the channel."""
        self._id, self._put, self._forget = channel_id, put, forget
        self._credit = self._window = credit_bytes
        self._consumed = self._queued = 0
        self._arrived: deque[ChannelData | ChannelClose] = deque()
        self._wake = asyncio.Event()
        self._failure: LinkClosed | None = None
        self._is_over = self._is_closing = False
        self._sweeps = 0

    def open(self, opening: ChannelOpen) -> None:
        """Ask the host for it."""
        self._put(Channel(self._id, opening))

    async def send(self, data: bytes, stream: int = 0) -> None:
        """Send at most 64 KiB; waits for credit for all of it, since a host ends a channel that sends one byte more.
        Raises LinkClosed when the channel or the route has ended."""
        if len(data) > CHANNEL_CHUNK_BYTES:
            raise InvalidInput(f"A chunk has at most {CHANNEL_CHUNK_BYTES} bytes.")
        while self._credit < len(data) and self._failure is None and not self._is_ended:
            await self._wait()
        self._raise_if_ended()
        if self._is_ended:
            raise LinkClosed("The channel has ended.")
        self._credit -= len(data)
        self._put(Channel(self._id, ChannelData(data, stream)))

    async def receive(self) -> ChannelData | ChannelClose:
        """Return the next message; ChannelClose once, as the last."""
        while not self._arrived:
            self._raise_if_ended()
            await self._wait()
        step = self._arrived.popleft()
        if isinstance(step, ChannelClose):
            self._is_over = True
            return step
        size = len(step.data)
        self._queued -= size + SMALL_BYTES
        self._consumed += size
        if self._consumed >= self._window // 2 and self._failure is None:
            self._put(Channel(self._id, ChannelCredit(self._consumed)))
            self._consumed = 0
        return step

    async def close(self, closing: ChannelClose) -> None:
        """Send no more; safe to call twice, and after the other side ended it. What still comes, up to the host's own
        ChannelClose, can be received."""
        if self._is_closing or self._failure is not None or self._is_over:
            return
        self._is_closing = True
        try:
            self._put(Channel(self._id, closing))
        except LinkClosed:
            pass
        self._wake.set()

    # --- called by the route ---------------------------------------------------------------------------------------

    def sweep(self) -> bool:
        """Called each second: whether the host has not answered a close for so long that the channel is forgotten."""
        self._sweeps += self._is_closing
        return self._sweeps > CLOSE_PATIENCE

    def on_step(self, step: ChannelData | ChannelCredit | ChannelClose) -> None:
        """A step of the host's; one that sends more than it was allowed loses its channel."""
        if isinstance(step, ChannelCredit):
            self._credit = min(self._credit + step.credit_bytes, 4 * self._window)
        elif isinstance(step, ChannelClose):
            self._arrived.append(step)
            self._forget(self._id)
        else:
            self._queued += len(step.data) + SMALL_BYTES
            if self._queued > 2 * self._window + CHANNEL_CHUNK_BYTES:
                self.fail("the host sent more than it may")
                return
            self._arrived.append(step)
        self._wake.set()

    def fail(self, reason: str) -> None:
        """The route has ended."""
        self._failure = LinkClosed(f"The channel broke: {reason}.")
        self._forget(self._id)
        self._wake.set()

    @property
    def _is_ended(self) -> bool:
        """True if nothing more may be sent: closed here, or by a step that was not read yet."""
        return self._is_closing or self._is_over or any(isinstance(step, ChannelClose) for step in self._arrived)

    def _raise_if_ended(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._is_over:
            raise LinkClosed("The channel has ended.")

    async def _wait(self) -> None:
        self._wake.clear()
        await self._wake.wait()
