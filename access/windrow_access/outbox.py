"""Frames that wait to go down to one agent: urgent before bulk, bounded; an agent that does not read is
disconnected."""

import asyncio
from collections.abc import Awaitable, Callable

from windrow_proto.errors import LinkClosed, WindrowError
from windrow_proto.v1 import link_pb2

CAP_BYTES = 4 << 20
"""Channel credits keep an honest agent far below; one that stopped reading holds at most this much."""
FRAME_OVERHEAD_BYTES = 1 << 10
"""Of one frame in memory beside what it carries, as measured: counted lower, empty frames fill a machine."""


class Outbox:
    """Frames for one agent stream. put never waits; get waits, and has one caller at a time."""

    def __init__(self, cap_bytes: int = CAP_BYTES) -> None:
        self._cap = cap_bytes
        # Lists, and a future while it is waited for: a deque or an Event of each agent's takes a kilobyte when empty.
        self._urgent: list[link_pb2.Frame] = []
        self._bulk: list[link_pb2.Frame] = []
        self._bytes = 0
        self._awaited: asyncio.Future[None] | None = None
        self._ended: WindrowError | None = None
        self._handing: asyncio.Timeout | None = None

    def put(self, frame: link_pb2.Frame) -> None:
        """Queue a frame; past the cap the stream is ended, and the agent comes back and resumes."""
        if self._ended is not None:
            return
        self._bytes += len(frame.sealed) + FRAME_OVERHEAD_BYTES
        if self._bytes > self._cap:
            self.end(LinkClosed("The agent does not read what is sent to it; the stream was ended."))
            return
        urgent = frame.frame_class in (link_pb2.FRAME_CLASS_EVIDENCE, link_pb2.FRAME_CLASS_LIVE)
        (self._urgent if urgent else self._bulk).append(frame)
        self._wake()

    def end(self, error: WindrowError) -> None:
        """End the stream with this error; the first one counts."""
        if self._ended is None:
            self._ended = error
            self._wake()
            if self._handing is not None:
                self._handing.reschedule(asyncio.get_running_loop().time())

    async def hand_to(self, send: Callable[[link_pb2.Frame], Awaitable[None]]) -> None:
        """Hand on one frame after the other until `end`, then raise its error: also while `send` waits for an agent
        that does not read, or it would outlive its ban."""
        try:
            async with asyncio.timeout(None) as self._handing:
                while True:
                    await send(await self.get())
        except TimeoutError:
            if self._ended is None:
                raise
            raise self._ended from None
        finally:
            self._handing = None

    async def get(self) -> link_pb2.Frame:
        """The next frame; raises what `end` was given."""
        while True:
            if self._ended is not None:
                raise self._ended
            if self._urgent or self._bulk:
                frame = (self._urgent or self._bulk).pop(0)
                self._bytes -= len(frame.sealed) + FRAME_OVERHEAD_BYTES
                return frame
            self._awaited = asyncio.get_running_loop().create_future()
            try:
                await self._awaited
            finally:
                self._awaited = None

    def _wake(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)
