"""The relay: many agents' streams on one side, one trunk to the Master on the other, frames moved unopened.

Holds no truth: it may die at any time, and whatever was not acknowledged by the Master is sent again by the agent.
When the trunk ends, every agent stream ends with it, because the Master greets each agent anew.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import structlog

from windrow_access.core.admission import Admission, Greetings, Limits, Wait, masterless_ns
from windrow_access.core.inspect import objection
from windrow_access.core.leaving import leave_gap_ns
from windrow_access.core.queues import FairQueues
from windrow_access.core.routing import RouteFacts, Routes
from windrow_access.core.strangers import endpoint_of, network_of
from windrow_access.outbox import FRAME_OVERHEAD_BYTES, Outbox
from windrow_access.probes import Bandwidth
from windrow_access.service_asks import ServiceAsks
from windrow_access.warm import WarmConnections
from windrow_proto.errors import (
    CertificateRefused,
    DeadlineExceeded,
    Forbidden,
    InvalidInput,
    LinkClosed,
    TooMany,
    Unavailable,
    WindrowError,
    from_code,
)
from windrow_proto.gather import Gather
from windrow_proto.ports import BandwidthLink, Clock, FrameLink, PeerFacts, PingFacts, PingLink, Rng, TrunkLink
from windrow_proto.scrape import Figure
from windrow_proto.together import together
from windrow_proto.units import MILLISECOND, MINUTE, SECOND
from windrow_proto.v1 import link_pb2, services_pb2
from windrow_proto.wire import take_apart

log = structlog.get_logger()

FRAMES_PER_BATCH = 64
"""Measured: up to 64 frames in one message move three and a half times as many per processor second as one each."""
BATCH_BYTES_MAX = 1 << 20
QUEUE_BYTES_MAX = 256 << 20
QUEUE_ROUTE_BYTES_MAX = 2 << 20
QUEUE_ROUTE_ALL_BYTES_MAX = 8 << 20
"""Of one agent, samples too: one that floods waits by itself, long before others' samples would be shed for it."""
HELLO_NS_MAX = 10 * SECOND
"""From an open stream to the first whole message: an agent sends its hello at once."""
SILENCE_NS_MAX = 30 * MINUTE
"""Between two whole messages: heartbeats come every 5 s, in a fleet of a million hosts every 17 min."""
CROWD_WAIT_NS = 2 * SECOND
"""For who comes while so many wait for the Master's first word that it needs some seconds for them."""
CONTROL_MAX = 50_000
"""Openings and ends of streams that wait for a slow trunk; beyond it nobody new is let in."""
ANSWER_NS = 20 * SECOND
"""For the Master to answer who asks for a service: it gives a host 15 s."""
LOAD_PERIOD_NS = 5 * SECOND
EXPIRY_PERIOD_NS = 2 * SECOND
LEAVE_LOOK_NS = SECOND
BACKOFF_FIRST_NS = 200 * MILLISECOND
BACKOFF_SOON_NS = 400 * MILLISECOND
"""At first, while a Master that waited takes over."""
BACKOFF_LAST_NS = 2 * SECOND
"""Few dial a trunk: even a hundred workers are a hundred dials a second then."""
SOON_NS = 10 * SECOND
WELCOME_DEADLINE_S = 10.0
DRAINING = "This relay is draining; dial another one."

Dial = Callable[[], Awaitable[TrunkLink]]
Stream = Outbox


@dataclass(frozen=True, slots=True)
class RelayFacts:
    """A worker's description of itself. address: what agents dial; signing_public: Ed25519, of its bandwidth claims.
    tunnel_address, tunnel_host_address: what renters dial for a tunnel, and what hosts do; empty: it has none.
    service_address: DOMAIN:PORT under which browsers find services; empty: not here. bugs: what its log counts."""

    access_id: str
    region: str
    worker: int
    address: str
    version: str
    signing_public: bytes
    tunnel_address: str = ""
    tunnel_host_address: str = ""
    service_address: str = ""
    bugs: Callable[[], services_pb2.BugsMet | None] = lambda: None


