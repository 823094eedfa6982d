"""The host's side of a bandwidth measurement by a relay: random bytes both ways, bounded in time and bytes.

Protocol: start, which the relay repeats when it has a place free; our payload, then direction_done; the relay's payload
and direction_done; our direction_done as the receipt of all of it; the relay's signed claim. Both ends count; the lower
of both figures is what counts.
"""

import asyncio
from typing import Final

from windrow_proto.bandwidth import BandwidthResult
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
"""About as long as the measurement of another host takes, which is what an Access is busy with."""


async def measure(
    dialer: Dialer, address: str, spec: BandwidthSpec, answer: PingAnswer, clock: Clock, rng: Rng
) -> BandwidthResult:
    """Measure through the Access at `address`, which may be busy with others for a while.

    answer: of a ping just before. Raises Unavailable.
    """
    for _ in range(TRIES_MAX - 1):
        try:
            return await _try(dialer, address, spec, answer, clock, rng)
        except Unavailable as error:
            if not _is_busy(error):
                raise
            await clock.sleep_ns(int(BUSY_WAIT_NS * (0.5 + rng.uniform())))
    return await _try(dialer, address, spec, answer, clock, rng)


def _is_busy(error: Unavailable) -> bool:
    closed = error.__cause__
    return isinstance(closed, LinkClosed) and isinstance(closed.__cause__, TooMany)


async def _try(
    dialer: Dialer, address: str, spec: BandwidthSpec, answer: PingAnswer, clock: Clock, rng: Rng
) -> BandwidthResult:
    duration_ns = min(max(spec.duration_ns, SECOND // 10), DURATION_NS_MAX)
    cap_bytes = min(max(spec.cap_bytes, CHUNK_BYTES), CAP_BYTES_MAX)
    deadline_ns = 2 * duration_ns + SLACK_NS
    try:
        async with asyncio.timeout(seconds(deadline_ns)):
            link = await dialer.bandwidth(address, deadline_ns)
            try:
                return await _measure(link, spec, duration_ns, cap_bytes, answer, clock, rng)
            finally:
                await link.close()
    except (TimeoutError, LinkClosed) as error:
        why = error.detail if isinstance(error, LinkClosed) else "it took too long"
        raise Unavailable(f"The bandwidth could not be measured at {address}: {why}") from error


async def _measure(
    link: BandwidthLink,
    spec: BandwidthSpec,
    duration_ns: int,
    cap_bytes: int,
    answer: PingAnswer,
    clock: Clock,
    rng: Rng,
) -> BandwidthResult:
    start = services_pb2.BandwidthStart(nonce=spec.nonce, duration_ns=duration_ns, cap_bytes=cap_bytes)
    await link.send(services_pb2.BandwidthChunk(start=start))
    if (await link.receive()).start != start:
        raise LinkClosed("The relay began another measurement.")
    began_ns = clock.monotonic_ns()
    up_bytes = await _send(link, duration_ns, cap_bytes, clock, rng)
    up_ns = max(1, clock.monotonic_ns() - began_ns)
    down_bytes, down_ns = await _receive(link, clock)
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
        down_bits_per_s=min(claim.down_bits_per_s, down_bytes * 8 * SECOND // down_ns),
        up_bytes=min(up_bytes, claim.up_bytes),
        down_bytes=min(down_bytes, claim.down_bytes),
        duration_ns=up_ns + down_ns,
        at_wall_ns=clock.wall_ns(),
        access_signed=claim_chunk.claim,
        access_signature=claim_chunk.claim_signature,
        rtt_ns=answer.rtt_ns,
    )


async def _send(link: BandwidthLink, duration_ns: int, cap_bytes: int, clock: Clock, rng: Rng) -> int:
    noise = rng.random_bytes(2 * CHUNK_BYTES)  # cut at moving places: neither compressible nor drawn anew each time
    end_ns, sent = clock.monotonic_ns() + duration_ns, 0
    while sent < cap_bytes and clock.monotonic_ns() < end_ns:
        size = min(CHUNK_BYTES, cap_bytes - sent)
        at = sent // 7 % CHUNK_BYTES
        await link.send(services_pb2.BandwidthChunk(payload=noise[at : at + size]))
        sent += size
    await link.send(services_pb2.BandwidthChunk(direction_done=True))
    return sent


async def _receive(link: BandwidthLink, clock: Clock) -> tuple[int, int]:
    began_ns, received = None, 0
    while True:
        chunk = await link.receive()
        if began_ns is None:
            began_ns = clock.monotonic_ns()
        received += len(chunk.payload)
        if chunk.direction_done:
            return received, max(1, clock.monotonic_ns() - began_ns)
        if received > CAP_BYTES_MAX:
            raise LinkClosed("The relay sends more than any measurement asks for.")
