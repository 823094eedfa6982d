"""The guard before the relay: how often a host may call, and which TCP connections are cut.

gRPC gives Python no hand on a connection: it can refuse a call, but the caller stays and calls again, and who never
calls stays unseen. The guard looks at this process's own sockets, knows those on which a call of a known host runs,
and shuts the others down when they are too many or have waited too long. gRPC sees the peer go and frees what it held.
"""

import asyncio
import fcntl
import os
import socket
import termios
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import filterfalse
from pathlib import Path

import structlog

from windrow_access.accept_filter import AcceptFilter, socket_of
from windrow_access.core.admission import Callers, Wait
from windrow_access.core.strangers import (
    Endpoint,
    Stranger,
    StrangerLimits,
    endpoint_of,
    is_crowded,
    network_of,
    overstaying,
    plain_address,
)
from windrow_proto.errors import TooMany
from windrow_proto.ports import AgentAcceptor, BandwidthLink, Clock, FrameLink, PeerFacts, PingFacts, PingLink
from windrow_proto.scrape import Figure
from windrow_proto.units import MILLISECOND, SECOND

log = structlog.get_logger()

OWN_SOCKETS = Path("/proc/self/fd")
LOOK_PERIOD_NS = 500 * MILLISECOND
"""Meanwhile gRPC's own count holds. A look costs half a millisecond with 10,000 agents."""
LISTING_PERIOD_NS = 10 * SECOND
"""Between two looks that list the open files, which takes twenty milliseconds then: frames that come meanwhile wait for
a turn each. The others know where new files must be."""
NUMBERS_AHEAD = 256
"""Above as many numbers as files are open, and above the highest of the listing before: the system gives new files the
lowest numbers that are free."""
LOOK_TURN_NS = MILLISECOND
"""Of a look at once, before frames that came meanwhile are carried on. In a thread of its own a look is no cheaper, and
contends for the interpreter with whoever carries frames."""
LOOK_PAUSE_NS = 50 * MILLISECOND
"""Between two looks when somebody is to be cut at once, while the listener is shut, and when files are opened fast."""

Socket = tuple[int, Endpoint]
"""An open file's number, and its other end."""


