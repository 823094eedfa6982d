"""The listener for services: HTTPS for anybody, forwarded through a tunnel to the port of the cluster that the host
name names.

One connection belongs to one service, named in its handshake; after that, bytes are moved and not read, so that
WebSockets, streams and uploads are the service's own affair. Only where there is no service is a request's head read,
to answer it with a page.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, Protocol
from weakref import WeakKeyDictionary

import structlog

from windrow_access.core.services import HEAD_ENDS, Asked, Refused, ServiceLimits, Visits, page
from windrow_access.listening import listen, port_of, serve_connections
from windrow_proto.connection import Connection
from windrow_proto.errors import NotFound, TooMany, WindrowError, from_code
from windrow_proto.ids import ClusterId
from windrow_proto.ports import Clock
from windrow_proto.renter_end import RenterEnd, RenterTicket
from windrow_proto.scrape import Figure
from windrow_proto.service_names import is_under, read_name
from windrow_proto.units import SECOND, seconds
from windrow_proto.v1 import services_pb2

log = structlog.get_logger()

LOOK_NS: Final = 5 * SECOND
"""Between two looks for connections that are idle."""
VISITOR_FLUSH_S: Final = 60.0
"""For a browser on a slow line to take the last of what it was sent."""
LINGER_S: Final = 2.0
"""For a visitor to read why it is refused, while what it still sends is thrown away: closed before, it might not."""
PROTOCOL: Final = "http/1.1"


class Certificate(Protocol):
    """The certificate in use."""

    def context(self) -> ssl.SSLContext:
        """Now."""


class Visitor(Connection):
    """A browser's connection: kept for a moment, then joined to a tunnel, or refused with a page."""

    def __init__(self, head_bytes_max: int) -> None:
        super().__init__()
        self.moved_bytes = 0
        self.patience: asyncio.Timeout | None = None
        self._head_bytes_max = head_bytes_max
        self._early = bytearray()
        self._came = asyncio.Event()
        self._end = RenterEnd(self)
        self._is_joined = self._is_refused = False

    # --- called by the loop ----------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Bytes for the service; until there is a tunnel they are kept, up to the length of a request's head."""
        self.moved_bytes += len(data)
        if self._is_joined:
            self._end.carry(data)
        elif not self._is_refused:
            self._early += data
            self._came.set()
            if len(self._early) >= self._head_bytes_max:
                self.pause()

    def connection_lost(self, error: Exception | None) -> None:
        """It has gone, and so its tunnel goes once it took what is under way."""
        super().connection_lost(error)
        self._came.set()
        if self.patience is not None:
            self.patience.reschedule(0)
        if self._is_joined:
            self._end.end()
            self._end.close()

    def pause_writing(self) -> None:
        """The browser does not take more: the tunnel is not read until it does."""
        self._end.pause()

    def resume_writing(self) -> None:
        """It took it."""
        self._end.resume()

    # --- called by the tunnel --------------------------------------------------------------------------------------

    def take(self, data: memoryview) -> None:
        """Bytes of the service's."""
        self.moved_bytes += len(data)
        self.write(data)

    def take_end(self) -> None:
        """There are no more: TLS as asyncio has it ends both ways at once."""
        self.close(VISITOR_FLUSH_S)

    def hold(self) -> None:
        """The tunnel does not take more."""
        self.pause()

    def go_on(self) -> None:
        """It does again."""
        self.resume()

    def cut(self, error: WindrowError) -> None:
        """The tunnel is gone; a browser must not take this for the end of what it reads."""
        if self._transport is not None and not self._transport.is_closing():
            self.abort()

    # --- for the listener ------------------------------------------------------------------------------------------

    def server_side(self) -> ssl.SSLObject | None:
        """Returns the result of the handshake."""
        found: ssl.SSLObject | None = None
        if self._transport is not None:
            found = self._transport.get_extra_info("ssl_object")
        return found

    async def begun(self) -> bool:
        """Wait for the first bytes; False: it went without."""
        await self._came.wait()
        return not self.ended.is_set()

    async def dial(self, ticket: RenterTicket) -> None:
        """Meet the host; raises what `RenterEnd.dial` does."""
        await self._end.dial(ticket)

    async def carry(self) -> None:
        """From now on bytes go there, first those that came before; returns when both connections have ended."""
        self._is_joined = True
        early, self._early = bytes(self._early), bytearray()
        self.resume()  # before anything is carried: that may say to hold
        self._end.carry(early)
        if self.ended.is_set():  # in the very moment that the tunnel was there
            self._end.end()
            self._end.close()
        await self.ended.wait()
        await self._end.gone()

    def let_go(self) -> None:
        """End both connections now."""
        self.abort()
        self._end.abort()

    async def refuse(self, error: WindrowError, head_s: float) -> None:
        """Answer its request with why not, and end it."""
        try:
            async with asyncio.timeout(head_s):
                while HEAD_ENDS not in self._early and len(self._early) < self._head_bytes_max:
                    self._came.clear()
                    await self._came.wait()
                    if self.ended.is_set():
                        return
        except TimeoutError:
            pass
        head, is_whole, _ = bytes(self._early).partition(HEAD_ENDS)
        self._is_refused, self._early = True, bytearray()
        self.write(page(error.code, head, error.retry_after_ns if isinstance(error, TooMany) else 0))
        self.resume()
        if not is_whole or not head.startswith((b"GET ", b"HEAD ")):  # more may be under way
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    await self.ended.wait()
        self.close()
        await self.gone()


