"""The tunnels' listener: TLS for renters and hosts alike, who show the Master's grants; both of one tunnel are joined.

It moves bytes and reads none: what it takes from one end is what the other has room for. A tunnel ends with either end,
with the host's stream to this worker, and after an hour without a byte. Who comes without a grant has ten seconds.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable
from typing import Final

import structlog

from windrow_access.certificates import OwnCertificate
from windrow_access.core.tunnels import Doors, JoinTable, TunnelLimits, grant_in
from windrow_access.listening import accept, listen, port_of
from windrow_proto.connection import FLUSH_S, Connection
from windrow_proto.errors import DeadlineExceeded, Forbidden, InvalidInput, LinkClosed, WindrowError
from windrow_proto.keys import TlsIdentity
from windrow_proto.ports import Clock
from windrow_proto.scrape import Figure
from windrow_proto.tunnels import ACCEPTED, HEAD_BYTES_MAX, TunnelGrant, TunnelSide, problem
from windrow_proto.units import SECOND, seconds
from windrow_proto.wire_tunnel import read_grant

log = structlog.get_logger()

LOOK_NS: Final = SECOND
"""Between two looks for tunnels whose host has gone or that are idle."""

HEAD_ENDS: Final = b"\r\n\r\n"


class End(Connection):
    """One end's connection: first its request, then bytes for the other end."""

    def __init__(self, buffer_bytes: int) -> None:
        super().__init__(buffer_bytes)
        self.grant: TunnelGrant | None = None
        self.other: End | None = None
        self.moved_bytes = 0
        self.joined = asyncio.Event()
        self._asked = asyncio.Event()
        self._head = bytearray()

    # --- called by the loop ----------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """A piece of the request, or bytes for the other end."""
        if self.other is not None:
            self.moved_bytes += len(data)
            self.other.write(data)
            return
        if self._asked.is_set():  # nobody speaks before the 101, so nothing has to be kept for the other end
            self.abort()
            return
        self._head += data
        if HEAD_ENDS in self._head or len(self._head) > HEAD_BYTES_MAX:
            self._asked.set()

    def pause_writing(self) -> None:
        """This end does not take what it is sent: its other is not read until it does."""
        if self.other is not None:
            self.other.pause()

    def resume_writing(self) -> None:
        """It took it."""
        if self.other is not None:
            self.other.resume()

    def connection_lost(self, error: Exception | None) -> None:
        """It has gone, and so its other goes when it has taken what is under way."""
        super().connection_lost(error)
        self._asked.set()
        self.joined.set()
        if self.other is not None:
            self.other.close()

    # --- for the listener ------------------------------------------------------------------------------------------

    async def request(self) -> bytes:
        """The head of its request, without the empty line; raises LinkClosed, InvalidInput."""
        await self._asked.wait()
        head, found, rest = bytes(self._head).partition(HEAD_ENDS)
        self._head.clear()
        if self.ended.is_set():
            raise LinkClosed("It went without a request.")
        if not found or rest:
            raise InvalidInput(f"A request's head has at most {HEAD_BYTES_MAX} bytes, and nothing after it.")
        return head

    def join(self, other: "End") -> None:
        """From now on each sends to the other; both hear it."""
        self.other, other.other = other, self
        for one in (self, other):
            one.write(ACCEPTED)
            one.joined.set()
        if other.ended.is_set():  # a moment ago, so that it could not close this one
            self.close()

    def refuse(self, error: WindrowError) -> None:
        """Say why not, and end it."""
        self.write(problem(error))
        self.close()


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
    ) -> None:
        """has_host: whether this worker has a stream of this host's."""
        self._certificate = OwnCertificate(identity)
        self._master_public, self._has_host = master_public, has_host
        self._clock, self._limits, self._labels = clock, limits, labels
        self._doors = Doors(limits)
        self._table: JoinTable[End] = JoinTable()
        self._joined: dict[End, None] = {}  # those that came second, with their others
        self._moved_bytes = self._count = self._refused = 0
        self._listener: socket.socket | None = None

    def open(self, host: str, port: int) -> int:
        """Listen on this port or the next free one, 0 for any; returns which. Raises Unavailable."""
        self._listener = listen(host, port, "tunnels", "--tunnel-port")
        return port_of(self._listener)

    def figures(self) -> Iterable[Figure]:
        """What this listener counts, for Prometheus."""
        moved = self._moved_bytes + sum(_moved(end) for end in self._joined)
        yield Figure("access_tunnels", "Tunnels that are open", len(self._joined), self._labels)
        yield Figure("access_tunnels_total", "Tunnels that were joined", self._count, self._labels)
        yield Figure("access_tunnel_bytes_total", "Bytes moved in tunnels, both ways", moved, self._labels)
        yield Figure("access_tunnel_refused_total", "Connections for tunnels refused", self._refused, self._labels)
        yield Figure("access_tunnel_strangers", "Connections without a grant", self._doors.strangers, self._labels)

    async def run(self) -> None:
        """Accept and serve, until cancelled; then every tunnel ends."""
        listener = self._listener
        assert listener is not None, "run follows open"
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._look(), name="look")
                await accept(listener, "tunnel", self._admits, self._serve, group)
        finally:
            listener.close()

    def _admits(self, network: str) -> bool:
        is_admitted = self._doors.enter(network)
        self._refused += not is_admitted
        return is_admitted

    async def _serve(self, connection: socket.socket, network: str) -> None:
        """One connection from its acceptance to its end."""
        end = End(self._limits.buffer_bytes)
        host_id = ""
        greet_s = seconds(self._limits.greet_ns)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: end,
                connection,
                ssl=self._certificate.context(),
                ssl_handshake_timeout=greet_s,
                ssl_shutdown_timeout=FLUSH_S,
            )
            async with asyncio.timeout(greet_s):
                head = await end.request()
            grant = self._granted(head)
            self._doors.known(network, grant.host_id)
            host_id, end.grant = grant.host_id, grant
            await self._join(end, grant)
            await end.ended.wait()
        except WindrowError as error:
            self._refused += 1
            log.info("tunnel_refused", code=error.code, detail=error.detail[:200])
            end.refuse(error)
            await end.gone()
        except (TimeoutError, OSError):  # ssl.SSLError is one
            self._refused += 1
        finally:
            end.abort()
            self._doors.gone(host_id) if host_id else self._doors.leave(network)
            self._forget(end)

    def _granted(self, head: bytes) -> TunnelGrant:
        grant = read_grant(grant_in(head), self._master_public, self._clock.wall_ns())
        if not self._has_host(grant.host_id):
            raise Forbidden("The host of this grant is not connected to this Access.", subject=grant.host_id)
        return grant

    async def _join(self, end: End, grant: TunnelGrant) -> None:
        """Join it with its other, or wait for that; raises DeadlineExceeded."""
        wall_ns = self._clock.wall_ns()
        other = self._table.meet(grant, end, wall_ns)
        if other is not None:
            self._count += 1
            self._joined[end] = None
            end.join(other)
            log.info("tunnel_joined", tunnel=grant.tunnel_id, host_id=grant.host_id)
            return
        is_renter = grant.side is TunnelSide.RENTER
        wait_ns = self._limits.renter_wait_ns if is_renter else grant.not_after_ns - wall_ns
        try:
            async with asyncio.timeout(seconds(wait_ns)):
                await end.joined.wait()
        except TimeoutError:
            who = "The host" if is_renter else "The renter"
            raise DeadlineExceeded(f"{who} did not come within {seconds(wait_ns):.0f} s.") from None
        finally:
            self._table.withdraw(grant.tunnel_id, end)

    def _forget(self, end: End) -> None:
        if end in self._joined:
            del self._joined[end]
            self._moved_bytes += _moved(end)

    async def _look(self) -> None:
        """End the tunnels of hosts that are not here any more, and those that are idle."""
        seen: dict[End, tuple[int, int]] = {}
        while True:
            await self._clock.sleep_ns(LOOK_NS)
            now_ns = self._clock.monotonic_ns()
            before, seen = seen, {}
            for end in tuple(self._joined):
                moved = _moved(end)
                was, since_ns = before.get(end, (-1, now_ns))
                seen[end] = moved, since_ns if moved == was else now_ns
                is_idle = now_ns - seen[end][1] > self._limits.idle_ns
                if is_idle or (end.grant is not None and not self._has_host(end.grant.host_id)):
                    log.info("tunnel_cut", tunnel=end.grant and end.grant.tunnel_id, idle=is_idle)
                    end.abort()
                    if end.other is not None:
                        end.other.abort()


def _moved(end: End) -> int:
    return end.moved_bytes + (end.other.moved_bytes if end.other is not None else 0)