class Guard:
    """An AgentAcceptor before another one. `run` looks at the sockets; without it only calls are counted."""

    def __init__(
        self, inner: AgentAcceptor, clock: Clock, callers: Callers, limits: StrangerLimits, labels: dict[str, str]
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._callers = callers
        self._limits = limits
        self._labels = labels
        self._running: Counter[Endpoint] = Counter()
        self._streams: Counter[str] = Counter()
        self._socket_of: dict[Endpoint, int] = {}
        self._known: set[int] = set()  # the values of _socket_of
        self._highest = 0
        self._listed_ns: int | None = None
        self._since_ns: dict[Socket, int] = {}
        self._condemned: set[Endpoint] = set()
        self._is_wanted = False
        self._accept_filter = AcceptFilter()
        self.strangers = 0
        self._cut = 0

    def figures(self) -> Iterable[Figure]:
        """Returns the guard's counts, for Prometheus."""
        yield Figure("access_strangers", "Connections on which no known host speaks", self.strangers, self._labels)
        yield Figure("access_cut_connections_total", "Connections cut by the guard", self._cut, self._labels)
        yield Figure(
            "access_door_shut_total", "Times that newcomers had to wait", self._accept_filter.times, self._labels
        )

    # --- calls -----------------------------------------------------------------------------------

    async def accepted(self, peer: PeerFacts, link: FrameLink) -> None:
        """Serve one agent's stream; raises TooMany for a host that calls too often, and cuts its connection."""
        network = network_of(endpoint_of(peer.address)[0])
        with self._call(peer):
            self._streams[network] += 1
            try:
                await self._inner.accepted(peer, link)
            finally:
                self._streams[network] -= 1
                if not self._streams[network]:
                    del self._streams[network]

    def is_here(self, network: str) -> bool:
        """True if a host of this network has a stream here: one that is refused is gone before anybody asks."""
        return network in self._streams

    async def pinged(self, peer: PeerFacts) -> PingFacts:
        """Answer a ping; the same."""
        with self._call(peer):
            return await self._inner.pinged(peer)

    async def warmed(self, peer: PeerFacts, link: PingLink) -> None:
        """Answer the pings of a connection kept warm; the same."""
        with self._call(peer):
            await self._inner.warmed(peer, link)

    async def measured(self, peer: PeerFacts, link: BandwidthLink) -> None:
        """Serve one bandwidth measurement; the same."""
        with self._call(peer):
            await self._inner.measured(peer, link)

    @contextmanager
    def _call(self, peer: PeerFacts) -> Iterator[None]:
        endpoint = endpoint_of(peer.address)
        answer = self._callers.enter(peer.subject_id, self._clock.monotonic_ns())
        if isinstance(answer, Wait):
            self._condemned.add(endpoint)
            self._is_wanted = True
            words = f"This host calls too often; come back in {answer.retry_after_ns // MILLISECOND} ms."
            raise TooMany(words, retry_after_ns=answer.retry_after_ns)
        self._running[endpoint] += 1
        try:
            yield
        finally:
            self._callers.leave(peer.subject_id)
            self._running[endpoint] -= 1
            if not self._running[endpoint]:
                del self._running[endpoint]
                self._unknow(endpoint)

    def _unknow(self, endpoint: Endpoint) -> None:
        """Look at this connection again: nobody known speaks on it any more, or it is to be cut."""
        number = self._socket_of.pop(endpoint, None)
        if number is not None:
            self._known.discard(number)

    # --- connections -----------------------------------------------------------------------------

    async def run(self, port: int) -> None:
        """Watch the connections to this port, for ever; does nothing where the system shows no sockets."""
        if not OWN_SOCKETS.is_dir():
            log.warning("connections_unwatched", port=port)
            await asyncio.Event().wait()
        self._accept_filter.narrow(port)
        late_ns = 0
        while True:
            await self._look(port, late_ns)
            files, looked_ns = _open_files(), self._clock.monotonic_ns()
            while True:
                slept_ns = self._clock.monotonic_ns()
                await self._clock.sleep_ns(LOOK_PAUSE_NS)
                now_ns = self._clock.monotonic_ns()
                late_ns = now_ns - slept_ns - LOOK_PAUSE_NS
                is_busy = late_ns >= self._limits.late_ns or _open_files() - files >= self._limits.fresh_max // 2
                if self._is_wanted or self._accept_filter.is_shut or is_busy or now_ns - looked_ns >= LOOK_PERIOD_NS:
                    break

    async def _look(self, port: int, late_ns: int) -> None:
        self._is_wanted = False
        condemned, self._condemned = self._condemned, set()
        for endpoint in condemned:
            self._unknow(endpoint)  # a call may run on it, too
        found = await self._connections(port)
        now_ns = self._clock.monotonic_ns()
        doomed = [one for one in found if one[1] in condemned]
        strangers: list[Stranger] = []
        for number, endpoint in found:
            if endpoint in self._running:
                self._unknow(endpoint)
                self._socket_of[endpoint] = number
                self._known.add(number)
            else:
                since_ns = self._since_ns.get((number, endpoint), now_ns)
                strangers.append(Stranger(str(number), endpoint, since_ns, _is_unread(number)))
        self._since_ns = {(int(one.name), one.endpoint): one.since_ns for one in strangers}
        doomed += [(int(one.name), one.endpoint) for one in overstaying(strangers, self._limits, now_ns)]
        self.strangers = len(strangers)
        self._accept_filter.turn(port, is_shut=is_crowded(strangers, self._limits, now_ns, late_ns))
        if doomed:
            cut = sum(_shut(number, endpoint, port) for number, endpoint in doomed)
            self._cut += cut
            log.info("connections_cut", count=cut, strangers=len(strangers))

    async def _connections(self, port: int) -> list[Socket]:
        """Every TCP connection to this port among the open files that are not known."""
        found: list[Socket] = []
        turn_ends_ns = self._clock.monotonic_ns() + LOOK_TURN_NS
        for number in self._numbers():
            if number not in self._known and (endpoint := _endpoint(number, port)) is not None:
                found.append((number, endpoint))
                self._highest = max(self._highest, number)
            if self._clock.monotonic_ns() > turn_ends_ns:
                await asyncio.sleep(0)
                turn_ends_ns = self._clock.monotonic_ns() + LOOK_TURN_NS
        return found

    def _numbers(self) -> Iterator[int]:
        """Of open files: all of them once in LISTING_PERIOD_NS, and otherwise where those that are new must be."""
        now_ns = self._clock.monotonic_ns()
        # Not so where most have gone, and those who came beside them are high up: each number costs a call.
        is_dense = self._highest < 2 * (len(self._known) + self.strangers) + NUMBERS_AHEAD
        if is_dense and self._listed_ns is not None and now_ns - self._listed_ns < LISTING_PERIOD_NS:
            ends = max(self._highest, _open_files()) + NUMBERS_AHEAD
            yield from filterfalse(frozenset(self._known).__contains__, range(ends))
            return
        self._listed_ns, self._highest = now_ns, max(self._known, default=0)
        with os.scandir(OWN_SOCKETS) as files:
            for file in files:
                yield int(file.name)


def _open_files() -> int:
    """How many this process has open; always 0 before Linux 6.2."""
    return OWN_SOCKETS.stat().st_size


def _endpoint(number: int, port: int) -> Endpoint | None:
    """The other end of an open file, if it is a connection to this port."""
    try:
        one = socket_of(number)
    except OSError:
        return None
    try:
        peer = one.getpeername()
        if isinstance(peer, str | bytes):  # the path of a Unix socket
            return None
        host, other_port, *_ = peer
        return (plain_address(host), other_port) if one.getsockname()[1] == port else None
    except (OSError, ValueError):  # it is no connection of TCP, or has gone meanwhile
        return None
    finally:
        one.detach()  # it is gRPC's


def _is_unread(number: int) -> bool:
    """True if something lies in this socket."""
    count = bytearray(4)
    try:
        fcntl.ioctl(number, termios.FIONREAD, count)
    except OSError:
        return False
    return any(count)


def _shut(number: int, endpoint: Endpoint, port: int) -> bool:
    """End a connection if this file still is it; gRPC finds that the other end has gone, and closes the file."""
    if _endpoint(number, port) != endpoint:
        return False
    one = socket_of(number)
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        return False
    finally:
        one.detach()
    return True
