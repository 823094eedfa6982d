"""Asks hosts whether they reach each other, all of them at once, and remembers the answers for a while.

 channel to each ─▶ where it listens, its token ─▶ to each the others' places ─▶ the tokens it was shown ─▶ pairs

Every wait has a deadline; a host that says nothing is one that is not seen.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from windrow_master.clusters import topology
from windrow_master.clusters.model import Network
from windrow_master.clusters.topology import Found, KnownReachability, Meeting
from windrow_master.network.channels import ChannelBroker, ChannelStream
from windrow_proto.challenge import NO_WORKLOAD
from windrow_proto.errors import InvalidInput, WindrowError, from_code
from windrow_proto.ids import HostId
from windrow_proto.messages import ChannelClose, ChannelData, ChannelOpen
from windrow_proto.model import ChannelPurpose
from windrow_proto.ports import Clock
from windrow_proto.reachability import (
    DIAL_NS,
    OLD,
    Listening,
    Place,
    Seen,
    decode_listening,
    decode_seen,
    encode_places,
)
from windrow_proto.units import MINUTE, SECOND, seconds

log = structlog.get_logger(__name__)

KEPT_NS: Final = 10 * MINUTE
"""The time for which it is believed that a host reaches another."""
BLIND_KEPT_NS: Final = MINUTE
"""The time for which it is believed that it does not: somebody may just be opening a firewall."""
CANNOT_KEPT_NS: Final = 10 * SECOND
"""How long it is believed that a host can be in no private network; that it can, as long as the above."""
PAIRS_MAX: Final = 65_536
"""Remembered pairs; the oldest are forgotten first."""
LISTENING_NS: Final = 4 * SECOND
"""For a host to listen."""
SEEN_NS: Final = DIAL_NS + 3 * SECOND
"""For it to look, and to say what it saw."""


@dataclass(frozen=True, slots=True)
class _Known:
    found: Found
    until_ns: int


class ReachabilityService:
    """Knows which hosts reach each other."""

    def __init__(self, broker: ChannelBroker, clock: Clock) -> None:
        self._broker, self._clock = broker, clock
        self._pairs: dict[tuple[HostId, str, HostId, str], _Known] = {}
        self._cannot: dict[tuple[HostId, bool], tuple[str, int]] = {}
        """Of a host, and whether of its containers."""

    def decide(self, hosts: Sequence[Meeting]) -> Network | None:
        """Return how these hosts meet; None: `look` first. Raises NoCapacity where they cannot."""
        known = self._known(hosts)
        return topology.decide(hosts, known) if topology.is_known(hosts, known) else None

    async def look(self, hosts: Sequence[Meeting]) -> None:
        """Have all of them look for all others, at most for some ten seconds."""
        channels: dict[HostId, ChannelStream] = {}
        try:
            listening = dict(
                zip(hosts, await asyncio.gather(*(self._listening(one, channels) for one in hosts)), strict=True)
            )
            asked = [self._seen(one, channels.get(one.host_id), listening) for one in hosts]
            for host, seen in zip(hosts, await asyncio.gather(*asked), strict=True):
                self._note(host, listening, seen)
        finally:
            for channel in channels.values():
                with suppress(WindrowError):
                    await channel.close(ChannelClose())
        log.info("hosts_looked", hosts=[one.host_id for one in hosts])

    async def _listening(self, host: Meeting, channels: dict[HostId, ChannelStream]) -> Listening | str:
        """Return the place where this host listens now; or, in words, why it does not."""
        try:
            async with asyncio.timeout(seconds(LISTENING_NS)):
                opening = ChannelOpen(NO_WORKLOAD, ChannelPurpose.SIGHT)
                channel = channels[host.host_id] = await self._broker.open(host.host_id, opening)
                return decode_listening(await _words(channel))
        except TimeoutError:
            return "it does not answer"
        except InvalidInput:
            return OLD
        except WindrowError as error:
            return error.detail

    async def _seen(
        self, host: Meeting, channel: ChannelStream | None, listening: Mapping[Meeting, Listening | str]
    ) -> dict[HostId, Seen]:
        """Return this host's findings about each of the others that listen."""
        others = {
            one: Place(one.address, found.port)
            for one, found in listening.items()
            if one is not host and isinstance(found, Listening) and one.network == host.network is not None
        }
        if host.is_alone:
            return {}  # what they are in is no network of their hosts'
        if not others or channel is None or not isinstance(listening[host], Listening):
            return {}
        try:
            async with asyncio.timeout(seconds(SEEN_NS)):
                await channel.send(encode_places(tuple(others.values())))
                seen = decode_seen(await _words(channel))
        except (TimeoutError, WindrowError) as error:
            return {one.host_id: Seen(why=str(error) or "it does not answer") for one in others}
        return {one.host_id: found for one, found in zip(others, seen, strict=False)}

    def _note(self, host: Meeting, listening: Mapping[Meeting, Listening | str], seen: Mapping[HostId, Seen]) -> None:
        now_ns, own = self._clock.monotonic_ns(), listening[host]
        refusals = (own.cannot, own.cannot_contained) if isinstance(own, Listening) else (own, own)
        for is_contained, cannot in enumerate(refusals):
            until_ns = now_ns + (CANNOT_KEPT_NS if cannot else BLIND_KEPT_NS)
            self._cannot[host.host_id, bool(is_contained)] = cannot, until_ns
        for other, found in listening.items():
            if other is host or host.is_alone:
                continue
            known = _judged(own, found, seen.get(other.host_id, Seen(why="it was not looked for")))
            until_ns = now_ns + (KEPT_NS if known.is_seen else BLIND_KEPT_NS)
            key = host.host_id, host.address, other.host_id, other.address
            self._pairs.pop(key, None)
            self._pairs[key] = _Known(known, until_ns)
        while len(self._pairs) > PAIRS_MAX:
            del self._pairs[next(iter(self._pairs))]

    def _known(self, hosts: Sequence[Meeting]) -> KnownReachability:
        now_ns, pairs = self._clock.monotonic_ns(), dict[tuple[HostId, HostId], Found]()
        for one in hosts:
            for other in hosts:
                known = self._pairs.get((one.host_id, one.address, other.host_id, other.address))
                if known is not None and known.until_ns > now_ns:
                    pairs[one.host_id, other.host_id] = known.found
        return KnownReachability(
            pairs, *(self._refusals(hosts, is_contained, now_ns) for is_contained in (False, True))
        )

    def _refusals(self, hosts: Sequence[Meeting], is_contained: bool, now_ns: int) -> dict[HostId, str]:
        entries = {one.host_id: self._cannot.get((one.host_id, is_contained), ("", 0)) for one in hosts}
        return {host_id: why for host_id, (why, until_ns) in entries.items() if until_ns > now_ns}


def _judged(own: Listening | str, other: Listening | str, seen: Seen) -> Found:
    if OLD in (own, other):
        return Found(True, OLD)  # as it was before anybody asked
    if isinstance(own, str):
        return Found(False, own)
    if isinstance(other, str):
        return Found(False, other)
    if seen.token:
        return Found(seen.token == other.token, "" if seen.token == other.token else "another machine is there")
    return Found(False, seen.why or "it was shown nothing")


async def _words(channel: ChannelStream) -> bytes:
    """The next words of a host; raises what it closes the channel with."""
    step = await channel.receive()
    if isinstance(step, ChannelData):
        return step.data
    raise from_code(step.error_code or "unavailable", step.detail or "It has ended the channel.", "")
