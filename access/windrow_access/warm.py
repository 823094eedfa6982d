"""Connections that hosts keep here while another Access serves them: nothing but pings, until that other one dies."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from windrow_proto.errors import DeadlineExceeded, TooMany
from windrow_proto.link_warm import reply_to
from windrow_proto.ports import Clock, PeerFacts, PingFacts, PingLink
from windrow_proto.units import MINUTE, SECOND, seconds

log = structlog.get_logger()

SILENCE_NS_MAX = 2 * MINUTE
"""Between two pings: they come every half minute."""
PAUSE_NS = SECOND
"""After an answer, before the next ping is read: who pings all the time waits for himself."""
FULL_WAIT_NS = 5 * MINUTE
"""How long a host leaves an Access alone that keeps as many as it may."""

Ping = Callable[[PeerFacts], Awaitable[PingFacts]]


class WarmConnections:
    """Those of one worker, one for each host: the newest."""

    def __init__(self, ping: Ping, clock: Clock, max_count: int) -> None:
        """ping: what this Access says of itself."""
        self._ping, self._clock, self._max_count = ping, clock, max_count
        self._by_host: dict[str, tuple[PeerFacts, PingLink]] = {}

    def __len__(self) -> int:
        return len(self._by_host)

    async def serve(self, peer: PeerFacts, link: PingLink) -> None:
        """Answer until it ends; raises TooMany, DeadlineExceeded for a host that fell silent, or LinkClosed."""
        older = self._by_host.get(peer.subject_id)
        if older is None and len(self._by_host) >= self._max_count:
            raise TooMany("This Access keeps as many connections warm as it may.", retry_after_ns=FULL_WAIT_NS)
        self._by_host[peer.subject_id] = peer, link
        try:
            if older is not None:
                await older[1].close()
            while True:
                async with asyncio.timeout(seconds(SILENCE_NS_MAX)):
                    request = await link.receive()
                    await link.send(reply_to(request, await self._ping(peer)))
                await self._clock.sleep_ns(PAUSE_NS)
        except TimeoutError:
            raise DeadlineExceeded("No ping came in time; the connection was ended.") from None
        finally:
            if self._by_host.get(peer.subject_id) == (peer, link):
                del self._by_host[peer.subject_id]

    async def end(self, host_id: str) -> None:
        """This host has none here any more; nothing if it had none."""
        if host_id in self._by_host:
            await self._by_host[host_id][1].close()

    async def expire(self, now_ns: int) -> None:
        """End those whose certificate has ended. now_ns: wall clock."""
        for peer, link in tuple(self._by_host.values()):
            if peer.not_after_ns <= now_ns:
                log.info("warm_connection_expired", host_id=peer.subject_id)
                await link.close()
