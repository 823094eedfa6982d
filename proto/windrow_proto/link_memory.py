"""The links inside one process: the same ports as link_grpc.py over a seeded network with delays, cuts and partitions.

Time comes from the Clock and chance from the Rng it is given, so that on a virtual loop the same seed gives the same
history. What a server does it does in the context it was started in, as if it had a process of its own. Messages are
copied on the way, and a slow reader holds its sender up, as on a real line.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Final

from windrow_proto.errors import Forbidden, LinkClosed, WindrowError
from windrow_proto.link_memory_stream import BOTH, KEEPALIVE_NS, MemoryLink, Stream, Wake, Way, Weather, ended
from windrow_proto.link_warm import answer_of
from windrow_proto.ports import (
    AgentAcceptor,
    BandwidthLink,
    Clock,
    DialledLink,
    PeerFacts,
    PingAnswer,
    Rng,
    TrunkAcceptor,
    TrunkLink,
    WarmLink,
)
from windrow_proto.units import SECOND
from windrow_proto.v1 import services_pb2

CALM: Final = Weather()

__all__ = ["BOTH", "KEEPALIVE_NS", "MemoryDialer", "MemoryLink", "MemoryNetwork", "MemoryServer", "Way", "Weather"]


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

    def __init__(self, clock: Clock, rng: Rng, weather: Weather = CALM, wake: Wake | None = None) -> None:
        """wake: completes a future, unless it is done, at this time of the clock; a virtual loop can do that itself."""
        self.clock, self.rng, self.weather, self.wake = clock, rng, weather, wake
        self._acceptors: dict[str, AgentAcceptor | TrunkAcceptor] = {}
        self._contexts: dict[str, contextvars.Context] = {}
        self._streams: list[Stream] = []
        self._partitions: dict[tuple[str, str], frozenset[Way]] = {}
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> "MemoryNetwork":
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in self._streams:
            for end in stream.ends:
                end.end(ended("the network is gone"))
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
        for stream in self._streams:
            if stream.address == address:
                stream.end("the connection was reset")
        self._sweep()

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
        """Break streams at once (None: any), as by a reset of their dialers; returns how many."""
        hit = [s for s in self._streams if dialer in (None, s.dialer) and address in (None, s.address)]
        for stream in hit:
            near, far = stream.ends
            near.end(ended("the connection was reset"))
            far.hear_end(ended("the connection was reset"))
        self._sweep()
        return len(hit)

    def partition(self, dialer: str, address: str, ways: frozenset[Way] = BOTH) -> None:
        """Let nothing pass between these two in these directions, silently, until `heal`.

        Each end notices by itself: the dialer after KEEPALIVE_NS, who accepted it after up to twice that. What one of
        them says meanwhile, that it ends the stream included, does not reach the other where the way is cut.
        """
        now_ns = self.clock.monotonic_ns()
        self._partitions[dialer, address] = self._partitions.get((dialer, address), frozenset()) | ways
        for stream in self._streams:
            if (stream.dialer, stream.address) == (dialer, address):
                late_ns = KEEPALIVE_NS + int(KEEPALIVE_NS * self.rng.uniform())
                stream.cut_off(ways, (now_ns + KEEPALIVE_NS, now_ns + late_ns))

    def heal(self, dialer: str | None = None, address: str | None = None) -> None:
        """End partitions (None: any); streams that have not timed out go on."""

        def is_meant(pair: tuple[str, str]) -> bool:
            return dialer in (None, pair[0]) and address in (None, pair[1])

        self._partitions = {pair: ways for pair, ways in self._partitions.items() if not is_meant(pair)}
        for stream in self._streams:
            if stream.cut and is_meant((stream.dialer, stream.address)):
                stream.heal()

    def _sweep(self) -> None:
        self._streams = [stream for stream in self._streams if not stream.is_over]

    # --- opening --------------------------------------------------------------------------------------------------

    async def reach(self, peer: PeerFacts, role: str, address: str, deadline_ns: int) -> Any:
        """The acceptor at this address, one round trip from now; raises LinkClosed if it cannot be had in time."""
        trip = self.delay_ns() + self.delay_ns()
        pair = (peer.subject_id, address)
        is_lost = pair in self._partitions or trip > deadline_ns
        await self.clock.sleep_ns(deadline_ns if is_lost else trip)
        if not is_lost and pair in self._partitions:  # it came meanwhile
            await self.clock.sleep_ns(deadline_ns - trip)
            is_lost = True
        if is_lost:
            raise LinkClosed(f"No answer within {deadline_ns / SECOND:.1f} s.")
        if address not in self._acceptors:
            raise LinkClosed(f"Could not connect: nobody listens at {address}.")
        if peer.role != role:
            raise LinkClosed("Could not connect.") from Forbidden(f"Only a {role} may call this.")
        return self._acceptors[address]

    async def open(self, peer: PeerFacts, role: str, address: str, method: str, deadline_ns: int) -> MemoryLink[Any]:
        """A stream to the acceptor's `method` at this address."""
        acceptor = await self.reach(peer, role, address, deadline_ns)
        stream = Stream(peer.subject_id, address)
        near: MemoryLink[Any] = MemoryLink(self, stream, is_dialer=True)
        far: MemoryLink[Any] = MemoryLink(self, stream, is_dialer=False)
        near.peer, far.peer = far, near
        stream.ends = (near, far)
        self._sweep()
        self._streams.append(stream)
        work = self._serve(getattr(acceptor, method), peer, far, stream)
        self._group.create_task(work, context=self._contexts[address].copy())
        await asyncio.sleep(0)  # in which the acceptor comes to its first wait, or to its end
        refusal = near.fault.__cause__ if near.fault is not None else None
        if isinstance(refusal, WindrowError) and not near._arriving:
            raise LinkClosed(f"Could not connect: {refusal.detail}") from refusal
        return near

    async def _serve(
        self,
        accept: Callable[[PeerFacts, Any], Awaitable[None]],
        peer: PeerFacts,
        link: MemoryLink[Any],
        stream: Stream,
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

    async def connect(self, address: str, deadline_ns: int) -> DialledLink:
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
            seen=facts.seen,
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

    async def connect(self, deadline_ns: int) -> DialledLink:
        """A stream of frames beside it."""
        try:
            if self._pings.is_closed:
                raise LinkClosed("The connection has ended.")
            return await self._dialer.connect(self._address, deadline_ns)
        except LinkClosed:
            await self.close()
            raise

    async def close(self) -> None:
        """End the pings; safe to call twice."""
        await self._pings.close()
