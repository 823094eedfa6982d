"""The tunnels' listener: TLS for renters and hosts alike, who show the Master's grants; both of one tunnel are joined.

Once both are there, its TLS is taken off and their own begins: it moves bytes and can read none. What it takes from one
end is what the other has space for. A tunnel ends with either end, with the host's stream to this worker (where the
grant names the worker: with its trunk, or a ban of the host), and after an hour without a byte. Who comes without a
grant has ten seconds.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import structlog

from windrow_access.certificates import OwnCertificate
from windrow_access.core.tunnels import ConnectionCounts, JoinTable, TunnelLimits, grant_in
from windrow_access.listening import listen, port_of, serve_connections
from windrow_access.splicing import Splice
from windrow_proto.errors import DeadlineExceeded, InvalidInput, LinkClosed, Unavailable, WindrowError
from windrow_proto.keys import TlsIdentity
from windrow_proto.ports import Clock
from windrow_proto.scrape import Figure
from windrow_proto.tunnels import TunnelGrant, TunnelSide, market_error, problem
from windrow_proto.units import SECOND, seconds
from windrow_proto.wire_tunnel import read_grant
from windrow_tunnel import sockets
from windrow_tunnel.errors import TunnelError
from windrow_tunnel.wire import ACCEPTED

log = structlog.get_logger()

LOOK_NS: Final = SECOND
"""Between two looks for tunnels that may not be here any more or are idle."""


class End:
    """One end's connection: first its request, then it waits for the other, then it is bare."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self.over = asyncio.Event()
        self.is_taken = False
        self._connection: ssl.SSLSocket | socket.socket = connection
        self._secure = connection
        self._woken = asyncio.Event()

    async def request(self) -> bytes:
        """The head of its request, without the empty line; raises LinkClosed, InvalidInput, OSError."""
        try:
            head, rest = await sockets.head_of(self._secure)
        except TunnelError as error:
            raise market_error(error) from error
        if rest or self._secure.pending():
            raise InvalidInput("Nothing may follow a request's head.")
        return head

    async def wait(self) -> None:
        """Wait until it is taken; raises LinkClosed when it goes or speaks before: nobody has anything to say yet."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._secure, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            if not self.is_taken:
                loop.remove_reader(self._secure)
        if not self.is_taken:
            raise LinkClosed("The caller left, or sent data, before the other end connected.")

    def take(self) -> None:
        """Its other end is there, whose task it is from now on to end both."""
        asyncio.get_running_loop().remove_reader(self._secure)
        self.is_taken = True
        self._woken.set()

    async def accept(self) -> None:
        """Tell it that the other is there; raises OSError."""
        await sockets.say(self._secure, ACCEPTED)

    async def bare(self) -> socket.socket:
        """Take its TLS off, and return its socket; raises OSError."""
        self._connection = await sockets.bare(self._secure)
        return self._connection

    async def refuse(self, error: WindrowError) -> None:
        """Say why not, and end it."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(sockets.BYE_S):
                await sockets.say(self._secure, problem(error))
                await self.bare()
        await sockets.end(self._connection)

    def close(self) -> None:
        """End it now."""
        self._connection.close()


