"""The links inside one process: the same ports as link_grpc.py over a seeded network with delays, cuts and partitions.

Time comes from the Clock and chance from the Rng it is given, so that on a virtual loop the same seed gives the same
history. What a server does it does in the context it was started in, as if it had a process of its own. Messages are
copied on the way, and a slow reader holds its sender up, as on a real line.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from google.protobuf.message import Message

from windrow_proto.errors import Forbidden, LinkClosed, WindrowError
from windrow_proto.link_warm import answer_of
from windrow_proto.ports import (
    AgentAcceptor,
    BandwidthLink,
    Clock,
    FrameLink,
    PeerFacts,
    PingAnswer,
    Rng,
    TrunkAcceptor,
    TrunkLink,
    WarmLink,
)
from windrow_proto.units import MILLISECOND, SECOND
from windrow_proto.v1 import services_pb2

T = TypeVar("T", bound=Message)
Wake = Callable[[int, "asyncio.Future[None]"], None]

WINDOW_BYTES: Final = 262_144
"""In flight per direction before the sender waits; what a real stream may hold (link_streams.AGENT_OPTIONS)."""
KEEPALIVE_NS: Final = 9 * SECOND
"""A stream over a partition ends after this; the real keepalive takes 6 s and 3 s."""
_LOOK_NS: Final = 250 * MILLISECOND


@dataclass(frozen=True, slots=True)
class Weather:
    """How the network behaves: one-way delay, uniform between the two; the chance that a message breaks its stream."""

    delay_ns_min: int = 0
    delay_ns_max: int = 0
    break_chance: float = 0.0


class _Stream:
    """What both ends of one stream share."""

    def __init__(self, dialer: str, address: str) -> None:
        self.dialer, self.address = dialer, address
        self.blocked_at_ns: int | None = None
        self.fault: LinkClosed | None = None
        self.is_drained_first = False
        self.ends: tuple[MemoryLink[Any], ...] = ()

    def end(self, reason: str, cause: BaseException | None = None, is_drained_first: bool = False) -> None:
        """Nothing is sent any more; what is under way still arrives at the dialer if `is_drained_first`."""
        if self.fault is None:
            self.fault = LinkClosed(f"The stream has ended: {reason}")
            self.fault.__cause__ = cause
            self.is_drained_first = is_drained_first
        self.notify()

    def notify(self) -> None:
        """Let everybody who waits at either end look again."""
        for end in self.ends:
            end.notify()


class MemoryLink(Generic[T]):
    """One end of a stream. Made by MemoryNetwork."""

    def __init__(self, network: "MemoryNetwork", stream: _Stream, is_dialer: bool) -> None:
        self._network, self._stream, self._is_dialer = network, stream, is_dialer
        self._arriving: deque[tuple[int, int, T]] = deque()
        self._arriving_bytes = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._held_up = 0  # senders that wait for room
        self.peer: MemoryLink[T] = self

    def notify(self) -> None:
        """Let whoever waits at this end look again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _announce(self, at_ns: int) -> None:
        """A message comes at this time: who waits for it looks then, or at once, and then sleeps until it is there."""
        if self._network.wake is None:
            self.notify()
            return
        for waiter in self._waiters:
            self._network.wake(at_ns, waiter)

    async def send(self, message: T) -> None:
        """Hand over one message; waits while the peer is slow. A cancelled send ends the stream."""
        try:
            await self._send(message)
        except asyncio.CancelledError:
            await self.close()
            raise

    async def _send(self, message: T) -> None:
        data = message.SerializeToString()
        size = len(data)
        while True:
            if self._stream.fault is not None:
                self._raise()
            if self.peer._arriving_bytes == 0 or self.peer._arriving_bytes + size <= WINDOW_BYTES:
                break
            self._held_up += 1
            try:
                await self._wait()
            finally:
                self._held_up -= 1
        weather = self._network.weather
        if weather.break_chance and self._network.rng.uniform() < weather.break_chance:
            self._stream.end("the connection was reset")
            self._raise()
        at = self._network.clock.monotonic_ns() + self._network.delay_ns()
        is_first = not self.peer._arriving
        if not is_first:
            at = max(at, self.peer._arriving[-1][0])
        self.peer._arriving.append((at, size, type(message).FromString(data)))
        self.peer._arriving_bytes += size
        if is_first:
            self.peer._announce(at)

    async def receive(self) -> T:
        """The next message, in the order sent; cancelled, it loses nothing."""
        while True:
            is_over = self._stream.fault is not None
            if is_over and not (self._arriving and self._is_dialer and self._stream.is_drained_first):
                self._raise()
            if self._arriving and self._stream.blocked_at_ns is None:
                at, size, message = self._arriving[0]
                early = at - self._network.clock.monotonic_ns()
                if early > 0 and not is_over:
                    await self._network.clock.sleep_ns(early)
                    continue
                self._arriving.popleft()
                self._arriving_bytes -= size
                if self.peer._held_up:
                    self.peer.notify()
                return message
            await self._wait()

    async def _wait(self) -> None:
        """Until something may have changed; over a partition, whoever waits is the keepalive."""
        blocked_at = self._stream.blocked_at_ns
        if blocked_at is None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        elif self._network.clock.monotonic_ns() - blocked_at >= KEEPALIVE_NS:
            self._stream.end("keepalive was not answered")
            self._stream.is_drained_first = False  # what the other end still sent does not cross, whoever ended it
        else:
            await self._network.clock.sleep_ns(_LOOK_NS)

    def _raise(self) -> None:
        fault = self._stream.fault
        if fault is not None:
            raise LinkClosed(fault.detail) from fault.__cause__

    @property
    def is_closed(self) -> bool:
        """Whether the stream has ended."""
        return self._stream.fault is not None

    async def close(self) -> None:
        """End the stream both ways; safe to call twice."""
        self._stream.end("an end closed it", is_drained_first=not self._is_dialer)


