"""A connection kept warm, over gRPC: pings in one call, and frames in a second one beside it or in its place."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from windrow_proto.errors import LinkClosed
from windrow_proto.ports import DialledLink, PingAnswer, PingFacts
from windrow_proto.units import SECOND
from windrow_proto.v1 import services_pb2

if TYPE_CHECKING:
    from windrow_proto.link_streams import GrpcLink
    from windrow_proto.once import Once

NONCE_BYTES = 8


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
            raise LinkClosed("The Access answered another ping.")
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


def answer_of(reply: services_pb2.PingReply, rtt_ns: int) -> PingAnswer:
    """What an Access said, with the round trip as we measured it."""
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