class Tunnels:
    """The listener of one worker. `open`, then `run`."""

    def __init__(
        self,
        identity: Callable[[], TlsIdentity],
        master_public: bytes,
        has_host: Callable[[str], bool],
        clock: Clock,
        limits: TunnelLimits,
        labels: dict[str, str],
        name: str = "",
        takes: Callable[[str], bool] = lambda host_id: False,
    ) -> None:
        """has_host: whether this worker has a stream of this host's. name, takes: what grants call this worker, and
        whether one that does is good for this host: the Master is attached, and has not banned it."""
        self._certificate = OwnCertificate(identity)
        self._master_public, self._has_host = master_public, has_host
        self._name, self._takes = name, takes
        self._clock, self._limits, self._labels = clock, limits, labels
        self._counts = ConnectionCounts(limits)
        self._table: JoinTable[End] = JoinTable()
        self._joined: dict[Splice, TunnelGrant] = {}
        self._moved_bytes = self._count = self._refused = 0
        self._listener: socket.socket | None = None

    def open(self, host: str, port: int) -> int:
        """Listen on this port or the next free one, 0 for any; returns which. Raises Unavailable."""
        self._listener = listen(host, port, "tunnels", "--tunnel-port")
        return port_of(self._listener)

    def figures(self) -> Iterable[Figure]:
        """The counts of this listener, for Prometheus."""
        moved = self._moved_bytes + sum(splice.moved_bytes for splice in self._joined)
        yield Figure("access_tunnels", "Tunnels that are open", len(self._joined), self._labels)
        yield Figure("access_tunnels_total", "Tunnels that were joined", self._count, self._labels)
        yield Figure("access_tunnel_bytes_total", "Bytes moved in tunnels, both ways", moved, self._labels)
        yield Figure("access_tunnel_refused_total", "Connections for tunnels refused", self._refused, self._labels)
        yield Figure("access_tunnel_strangers", "Connections without a grant", self._counts.strangers, self._labels)

    async def run(self) -> None:
        """Accept and serve, until cancelled; then every tunnel ends."""
        await serve_connections(self._listener, "tunnel", self._admits, self._serve, self._look())

    def _admits(self, network: str) -> bool:
        is_admitted = self._counts.enter(network)
        self._refused += not is_admitted
        return is_admitted

    async def _serve(self, connection: socket.socket, network: str) -> None:
        """One connection from its acceptance to its end."""
        end: End | None = None
        host_id = ""
        greet_s = seconds(self._limits.greet_ns)
        try:
            sockets.prepare(connection)
            async with asyncio.timeout(greet_s):
                end = End(await sockets.secure(connection, self._certificate.context()))
            async with asyncio.timeout(greet_s):
                head = await end.request()
            grant = self._granted(head)
            self._counts.known(network, grant.host_id)
            host_id = grant.host_id
            await self._join(end, grant)
        except WindrowError as error:
            self._refused += 1
            log.info("tunnel_refused", code=error.code, detail=error.detail[:200])
            assert end is not None, "only who was greeted is refused"
            await end.refuse(error)
        except (TimeoutError, OSError):  # ssl.SSLError is one
            self._refused += 1
        finally:
            connection.close()
            if end is not None and not end.is_taken:
                end.close()
            self._counts.gone(host_id) if host_id else self._counts.leave(network)

    def _granted(self, head: bytes) -> TunnelGrant:
        grant = read_grant(grant_in(head), self._master_public, self._clock.wall_ns())
        if not self._holds(grant):
            words = "This relay cannot join this tunnel: its host, or the Master, is not connected here now."
            raise Unavailable(f"{words} Ask the Master for another one.", subject=grant.host_id)
        return grant

    def _holds(self, grant: TunnelGrant) -> bool:
        """Return whether a tunnel may be here, at its beginning and for as long as it lasts: the Master can end it."""
        if grant.worker:
            return grant.worker == self._name and self._takes(grant.host_id)
        return self._has_host(grant.host_id)

    async def _join(self, end: End, grant: TunnelGrant) -> None:
        """Serve a tunnel to its end; raises DeadlineExceeded where the other end did not come, LinkClosed, OSError."""
        wall_ns = self._clock.wall_ns()
        other = self._table.meet(grant, end, wall_ns)
        if other is None:
            await self._wait(end, grant, wall_ns)
            await end.over.wait()
            return
        other.take()
        try:
            await self._move(other, end, grant)
        finally:
            other.close()
            other.over.set()

    async def _wait(self, end: End, grant: TunnelGrant, wall_ns: int) -> None:
        is_renter = grant.side is TunnelSide.RENTER
        wait_ns = self._limits.renter_wait_ns if is_renter else grant.not_after_ns - wall_ns
        try:
            async with asyncio.timeout(seconds(wait_ns)):
                await end.wait()
        except TimeoutError:
            if not end.is_taken:
                who = "The host" if is_renter else "The renter"
                raise DeadlineExceeded(f"{who} did not come within {seconds(wait_ns):.0f} s.") from None
        finally:
            self._table.withdraw(grant.tunnel_id, end)

    async def _move(self, first: End, second: End, grant: TunnelGrant) -> None:
        async with asyncio.timeout(seconds(self._limits.greet_ns)):
            for end in (first, second):
                await end.accept()
            splice = Splice(await first.bare(), await second.bare(), self._limits.buffer_bytes)
        self._count += 1
        self._joined[splice] = grant
        log.info("tunnel_joined", tunnel=grant.tunnel_id, host_id=grant.host_id)
        try:
            await splice.run()
        finally:
            del self._joined[splice]
            self._moved_bytes += splice.moved_bytes
            splice.close()

    async def _look(self) -> None:
        """End the tunnels of hosts that are not here any more, and those that are idle."""
        seen: dict[Splice, tuple[int, int]] = {}
        while True:
            await self._clock.sleep_ns(LOOK_NS)
            now_ns = self._clock.monotonic_ns()
            before, seen = seen, {}
            for splice, grant in self._joined.items():
                was, since_ns = before.get(splice, (-1, now_ns))
                seen[splice] = splice.moved_bytes, since_ns if splice.moved_bytes == was else now_ns
                is_idle = now_ns - seen[splice][1] > self._limits.idle_ns
                if is_idle or not self._holds(grant):
                    log.info("tunnel_cut", tunnel=grant.tunnel_id, idle=is_idle)
                    splice.cut()