class Services:
    """The listener of one worker. `open`, then `run`."""

    def __init__(
        self,
        domain: str,
        certificate: Callable[[Callable[[ssl.SSLContext], None]], Certificate],
        ask: Callable[[ClusterId, int], Awaitable[services_pb2.ServiceAnswer]],
        ca_pem: Callable[[], bytes],
        clock: Clock,
        limits: ServiceLimits,
        labels: dict[str, str],
    ) -> None:
        """certificate: made with what prepares its contexts. ask: the Master, for a tunnel. ca_pem: the authority of
        the Accesses that tunnels are met at."""
        self._domain, self._ask, self._ca_pem = domain, ask, ca_pem
        self._clock, self._limits, self._labels = clock, limits, labels
        self._names: WeakKeyDictionary[ssl.SSLObject, str] = WeakKeyDictionary()
        self._certificate = certificate(self._prepare)
        self._visits, self._refused = Visits(limits), Refused(limits)
        self._joined: set[Visitor] = set()
        self._dials = asyncio.Semaphore(limits.dials_max)
        self._moved_bytes = self._count = self._refusals = 0
        self._listener: socket.socket | None = None

    def open(self, host: str, port: int, *, is_shared: bool) -> int:
        """Listen on this port or the next free one, 0 for any; is_shared: on this one, with other workers. Returns
        which. Raises Unavailable."""
        self._listener = listen(host, port, "services", "--service-port", is_shared=is_shared)
        return port_of(self._listener)

    def figures(self) -> Iterable[Figure]:
        """Returns this listener's counts, for Prometheus."""
        moved = self._moved_bytes + sum(one.moved_bytes for one in self._joined)
        yield Figure("access_service_visitors", "HTTPS connections to services", self._visits.open, self._labels)
        yield Figure("access_service_visits_total", "Those that reached their service", self._count, self._labels)
        yield Figure("access_service_refused_total", "Those that did not", self._refusals, self._labels)
        yield Figure("access_service_bytes_total", "Bytes moved for services, both ways", moved, self._labels)

    async def run(self) -> None:
        """Accept and serve, until cancelled; then every connection ends."""
        await serve_connections(self._listener, "service", self._admits, self._serve, self._look())

    def _admits(self, network: str) -> bool:
        is_admitted = self._visits.enter(network)
        self._refusals += not is_admitted
        return is_admitted

    async def _serve(self, connection: socket.socket, network: str) -> None:
        """One connection from its acceptance to its end."""
        visitor = Visitor(self._limits.head_bytes_max)
        greet_s = seconds(self._limits.greet_ns)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: visitor,
                connection,
                ssl=self._certificate.context(),
                ssl_handshake_timeout=greet_s,
                ssl_shutdown_timeout=VISITOR_FLUSH_S,
            )
            async with asyncio.timeout(greet_s):
                is_begun = await visitor.begun()
            if is_begun:
                await self._lead(visitor, network)
        except (TimeoutError, OSError):  # ssl.SSLError is one
            self._refusals += 1
        finally:
            visitor.let_go()
            self._visits.leave(network)

    async def _lead(self, visitor: Visitor, network: str) -> None:
        """From the first bytes to the end."""
        side = visitor.server_side()
        asked = read_name(self._names.get(side, "") if side is not None else "", self._domain)
        try:
            async with asyncio.timeout(None) as visitor.patience:
                await self._reach(asked, visitor, network)
        except WindrowError as error:
            visitor.patience = None
            self._refusals += 1
            log.info("service_refused", asked=asked, code=error.code)
            await visitor.refuse(error, seconds(self._limits.head_ns))
            return
        visitor.patience = None
        self._count += 1
        self._joined.add(visitor)
        try:
            await visitor.carry()
        finally:
            self._joined.discard(visitor)
            self._moved_bytes += visitor.moved_bytes

    async def _reach(self, asked: Asked | None, visitor: Visitor, network: str) -> None:
        """Have the host dial and meet it; raises what is in the way."""
        if asked is None:
            raise NotFound
        now_ns = self._clock.monotonic_ns()
        if known := self._refused.code(asked, now_ns):
            raise from_code(known)
        self._visits.ask(network, now_ns)
        try:
            answer = await self._ask(*asked)
            async with self._dials:
                shown = answer.grant, self._ca_pem(), answer.host_pem.encode(), answer.secret
                await visitor.dial(RenterTicket(answer.tunnel_address, *shown))
        except WindrowError as error:
            self._refused.note(asked, error.code, self._clock.monotonic_ns())
            raise
        finally:
            self._visits.asked(network)

    async def _look(self) -> None:
        """End connections on which nothing moves."""
        seen: dict[Visitor, tuple[int, int]] = {}
        while True:
            await self._clock.sleep_ns(min(LOOK_NS, self._limits.idle_ns))
            now_ns = self._clock.monotonic_ns()
            before, seen = seen, {}
            for visitor in tuple(self._joined):
                was, since_ns = before.get(visitor, (-1, now_ns))
                seen[visitor] = visitor.moved_bytes, since_ns if visitor.moved_bytes == was else now_ns
                if now_ns - seen[visitor][1] > self._limits.idle_ns:
                    visitor.abort()

    def _prepare(self, context: ssl.SSLContext) -> None:
        context.set_alpn_protocols([PROTOCOL])
        context.sni_callback = self._named

    def _named(self, side: ssl.SSLObject | ssl.SSLSocket, name: str | None, context: ssl.SSLContext) -> int | None:
        if name is None or not is_under(name, self._domain) or not isinstance(side, ssl.SSLObject):
            return int(ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME)
        self._names[side] = name
        return None