class Relay:
    """One worker of an Access: an AgentAcceptor with a trunk. `run` keeps the trunk; streams come in by `accepted`."""

    def __init__(
        self, facts: RelayFacts, dial: Dial, bandwidth: Bandwidth, clock: Clock, rng: Rng, limits: Limits
    ) -> None:
        self.facts = facts
        self.attached = asyncio.Event()
        self._dial = dial
        self._bandwidth = bandwidth
        self._clock = clock
        self._rng = rng
        self._limits = limits
        self._admission = Admission(limits, clock.monotonic_ns())
        self._routes: Routes[Stream] = Routes()
        self._queues: FairQueues[int, services_pb2.TrunkItem] = FairQueues(
            QUEUE_BYTES_MAX, QUEUE_ROUTE_BYTES_MAX, QUEUE_ROUTE_ALL_BYTES_MAX
        )
        self._due_ns: dict[int, int] = {}
        self._greetings = Greetings(HELLO_NS_MAX)
        self._seconds: set[int] = set()
        self._control: deque[services_pb2.TrunkItem] = deque()
        self._gather = Gather()
        self._space, self._held_up = asyncio.Condition(), 0
        self._warm = WarmConnections(self.pinged, self._post, clock, limits.warm_max)
        self.asks = ServiceAsks(self._say_if_attached, ANSWER_NS)
        self._shed, self.banned = 0, frozenset[str]()
        self._lost_ns, self._lost_agents = clock.monotonic_ns(), 0
        self._is_ending = False
        self._drained = asyncio.Event()  # an operator's word, which the Master repeats on every trunk

    def has_host(self, host_id: str) -> bool:
        """True if a stream of this host's is open here."""
        return self._routes.of_host(host_id) is not None

    def figures(self) -> Iterable[Figure]:
        """Returns this worker's counts, for Prometheus."""
        labels = {"region": self.facts.region, "worker": str(self.facts.worker)}
        yield Figure("access_attached", "1 while the trunk to the Master holds", float(self.attached.is_set()), labels)
        yield Figure("access_agents", "Agents connected to this worker", self._agents, labels)
        yield Figure("access_warm_connections", "Kept by agents for a bad day", len(self._warm), labels)
        yield Figure("access_load_ratio", "How much of what it may carry is used", self._load_permille() / 1000, labels)
        yield Figure("access_shed_frames_total", "Frames dropped by class when queues were full", self._shed, labels)
        yield Figure("access_draining", "1 while agents are sent elsewhere", float(self._is_draining), labels)

    # --- agents --------------------------------------------------------------------------------

    async def accepted(self, peer: PeerFacts, link: FrameLink) -> None:
        """Serve one agent's stream until either side ends it."""
        self._admit(peer)
        outbox = Outbox()
        route, older = self._routes.open(peer.subject_id, peer.not_after_ns, outbox)
        if older is not None:
            older.stream.end(LinkClosed("The host has opened a newer stream."))
        now_ns = self._clock.monotonic_ns()
        self._due_ns[route.route] = now_ns + HELLO_NS_MAX
        self._greetings.begin(route.route, now_ns)
        if self._warm.is_of(peer.subject_id):
            self._seconds.add(route.route)
        self._say_opened(route.route, peer)
        reason = "stopped"
        try:
            await together(self._read(route.route, link), outbox.hand_to(link.send))
        except WindrowError as error:
            reason = error.code
            raise
        finally:
            self._forget(route.route, reason)

    def _admit(self, peer: PeerFacts) -> None:
        if peer.role != "host":
            raise Forbidden(f"An agent's stream needs a host's certificate, not one of role {peer.role!r}.")
        if peer.not_after_ns <= self._clock.wall_ns():
            raise CertificateRefused(subject=peer.subject_id)
        if self._is_draining:
            raise Unavailable(DRAINING)
        if not self.attached.is_set():
            words = "This relay has no Master at the moment; dial another one or come back."
            raise Unavailable(words, retry_after_ns=self._masterless_ns())
        if len(self._control) >= CONTROL_MAX:
            raise TooMany("This relay is busy: its trunk to the Master is slow; come back in a while.")
        now_ns = self._clock.monotonic_ns()
        if self._greetings.waiting(now_ns) >= self._limits.greetings_max:
            words = "The Master is busy with others that came; come back in a while."
            raise TooMany(words, retry_after_ns=CROWD_WAIT_NS)
        network = network_of(endpoint_of(peer.address)[0])
        answer = self._admission.ask(network, self._agents, now_ns)
        if isinstance(answer, Wait):
            words = f"This relay is busy; come back in {answer.retry_after_ns // MILLISECOND} ms."
            raise TooMany(words, retry_after_ns=answer.retry_after_ns)

    async def _read(self, route: int, link: FrameLink) -> None:
        is_greeted = False
        while True:
            message = await link.receive()
            self._due_ns[route] = self._clock.monotonic_ns() + SILENCE_NS_MAX
            if is_greeted:
                self._seconds.discard(route)  # it serves
            is_greeted = True
            # Unknown fields would go on uncounted: a megabyte of them beside a byte that counts burst the trunk.
            message.DiscardUnknownFields()
            is_urgent = False
            for frame in take_apart(message):
                self._offer(route, frame)
                # A beat (a hello can wait as well), and samples of before an outage.
                is_urgent |= frame.lane != link_pb2.LANE_CONTROL and frame.frame_class != link_pb2.FRAME_CLASS_BACKLOG
            self._gather.nudge(is_urgent=is_urgent)
            if not self._queues.may_read(route):
                await self._wait_for_room(route)

    async def _wait_for_room(self, route: int) -> None:
        self._held_up += 1
        try:
            async with self._space:
                await self._space.wait_for(lambda: self._queues.may_read(route))
        finally:
            self._held_up -= 1

    def _offer(self, route: int, frame: link_pb2.Frame) -> None:
        objected = objection(frame.frame_class, frame.lane, len(frame.sealed))
        if objected is not None:
            raise InvalidInput(objected)
        item = services_pb2.TrunkItem(route=route, frame=frame)
        self._shed += self._queues.offer(route, frame.frame_class, len(frame.sealed) + FRAME_OVERHEAD_BYTES, item)

    def _say_opened(self, route: int, peer: PeerFacts) -> None:
        opened = services_pb2.RouteOpened(
            host_id=peer.subject_id,
            generation=peer.generation,
            not_after_ns=peer.not_after_ns,
            peer=peer.address,
            certificate_sha256=peer.certificate_sha256,
        )
        self._say(services_pb2.TrunkItem(route=route, opened=opened))

    def _say(self, item: services_pb2.TrunkItem) -> None:
        self._control.append(item)
        self._gather.nudge(is_urgent=True)

    def _say_if_attached(self, item: services_pb2.TrunkItem) -> bool:
        if is_attached := self.attached.is_set():
            self._say(item)
        return is_attached

    def _forget(self, route: int, reason: str) -> None:
        self._due_ns.pop(route, None)
        self._greetings.end(route)
        self._seconds.discard(route)
        if self._routes.close(route) is None:
            return
        self._queues.drop_route(route)
        if self.attached.is_set():
            self._say(services_pb2.TrunkItem(route=route, closed=services_pb2.RouteClosed(reason=reason[:200])))

    async def pinged(self, peer: PeerFacts) -> PingFacts:
        """Describes this Access; without a Master it says that it is draining, so that agents look elsewhere."""
        usable = self.attached.is_set() and not self._is_draining
        seen = endpoint_of(peer.address)[0]
        return PingFacts(self.facts.access_id, self.facts.region, self._load_permille(), not usable, seen)

    async def warmed(self, peer: PeerFacts, link: PingLink) -> None:
        """Answer the pings of a connection that a host keeps for the day on which its own Access dies."""
        self._admit(peer)
        try:
            await self._warm.serve(peer, link)
        finally:
            second = self._routes.of_host(peer.subject_id)
            if second is not None and second.route in self._seconds and not self._warm.is_of(peer.subject_id):
                self._due_ns[second.route] = self._clock.monotonic_ns() + HELLO_NS_MAX

    def _post(self, host_id: str, letter: bytes) -> None:
        if self.attached.is_set():
            self._say(services_pb2.TrunkItem(letter=services_pb2.Letter(host_id=host_id, sealed=letter)))

    async def measured(self, peer: PeerFacts, link: BandwidthLink) -> None:
        """Serve one bandwidth measurement."""
        if peer.role != "host":
            raise Forbidden("Only hosts are measured.")
        await self._bandwidth.serve(peer.host_id, link)

    def _load_permille(self) -> int:
        return min(1000, self._agents * 1000 // self._limits.routes_max)

    @property
    def _agents(self) -> int:
        """Those that are served: a stream beside pings keeps still until its host needs it."""
        return len(self._routes) - len(self._seconds)

    # --- the trunk -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep a trunk to the Master, for ever; full-jitter back-off between attempts."""
        backoff_ns = BACKOFF_FIRST_NS
        while True:
            try:
                trunk = await self._dial()
                await self._greet(trunk)
                backoff_ns = BACKOFF_FIRST_NS
                await self._serve(trunk)
            except (WindrowError, TimeoutError) as error:
                log.info("trunk_lost", access_id=self.facts.access_id, worker=self.facts.worker, error=str(error))
            finally:
                self._detach()
            await self._clock.sleep_ns(int(self._rng.uniform() * backoff_ns))
            is_soon = self._clock.monotonic_ns() - self._lost_ns < SOON_NS
            backoff_ns = min(BACKOFF_SOON_NS if is_soon else BACKOFF_LAST_NS, backoff_ns * 2)

    async def _greet(self, trunk: TrunkLink) -> None:
        facts = self.facts
        hello = services_pb2.TrunkHello(
            access_id=facts.access_id,
            region=facts.region,
            worker=facts.worker,
            address=facts.address,
            version=facts.version,
            signing_public=facts.signing_public,
            tunnel_address=facts.tunnel_address,
            tunnel_host_address=facts.tunnel_host_address,
            service_address=facts.service_address,
            tunnels_of_others=True,
        )
        await trunk.send(services_pb2.TrunkBatch(items=[services_pb2.TrunkItem(hello=hello)]))
        async with asyncio.timeout(WELCOME_DEADLINE_S):
            batch = await trunk.receive()
        if not batch.items or batch.items[0].WhichOneof("what") != "welcome":
            raise LinkClosed("The Master's first message was not a welcome.")
        if not batch.items[0].welcome.leader:
            raise Unavailable(f"That Master does not lead; {batch.items[0].welcome.leader_address or 'another'} does.")
        self._set_drained(batch.items[0].welcome.draining)
        for bans in [item.bans for item in batch.items if item.HasField("bans")]:
            await self._ban(bans)
        log.info("trunk_attached", access_id=facts.access_id, worker=facts.worker, epoch=batch.items[0].welcome.epoch)

    async def _serve(self, trunk: TrunkLink) -> None:
        self.attached.set()
        try:
            await together(self._up(trunk), self._down(trunk), self._report(), self._expire(), self._lead_away())
        finally:
            await trunk.close()

    def _detach(self) -> None:
        if self.attached.is_set():
            self._lost_ns, self._lost_agents = self._clock.monotonic_ns(), self._agents
        self.attached.clear()
        self.asks.end()
        lost = Unavailable(
            "This relay has lost its Master; dial another one or come back.", retry_after_ns=self._masterless_ns()
        )
        for facts in self._routes.all():
            facts.stream.end(lost)
            self._queues.drop_route(facts.route)
        self._control.clear()

    def _masterless_ns(self) -> int:
        return masterless_ns(self._clock.monotonic_ns() - self._lost_ns, self._lost_agents)

    async def _up(self, trunk: TrunkLink) -> None:
        while True:
            items = [self._control.popleft() for _ in range(min(len(self._control), FRAMES_PER_BATCH))]
            items += [item for _, item in self._queues.take(FRAMES_PER_BATCH - len(items), BATCH_BYTES_MAX)]
            if not items:
                await self._gather.wait()
                continue
            if self._held_up:
                async with self._space:
                    self._space.notify_all()
            await trunk.send(services_pb2.TrunkBatch(items=items))

    async def _down(self, trunk: TrunkLink) -> None:
        while True:
            for item in (await trunk.receive()).items:
                kind = item.WhichOneof("what")
                route = self._routes.get(item.route)
                if kind == "frame" and route is not None:
                    self._greetings.end(item.route)
                    route.stream.put(item.frame)
                elif kind == "close" and route is not None:
                    self._end(route, from_code(item.close.code, item.close.reason, route.host_id))
                elif kind == "bans":
                    await self._ban(item.bans)
                elif kind == "letter":
                    self._warm.answered(item.letter.host_id, item.letter.sealed)
                elif kind == "service_answer":
                    self.asks.answered(item.service_answer)
                elif kind == "drain":
                    self._set_drained(item.drain.draining)

    async def _ban(self, bans: services_pb2.BanList) -> None:
        self.banned = frozenset(bans.host_ids)
        for host_id in bans.host_ids:
            route = self._routes.of_host(host_id)
            if route is not None:
                self._end(route, from_code("banned", "", host_id))
            await self._warm.end(host_id)

    def _end(self, route: RouteFacts[Stream], error: WindrowError) -> None:
        log.info("route_ended", host_id=route.host_id, route=route.route, code=error.code)
        route.stream.end(error)

    async def _report(self) -> None:
        while True:
            report = services_pb2.LoadReport(
                agents=self._agents,
                load_permille=self._load_permille(),
                queued_bytes=self._queues.queued_bytes,
                shed_frames=self._shed,
                bugs=self.facts.bugs(),
            )
            self._say(services_pb2.TrunkItem(load=report))
            await self._clock.sleep_ns(LOAD_PERIOD_NS)

    async def _expire(self) -> None:
        while True:
            for route in self._routes.expired(self._clock.wall_ns()):
                self._end(route, CertificateRefused("The certificate has ended; renew it.", subject=route.host_id))
            await self._warm.expire(self._clock.wall_ns())
            now_ns = self._clock.monotonic_ns()
            for number in [number for number, due_ns in self._due_ns.items() if due_ns < now_ns]:
                silent = self._routes.get(number)
                is_kept = silent is not None and number in self._seconds and self._warm.is_of(silent.host_id)
                if silent is not None and not is_kept:  # pings keep a second connection
                    self._end(silent, DeadlineExceeded("No whole message came in time; the stream was ended."))
            await self._clock.sleep_ns(EXPIRY_PERIOD_NS)

    async def drain(self) -> None:
        """Take nobody new and send everybody elsewhere; the caller stops the servers afterwards."""
        self._is_ending = True
        for facts in self._routes.all():
            facts.stream.end(Unavailable(DRAINING))

    @property
    def _is_draining(self) -> bool:
        return self._is_ending or self._drained.is_set()

    def _set_drained(self, is_drained: bool) -> None:
        if is_drained is self._drained.is_set():
            return
        if is_drained:
            self._drained.set()
        else:
            self._drained.clear()
        log.info("access_drained" if is_drained else "access_resumed", access_id=self.facts.access_id)

    async def _lead_away(self) -> None:
        """While an operator has this Access drained: send its agents elsewhere, one after the other."""
        while True:
            await self._drained.wait()
            here = self._routes.all()
            for route in here:
                if not self._drained.is_set():
                    break
                if self._routes.get(route.route) is route:
                    self._end(route, Unavailable(DRAINING, subject=route.host_id))
                await self._clock.sleep_ns(leave_gap_ns(len(here)))
            await self._clock.sleep_ns(LEAVE_LOOK_NS)  # those that were being admitted when the word came
