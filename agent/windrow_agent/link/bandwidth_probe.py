"""The host's side of a bandwidth measurement by a relay: random bytes both ways, bounded in time and bytes.

Protocol: start, which the relay repeats when it has a place free; our payload, then direction_done; the relay's payload
and direction_done; our direction_done as the receipt of all of it; the relay's signed claim. Both ends count; the lower
of both figures is what counts. Under a ceiling both directions are held to it here: what is read no faster than that is
sent no faster. What comes in the first quarter of the time is not counted by who receives it (windrow_proto.bandwidth).
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from windrow_proto.bandwidth import Arrivals, BandwidthResult
from windrow_proto.errors import LinkClosed, TooMany, Unavailable
from windrow_proto.model import BandwidthSpec
from windrow_proto.ports import BandwidthLink, Clock, Dialer, PingAnswer, Rng
from windrow_proto.units import KIB, MIB, SECOND, seconds
from windrow_proto.v1 import services_pb2
from windrow_proto.wire_host import decode_claim

CHUNK_BYTES: Final = 64 * KIB
DURATION_NS_MAX: Final = 10 * SECOND
"""Per direction, whatever the Master asks."""
CAP_BYTES_MAX: Final = 2048 * MIB
SLACK_NS: Final = 20 * SECOND
"""Beyond both directions: connecting, and what is still in buffers on a slow line."""
TRIES_MAX: Final = 8
BUSY_WAIT_NS: Final = 4 * SECOND
"""About half as long as the measurement of another host takes, which is what an Access is busy with."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Holds one direction to a rate in bit/s; 0: to none."""

    clock: Clock
    ceiling_bps: int = 0

    async def keep(self, began_ns: int, moved_bytes: int) -> None:
        """Wait until so many bytes may have moved since."""
        if self.ceiling_bps:
            due_ns = began_ns + moved_bytes * 8 * SECOND // self.ceiling_bps
            await self.clock.sleep_ns(max(0, due_ns - self.clock.monotonic_ns()))


async def measure(
    dialer: Dialer,
    address: str,
    spec: BandwidthSpec,
    answer: PingAnswer,
    clock: Clock,
    rng: Rng,
    ceiling_bps: int = 0,
) -> BandwidthResult:
    """Measure through the Access at `address`, which may be busy with others for a while.

    answer: of a ping just before; ceiling_bps: of each direction, in bit/s, 0: none. Raises Unavailable.
    """
    pace = Pace(clock, ceiling_bps)
    for _ in range(TRIES_MAX - 1):
        try:
            return await _try(dialer, address, spec, answer, pace, rng)
        except Unavailable as error:
            if not is_busy(error):
                raise
            await clock.sleep_ns(int(BUSY_WAIT_NS * (0.5 + rng.uniform())))
    return await _try(dialer, address, spec, answer, pace, rng)


def is_busy(error: Unavailable) -> bool:
    """True if the relay was busy with others, so that nothing was moved."""
    closed = error.__cause__
    return isinstance(closed, LinkClosed) and isinstance(closed.__cause__, TooMany)


async def _try(
    dialer: Dialer, address: str, spec: BandwidthSpec, answer: PingAnswer, pace: Pace, rng: Rng
) -> BandwidthResult:
    duration_ns = min(max(spec.duration_ns, SECOND // 10), DURATION_NS_MAX)
    cap_bytes = min(max(spec.cap_bytes, CHUNK_BYTES), CAP_BYTES_MAX)
    deadline_ns = 2 * duration_ns + SLACK_NS
    try:
        async with asyncio.timeout(seconds(deadline_ns)):
            link = await dialer.bandwidth(address, deadline_ns)
            try:
                return await _measure(link, spec, duration_ns, cap_bytes, answer, pace, rng)
            finally:
                await link.close()
    except (TimeoutError, LinkClosed) as error:
        why = error.detail if isinstance(error, LinkClosed) else "the measurement took too long"
        raise Unavailable(f"The bandwidth could not be measured at {address}: {why}") from error


async def _measure(
    link: BandwidthLink,
    spec: BandwidthSpec,
    duration_ns: int,
    cap_bytes: int,
    answer: PingAnswer,
    pace: Pace,
    rng: Rng,
) -> BandwidthResult:
    clock = pace.clock
    start = services_pb2.BandwidthStart(nonce=spec.nonce, duration_ns=duration_ns, cap_bytes=cap_bytes)
    await link.send(services_pb2.BandwidthChunk(start=start))
    if (await link.receive()).start != start:
        raise LinkClosed("The relay began another measurement.")
    began_ns = clock.monotonic_ns()
    up_bytes = await _send(link, duration_ns, cap_bytes, pace, rng)
    up_ns = max(1, clock.monotonic_ns() - began_ns)
    down = await _receive(link, duration_ns, pace)
    ended_ns = clock.monotonic_ns()
    await link.send(services_pb2.BandwidthChunk(direction_done=True))
    claim_chunk = await link.receive()
    claim = decode_claim(claim_chunk.claim)
    if claim.nonce != spec.nonce:
        raise LinkClosed("The relay's claim is about another measurement.")
    return BandwidthResult(
        nonce=spec.nonce,
        access_id=answer.access_id,
        region=answer.region,
        up_bits_per_s=min(claim.up_bits_per_s, up_bytes * 8 * SECOND // up_ns),
        down_bits_per_s=min(claim.down_bits_per_s, down.bits_per_s(ended_ns)),
        up_bytes=min(up_bytes, claim.up_bytes),
        down_bytes=min(down.total_bytes, claim.down_bytes),
        duration_ns=up_ns + max(1, down.elapsed_ns(ended_ns)),
        at_wall_ns=clock.wall_ns(),
        access_signed=claim_chunk.claim,
        access_signature=claim_chunk.claim_signature,
        rtt_ns=answer.rtt_ns,
    )


async def _send(link: BandwidthLink, duration_ns: int, cap_bytes: int, pace: Pace, rng: Rng) -> int:
    noise = rng.random_bytes(2 * CHUNK_BYTES)  # cut at moving places: neither compressible nor drawn anew each time
    began_ns, sent = pace.clock.monotonic_ns(), 0
    while sent < cap_bytes and pace.clock.monotonic_ns() < began_ns + duration_ns:
        size = min(CHUNK_BYTES, cap_bytes - sent)
        at = sent // 7 % CHUNK_BYTES
        await link.send(services_pb2.BandwidthChunk(payload=noise[at : at + size]))
        sent += size
        await pace.keep(began_ns, sent)
    await link.send(services_pb2.BandwidthChunk(direction_done=True))
    return sent


async def _receive(link: BandwidthLink, duration_ns: int, pace: Pace) -> Arrivals:
    found = Arrivals(duration_ns)
    while True:
        chunk = await link.receive()
        if chunk.direction_done:
            return found
        found.came(len(chunk.payload), pace.clock.monotonic_ns())
        if found.total_bytes > CAP_BYTES_MAX:
            raise LinkClosed("The relay sends more than any measurement asks for.")
        await pace.keep(found.began_ns or 0, found.total_bytes)