class MemoryServer:
    """A listening server: `address` is where it can be dialled, `stop` ends it and all its streams."""

    def __init__(self, network: "MemoryNetwork", address: str) -> None:
        self.address = address
        self._network = network

    async def stop(self, grace_s: float = 0.0) -> None:
        """As if the process had died; `grace_s` is for likeness with the real one."""
        self._network.remove(self.address)


class MemoryNetwork:
    """All that is connected in one process; an async context, whose end cuts everything."""

    def __init__(self, clock: Clock, rng: Rng, weather: Weather = Weather(), wake: Wake | None = None) -> None:
        """wake: completes a future, unless it is done, at this time of the clock; a virtual loop can do that itself."""
        self.clock, self.rng, self.weather, self.wake = clock, rng, weather, wake
        self._acceptors: dict[str, AgentAcceptor | TrunkAcceptor] = {}
        self._contexts: dict[str, contextvars.Context] = {}
        self._streams: list[_Stream] = []
        self._partitions: set[tuple[str, str]] = set()
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> "MemoryNetwork":
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in self._streams:
            stream.end("the network is gone")
        await self._group.__aexit__(kind, error, trace)

    def delay_ns(self) -> int:
        """A one-way delay, drawn from the weather."""
        low, high = self.weather.delay_ns_min, self.weather.delay_ns_max
        return low + int((high - low) * self.rng.uniform()) if high > low else low

    # --- who is there ---------------------------------------------------------------------------------------------

    async def serve_agents(self, address: str, acceptor: AgentAcceptor) -> MemoryServer:
        """Listen for agents at this address."""
        self._acceptors[address] = acceptor
        self._contexts[address] = contextvars.copy_context()
        return MemoryServer(self, address)

    async def serve_trunk(self, address: str, acceptor: TrunkAcceptor) -> MemoryServer:
        """Listen for Access workers at this address."""
        self._acceptors[address] = acceptor
        self._contexts[address] = contextvars.copy_context()
        return MemoryServer(self, address)

    def remove(self, address: str) -> None:
        """Nobody listens there any more, and the streams that did are reset."""
        self._acceptors.pop(address, None)
        self.reset(address=address)

    def dialer(self, peer: PeerFacts) -> "MemoryDialer":
        """A Dialer for an agent whose certificate says this."""
        return MemoryDialer(self, peer)

    async def dial_trunk(self, addresses: Sequence[str], peer: PeerFacts, deadline_ns: int = 5 * SECOND) -> TrunkLink:
        """Attach to the first Master that answers; raises LinkClosed when none does."""
        failures: list[str] = []
        for address in addresses:
            try:
                link: TrunkLink = await self.open(peer, "access", address, "attached", deadline_ns)
                return link
            except LinkClosed as error:
                failures.append(f"{address}: {error.detail}")
        raise LinkClosed("No Master could be reached. " + " ".join(failures))

    # --- what goes wrong ------------------------------------------------------------------------------------------

    def reset(self, dialer: str | None = None, address: str | None = None) -> int:
        """Break streams at once (None: any), as by a reset; returns how many."""
        hit = [s for s in self._streams if dialer in (None, s.dialer) and address in (None, s.address)]
        for stream in hit:
            stream.end("the connection was reset")
        self._sweep()
        return len(hit)

    def partition(self, dialer: str, address: str) -> None:
        """Let nothing pass between these two, silently, until `heal`."""
        self._partitions.add((dialer, address))
        for stream in self._streams:
            if (stream.dialer, stream.address) == (dialer, address) and stream.blocked_at_ns is None:
                stream.blocked_at_ns = self.clock.monotonic_ns()
                stream.notify()

    def heal(self) -> None:
        """End every partition; streams that have not timed out go on."""
        self._partitions.clear()
        for stream in self._streams:
            stream.blocked_at_ns = None
            stream.notify()

    def _sweep(self) -> None:
        self._streams = [stream for stream in self._streams if stream.fault is None]

    # --- opening --------------------------------------------------------------------------------------------------

    async def reach(self, peer: PeerFacts, role: str, address: str, deadline_ns: int) -> Any:
        """The acceptor at this address, one round trip from now; raises LinkClosed if it cannot be had in time."""
        trip = self.delay_ns() + self.delay_ns()
        if (peer.subject_id, address) in self._partitions or trip > deadline_ns:
            await self.clock.sleep_ns(deadline_ns)
            raise LinkClosed(f"No answer within {deadline_ns / SECOND:.1f} s.")
        await self.clock.sleep_ns(trip)
        if address not in self._acceptors:
            raise LinkClosed(f"Could not connect: nobody listens at {address}.")
        if peer.role != role:
            raise LinkClosed("Could not connect.") from Forbidden(f"Only a {role} may call this.")
        return self._acceptors[address]

    async def open(self, peer: PeerFacts, role: str, address: str, method: str, deadline_ns: int) -> MemoryLink[Any]:
        """A stream to the acceptor's `method` at this address."""
        acceptor = await self.reach(peer, role, address, deadline_ns)
        stream = _Stream(peer.subject_id, address)
        near: MemoryLink[Any] = MemoryLink(self, stream, is_dialer=True)
        far: MemoryLink[Any] = MemoryLink(self, stream, is_dialer=False)
        near.peer, far.peer = far, near
        stream.ends = (near, far)
        self._sweep()
        self._streams.append(stream)
        work = self._serve(getattr(acceptor, method), peer, far, stream)
        self._group.create_task(work, context=self._contexts[address].copy())
        await asyncio.sleep(0)  # in which the acceptor comes to its first wait, or to its end
        refusal = stream.fault.__cause__ if stream.fault is not None else None
        if isinstance(refusal, WindrowError) and not near._arriving:
            raise LinkClosed(f"Could not connect: {refusal.detail}") from refusal
        return near

    async def _serve(
        self,
        accept: Callable[[PeerFacts, Any], Awaitable[None]],
        peer: PeerFacts,
        link: MemoryLink[Any],
        stream: _Stream,
    ) -> None:
        try:
            await accept(peer, link)
        except LinkClosed:
            stream.end("it was served", is_drained_first=True)
        except WindrowError as error:
            stream.end(error.detail, error, is_drained_first=True)
        else:
            stream.end("it was served", is_drained_first=True)


