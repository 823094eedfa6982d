"""Connections that hosts keep here while another Access serves them: nothing but pings, until that other one dies."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from windrow_proto.errors import DeadlineExceeded, TooMany
from windrow_proto.link_warm import reply_to
from windrow_proto.patience import Patience
from windrow_proto.ports import Clock, PeerFacts, PingFacts, PingLink
from windrow_proto.units import MINUTE, SECOND, seconds

log = structlog.get_logger()

SILENCE_NS_MAX = 2 * MINUTE
"""Between two pings: they come every 12 to 40 s."""
PAUSE_NS = SECOND
"""After an answer, before the next ping is read: who pings all the time waits for himself."""
FULL_WAIT_NS = 5 * MINUTE
"""How long a host leaves an Access alone that keeps as many as it may."""

LETTER_BYTES_MAX = 2048
"""The messages that a host may have carried to the Master; a canary takes 200."""
LETTER_DEADLINE_S = 3.0

Ping = Callable[[PeerFacts], Awaitable[PingFacts]]
Post = Callable[[str, bytes], None]
"""Sends a host's letter to the Master, if there is one."""


class WarmConnections:
    """Those of one worker, one for each host: the newest."""

    def __init__(self, ping: Ping, post: Post, clock: Clock, max_count: int) -> None:
        """ping: what this Access says of itself."""
        self._ping, self._post, self._clock, self._max_count = ping, post, clock, max_count
        self._awaited: dict[str, asyncio.Future[bytes]] = {}
        self._by_host: dict[str, tuple[PeerFacts, PingLink]] = {}

    def __len__(self) -> int:
        return len(self._by_host)

    def is_of(self, host_id: str) -> bool:
        """True if this host has one here."""
        return host_id in self._by_host

    async def serve(self, peer: PeerFacts, link: PingLink) -> None:
        """Answer until it ends; raises TooMany, DeadlineExceeded for a host that fell silent, or LinkClosed."""
        older = self._by_host.get(peer.subject_id)
        if older is None and len(self._by_host) >= self._max_count:
            raise TooMany("This relay has reached its limit of warm connections.", retry_after_ns=FULL_WAIT_NS)
        self._by_host[peer.subject_id] = peer, link
        try:
            if older is not None:
                await older[1].close()
            async with Patience(seconds(SILENCE_NS_MAX)) as patience:
                while True:
                    patience.renew()
                    request = await link.receive()
                    letter = await self._carried(peer.subject_id, request.letter)
                    await link.send(reply_to(request, await self._ping(peer), letter))
                    await self._clock.sleep_ns(PAUSE_NS)
        except TimeoutError:
            raise DeadlineExceeded("No ping came in time; the connection was ended.") from None
        finally:
            if self._by_host.get(peer.subject_id) == (peer, link):
                del self._by_host[peer.subject_id]

    async def _carried(self, host_id: str, letter: bytes) -> bytes:
        """The Master's answer to a letter; empty when there is no letter or no answer in time."""
        if not letter or len(letter) > LETTER_BYTES_MAX:
            return b""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._awaited[host_id] = answer
        try:
            self._post(host_id, letter)
            async with asyncio.timeout(LETTER_DEADLINE_S):
                return await answer
        except TimeoutError:
            return b""
        finally:
            self._awaited.pop(host_id, None)

    def answered(self, host_id: str, letter: bytes) -> None:
        """The Master's answer; one that nobody waits for is dropped."""
        answer = self._awaited.get(host_id)
        if answer is not None and not answer.done():
            answer.set_result(letter)

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
