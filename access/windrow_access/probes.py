"""Bandwidth of a host as this relay counts it: timed random bytes both ways, bounded in time and bytes, signed here.

The host's own count is a claim; the bytes that came in here, and the time until the host confirmed the last byte that
went out, are ours. Random bytes, so that nothing on the way can compress them.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from windrow_proto import keys, wire_host
from windrow_proto.bandwidth import Arrivals, BandwidthClaim
from windrow_proto.errors import InvalidInput, LinkClosed, TooMany
from windrow_proto.ids import AccessId, HostId
from windrow_proto.ports import BandwidthLink, Clock, Rng
from windrow_proto.units import SECOND
from windrow_proto.v1 import services_pb2

DURATION_NS_MAX = 10 * SECOND
CAP_BYTES_MAX = 512 << 20
CHUNK_BYTES_MAX = 256 << 10
CHUNK_BYTES = 64 << 10
POOL_BYTES = 4 << 20
"""Random bytes drawn once per measurement; chunks start at random places in them."""
AT_ONCE_MAX = 2
"""More at once would measure each other."""
GRACE_S = 10.0
"""Beside the measured time: connection, buffers, the last confirmation."""


@dataclass(frozen=True, slots=True)
class Count:
    """One direction: bytes, nanoseconds from the first byte to the confirmation of the last, and the rate, rounded
    down; 0 when nothing was moved."""

    total_bytes: int
    elapsed_ns: int
    bits_per_s: int


class Bandwidth:
    """Serves measurements of one Access worker. others: those that are made here by another way, which count, too."""

    def __init__(self, access_id: AccessId, signing: keys.SigningKey, clock: Clock, rng: Rng) -> None:
        self._access_id = access_id
        self._signing = signing
        self._clock = clock
        self._rng = rng
        self._running = 0
        self.others: Callable[[], int] = lambda: 0

    @property
    def running(self) -> int:
        """Measurements that go on."""
        return self._running

    async def serve(self, host_id: HostId, link: BandwidthLink) -> None:
        """One measurement, first up, then down; raises InvalidInput, TooMany, LinkClosed or TimeoutError."""
        # Refused only once the host is heard and waits: a write into an ended call would hide why it ended.
        async with asyncio.timeout(GRACE_S):
            start = (await link.receive()).start
        if self._running + self.others() >= AT_ONCE_MAX:
            raise TooMany("This relay measures two hosts already; come back in half a minute.")
        if not (0 < start.duration_ns <= DURATION_NS_MAX and 0 < start.cap_bytes <= CAP_BYTES_MAX and start.nonce):
            raise InvalidInput("A measurement lasts at most 10 s and moves at most 512 MiB each way.")
        self._running += 1
        try:
            await link.send(services_pb2.BandwidthChunk(start=start))
            async with asyncio.timeout(2 * start.duration_ns / SECOND + GRACE_S):
                up = await self._receive(link, start)
                down = await self._send(link, start)
                await self._sign(host_id, link, start, up, down)
        finally:
            self._running -= 1

    async def _receive(self, link: BandwidthLink, start: services_pb2.BandwidthStart) -> Count:
        found = Arrivals(start.duration_ns)
        while True:
            chunk = await link.receive()
            now_ns = self._clock.monotonic_ns()
            if chunk.direction_done:
                return Count(found.total_bytes, found.elapsed_ns(now_ns), found.bits_per_s(now_ns))
            found.came(len(chunk.payload), now_ns)
            if len(chunk.payload) > CHUNK_BYTES_MAX or found.total_bytes > start.cap_bytes:
                raise InvalidInput("More bytes came than the measurement allows.")

    async def _send(self, link: BandwidthLink, start: services_pb2.BandwidthStart) -> Count:
        pool = self._rng.random_bytes(POOL_BYTES)
        total, began_ns = 0, self._clock.monotonic_ns()
        while total < start.cap_bytes and self._clock.monotonic_ns() - began_ns < start.duration_ns:
            offset = int(self._rng.uniform() * (POOL_BYTES - CHUNK_BYTES))
            size = min(CHUNK_BYTES, start.cap_bytes - total)
            await link.send(services_pb2.BandwidthChunk(payload=pool[offset : offset + size]))
            total += size
        await link.send(services_pb2.BandwidthChunk(direction_done=True))
        if not (await link.receive()).direction_done:
            raise LinkClosed("The host did not confirm the last byte.")
        elapsed_ns = self._clock.monotonic_ns() - began_ns
        # All of it: what is in buffers on the way has not come, so that no earlier moment says how much had.
        return Count(total, elapsed_ns, total * 8 * SECOND // elapsed_ns if elapsed_ns > 0 else 0)

    async def _sign(
        self, host_id: HostId, link: BandwidthLink, start: services_pb2.BandwidthStart, up: Count, down: Count
    ) -> None:
        claim = wire_host.encode_claim(
            BandwidthClaim(
                nonce=start.nonce,
                access_id=self._access_id,
                host_id=host_id,
                up_bits_per_s=up.bits_per_s,
                down_bits_per_s=down.bits_per_s,
                up_bytes=up.total_bytes,
                down_bytes=down.total_bytes,
                duration_ns=up.elapsed_ns + down.elapsed_ns,
                at_wall_ns=self._clock.wall_ns(),
            )
        )
        signature = self._signing.sign(keys.DOMAIN_CLAIM, claim)
        await link.send(services_pb2.BandwidthChunk(claim=claim, claim_signature=signature))