class MemoryDialer:
    """The Dialer port over a MemoryNetwork."""

    def __init__(self, network: MemoryNetwork, peer: PeerFacts) -> None:
        self._network, self._peer = network, peer
        self._links: list[MemoryLink[Any]] = []

    async def connect(self, address: str, deadline_ns: int) -> FrameLink:
        """Open a stream to an Access."""
        return await self._open(address, "accepted", deadline_ns)

    async def bandwidth(self, address: str, deadline_ns: int) -> BandwidthLink:
        """Open a measurement stream; the deadline bounds opening it only."""
        return await self._open(address, "measured", deadline_ns)

    async def _open(self, address: str, method: str, deadline_ns: int) -> MemoryLink[Any]:
        link = await self._network.open(self._peer, "host", address, method, deadline_ns)
        self._links.append(link)
        return link

    async def ping(self, address: str, deadline_ns: int) -> PingAnswer:
        """One round trip of the weather."""
        begin = self._network.clock.monotonic_ns()
        acceptor: AgentAcceptor = await self._network.reach(self._peer, "host", address, deadline_ns)
        try:
            facts = await acceptor.pinged(self._peer)
        except WindrowError as error:
            raise LinkClosed(f"The ping failed: {error.detail}") from error
        return PingAnswer(
            rtt_ns=max(1, self._network.clock.monotonic_ns() - begin),
            access_id=facts.access_id,
            region=facts.region,
            load_permille=facts.load_permille,
            draining=facts.draining,
        )

    async def warm(self, address: str, deadline_ns: int) -> WarmLink:
        """A stream of pings, until frames take its place."""
        return MemoryWarmLink(self, address, await self._open(address, "warmed", deadline_ns), self._network.clock)

    async def close(self) -> None:
        """End every link this dialer opened; safe to call twice."""
        links, self._links = self._links, []
        for link in links:
            await link.close()


class MemoryWarmLink:
    """The WarmLink port over a MemoryNetwork, where a connection is no more than what is sent on it."""

    def __init__(self, dialer: MemoryDialer, address: str, pings: MemoryLink[Any], clock: Clock) -> None:
        self._dialer, self._address, self._pings, self._clock = dialer, address, pings, clock

    async def ping(self, deadline_ns: int, letter: bytes = b"") -> PingAnswer:
        """One round trip of the weather."""
        begin = self._clock.monotonic_ns()
        try:
            await self._pings.send(services_pb2.PingRequest(nonce=b"1", letter=letter))
            async with asyncio.timeout(deadline_ns / SECOND):
                reply = await self._pings.receive()
        except TimeoutError:
            await self.close()
            raise LinkClosed(f"No answer to a ping within {deadline_ns / SECOND:.1f} s.") from None
        return answer_of(reply, self._clock.monotonic_ns() - begin)

    async def connect(self, deadline_ns: int) -> FrameLink:
        """A stream of frames in its place."""
        try:
            if self._pings.is_closed:
                raise LinkClosed("The connection has ended.")
            return await self._dialer.connect(self._address, deadline_ns)
        finally:
            await self.close()

    async def close(self) -> None:
        """End the pings; safe to call twice."""
        await self._pings.close()
