"""A connection kept warm, over gRPC: pings in one call, and frames in a second one beside it or in its place."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from windrow_proto.errors import LinkClosed
from windrow_proto.ports import DialledLink, PingAnswer, PingFacts
from windrow_proto.units import SECOND
from windrow_proto.v1 import services_pb2

if TYPE_CHECKING:
    from windrow_proto.link_streams import GrpcLink
    from windrow_proto.once import Once

now_s = time.monotonic
NONCE_BYTES = 8
PINGS_MIN, PINGS_MAX = 3, 6
STEADY_S, STEADY_SHARE = 0.0005, 16
"""Two round trips that differ by no more, or by no more than such a part of them, are the line's own."""


class GrpcWarmLink:
    """The agent's end. Made by link_grpc.GrpcDialer."""

    def __init__(
        self,
        pings: "GrpcLink[services_pb2.PingReply]",
        connect: Callable[[int], Awaitable[DialledLink]],
    ) -> None:
        """pings: the call that keeps it. connect: opens frames on it, by a deadline."""
        self._pings, self._connect = pings, connect
        self._asked = 0

    @property
    def closed(self) -> "Once":
        """Set when the pings have ended."""
        return self._pings.closed

    async def ping(self, deadline_ns: int, letter: bytes = b"") -> PingAnswer:
        """One round trip; raises LinkClosed, and the connection is closed then."""
        self._asked += 1
        nonce = self._asked.to_bytes(NONCE_BYTES, "big")
        loop = asyncio.get_running_loop()
        begin = loop.time()
        try:
            async with asyncio.timeout(max(0, deadline_ns) / SECOND):
                await self._pings.send(services_pb2.PingRequest(nonce=nonce, letter=letter))  # type: ignore[arg-type]  # one way each
                reply = await self._pings.receive()
        except TimeoutError:
            await self.close()
            raise LinkClosed(f"No answer to a ping within {deadline_ns / SECOND:.1f} s.") from None
        if reply.nonce != nonce:
            await self.close()
            raise LinkClosed("The relay answered another ping.")
        return answer_of(reply, int((loop.time() - begin) * SECOND))

    async def connect(self, deadline_ns: int) -> DialledLink:
        """Open a stream of frames here; raises LinkClosed, and the pings are over then."""
        try:
            if self._pings.is_closed:
                raise LinkClosed("The connection has ended.")
            return await self._connect(deadline_ns)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the pings, and the connection with the last stream on it; safe to call twice."""
        await self._pings.close()


async def pinged(
    ask: Callable[[services_pb2.PingRequest], Awaitable[services_pb2.PingReply]], deadline_ns: int
) -> PingAnswer:
    """The shortest of so many round trips that two agree on it, since a busy machine at either end adds to one.

    The first, which makes the connection, does not count. Raises LinkClosed if the deadline passes before PINGS_MIN.
    """
    times_s: list[float] = []
    try:
        async with asyncio.timeout(max(0, deadline_ns) / SECOND):
            while len(times_s) < PINGS_MIN or (len(times_s) < PINGS_MAX and not are_steady(times_s[1:])):
                nonce = len(times_s).to_bytes(NONCE_BYTES, "big")
                begin_s = now_s()
                reply = await ask(services_pb2.PingRequest(nonce=nonce))
                times_s.append(now_s() - begin_s)
                if reply.nonce != nonce:
                    raise LinkClosed("The relay answered another ping.")
    except TimeoutError:
        if len(times_s) < PINGS_MIN:
            raise LinkClosed(f"No answer to a ping within {deadline_ns / SECOND:.1f} s.") from None
    return answer_of(reply, int(min(times_s[1:]) * SECOND))


def are_steady(times_s: Sequence[float]) -> bool:
    """True if the two shortest round trips, of two or more, are about the same: nothing got in the way of both."""
    first, second = sorted(times_s)[:2]
    return second - first <= max(STEADY_S, first / STEADY_SHARE)


def answer_of(reply: services_pb2.PingReply, rtt_ns: int) -> PingAnswer:
    """Returns an Access's answer, with the round trip as this process measured it."""
    return PingAnswer(
        rtt_ns=max(1, rtt_ns),
        access_id=reply.access_id,
        region=reply.region,
        load_permille=reply.load_permille,
        draining=reply.draining,
        letter=reply.letter,
        seen=reply.seen,
    )


def reply_to(request: services_pb2.PingRequest, facts: PingFacts, letter: bytes = b"") -> services_pb2.PingReply:
    """An Access's answer to a ping. letter: the Master's."""
    return services_pb2.PingReply(
        nonce=request.nonce[:64],
        access_id=facts.access_id,
        region=facts.region,
        load_permille=facts.load_permille,
        draining=facts.draining,
        letter=letter,
        seen=facts.seen,
    )
