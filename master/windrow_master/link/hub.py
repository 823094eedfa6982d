"""The Master's end of the link to Accesses: trunks, the hosts' routes on them, and the messages up and down both.

 Access ══trunk══▶ reader ─ heartbeat ──▶ fleet's presence, reply
                     ├── evidence ──▶ pump: one store.write for many hosts ──▶ ack after the commit
                     ├── telemetry ─▶ pump: one append for many hosts ──────▶ ack after the fsync
                     └── channel ───▶ the pipe of whoever opened it
 fleet's outbox ─wake▶ dispatcher ─▶ command ──▶ route ──▶ writer ══trunk══▶ Access

Queues are bounded: what does not fit is not accepted, and the agent, which keeps it, sends it again.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

import structlog

from windrow_master.fleet.presence import Route
from windrow_master.fleet.service import FleetService
from windrow_master.link.accesses import TOLD_MAX, Accesses
from windrow_master.link.certificates import NOT_NEWEST, Certificates, HostIdentities
from windrow_master.link.copies import Copies
from windrow_master.link.downlink import RESEND_NS, Downlink, HubFigures, Renewals
from windrow_master.link.letters import Letters
from windrow_master.link.pumps import Waiting, evidence_pump, telemetry_pump
from windrow_master.link.region_map import RegionMaps
from windrow_master.link.route import HostRoute, Opening
from windrow_master.link.routes import Routes
from windrow_master.link.services import OpenService, ServiceAsks
from windrow_master.link.wire import Trunk, hello_of
from windrow_master.loops import again
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.errors import (
    Banned,
    CertificateRefused,
    Conflict,
    Expired,
    Fenced,
    InvalidInput,
    KeptBack,
    LinkClosed,
    Unavailable,
    WindrowError,
)
from windrow_proto.ids import BootId, HostId
from windrow_proto.keys import ExchangeKey, SigningKey
from windrow_proto.messages import Gap, HeartbeatReply, LaneMarks, Query
from windrow_proto.model import Kind, Lane
from windrow_proto.ports import Clock, PeerFacts, TrunkLink
from windrow_proto.units import SECOND
from windrow_proto.v1 import link_pb2, services_pb2
from windrow_proto.wire import Envelope, decode_record, sealed_bytes
from windrow_proto.wire_link import (
    decode_channel,
    decode_heartbeat,
    decode_resume,
    encode_heartbeat_reply,
    encode_query,
)

TICK_NS: Final = SECOND
ASK_AGAIN_NS: Final = 10 * SECOND
BAD_PROOFS_MAX: Final = 16
"""A route that brings more than this is ended: something on the way rewrites messages."""
MISUSES: Final = frozenset({"invalid_input", "too_large", "bad_proof"})
"""The errors that end a route whose agent says what no agent says."""

LATER_MASTERS_MAX: Final = 64
Marks = Mapping[BootId, tuple[tuple[int, int], ...]]
"""The committed evidence of a host, by boot of origin, as ranges."""
OnWelcome = Callable[[HostId, str, BootId, tuple[LaneMarks, ...], Marks], None]
"""Told which host, through which Access, its boot, what it still holds, and what of its evidence is committed."""

__all__ = ["HubFigures", "LinkHub"]

log = structlog.get_logger(__name__)


class LinkHub:
    """Every trunk and every host's route. It is the TrunkAcceptor and the clusters' ChannelBroker."""

    def __init__(
        self,
        fleet: FleetService,
        telemetry: TelemetryService,
        clock: Clock,
        *,
        epoch: int,
        signing: SigningKey,
        accesses: Accesses,
        routes: Routes,
        identities: HostIdentities,
        renewals: Renewals,
        open_service: OpenService,
        on_welcome: OnWelcome,
        exchange_key: Callable[[], ExchangeKey] = ExchangeKey.generate,
    ) -> None:
        """on_welcome: an agent's hello was answered. exchange_key: a fresh one for each welcome."""
        self._fleet, self._telemetry, self._clock = fleet, telemetry, clock
        self._epoch, self._signing = epoch, signing
        self._on_welcome, self._exchange_key = on_welcome, exchange_key
        self.figures = HubFigures()
        self._trunks, self.accesses, self._routes = accesses.trunks, accesses, routes
        self._later_masters: dict[HostId, int] = {}
        self._copies = Copies()
        self._seconds: dict[HostId, HostRoute] = {}
        self._certificates = Certificates(identities, clock)
        self._connections = 0
        self._evidence = evidence_pump(fleet)
        self._samples = telemetry_pump(telemetry)
        self.down = Downlink(fleet, telemetry, clock, renewals, self.figures, routes)
        self._letters, self._services = Letters(self._routes, fleet, self.down), ServiceAsks(open_service)
        self._maps = RegionMaps(self.accesses, self._routes, clock)
        self._told_bans = list[str]()
        fleet.attach(self)
        telemetry.on_period(self.down.on_period)
        fleet.on_change(lambda host_ids: self._check_bans())

    # --- life ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Pump, dispatch and keep time until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._evidence.run())
            tasks.create_task(self._samples.run())
            tasks.create_task(self.down.call())
            tasks.create_task(self.down.dispatch())
            tasks.create_task(self.down.note_sent())
            tasks.create_task(again(self._keep_time, TICK_NS, self._clock, "trunk time"))
            tasks.create_task(self._certificates.note())
            tasks.create_task(self.down.renew())

    async def attached(self, peer: PeerFacts, trunk: TrunkLink) -> None:
        """Serve one trunk until it ends."""
        hello = await hello_of(trunk, peer.subject_id)
        served = Trunk(trunk, hello, peer.address, self._clock.wall_ns())
        self._trunks[served] = None
        self.accesses.came(served)
        self._maps.changed()
        served.greet(self._epoch, self._banned(), draining=self.accesses.is_drained(served.access_id))
        log.info("trunk_attached", access_id=served.access_id, region=served.region, worker=served.worker)
        try:
            async with asyncio.TaskGroup() as tasks:
                writer = tasks.create_task(served.write())
                await served.read(lambda item: self._take(served, item, tasks))
                writer.cancel()
        except* LinkClosed:
            pass
        finally:
            self._depart(served)

    def _depart(self, trunk: Trunk) -> None:
        self._trunks.pop(trunk, None)
        for route in trunk.routes.values():
            self._close(route, "its relay is gone")
        self.accesses.went(trunk)
        self._maps.changed(is_loss=True)
        log.info("trunk_gone", access_id=trunk.access_id, worker=trunk.worker, routes=len(trunk.routes))

    # --- up --------------------------------------------------------------------------------------------------------

    def _take(self, trunk: Trunk, item: services_pb2.TrunkItem, tasks: asyncio.TaskGroup) -> None:
        match item.WhichOneof("what"):
            case "frame":
                self.figures.frames += 1
                route = trunk.routes.get(item.route)
                if route is not None and not route.is_closed:
                    self._take_frame(trunk, item.route, route, item.frame, tasks)
            case "opened":
                opened = item.opened
                opening = Opening(HostId(opened.host_id), opened.generation, opened.not_after_ns, opened.peer[:128])
                self._connections += 1
                put = partial(trunk.put_frame, item.route)
                named = opening, trunk.access_id, self._epoch, self._connections
                tunnels = trunk.tunnel_address, trunk.tunnel_host_address
                trunk.routes[item.route] = HostRoute(*named, put, tunnels, item.route, lambda: trunk.outflow)
            case "closed":
                if (gone := trunk.routes.pop(item.route, None)) is not None:
                    self._close(gone, "the agent has disconnected")
                    self._note_misuse(gone, item.closed.reason)
            case "load":
                trunk.hear_load(item.load)
            case "letter":
                self._letters.take(trunk, item.letter)
            case "service_ask" | "service_left":
                self._services.take(trunk, item, tasks)
            case _:
                pass  # a newer Access may say more than we understand

    def _take_frame(
        self, trunk: Trunk, number: int, route: HostRoute, frame: link_pb2.Frame, tasks: asyncio.TaskGroup
    ) -> None:
        if not route.is_open:
            if not route.is_greeting:
                route.is_greeting = True
                tasks.create_task(self._greet(trunk, number, route, frame))
            return
        try:
            envelope = route.hear(frame)
            if envelope is not None:
                self._hear(trunk, number, route, envelope, frame)
        except KeptBack as error:
            self._letters.accuse(route)
            self._end(trunk, number, route, error)
        except LinkClosed:
            pass  # as in _keep_time: an answer found no space
        except WindrowError as error:
            # Not believed or not understood: dropped and counted; what it was for is sent again by who means it.
            self.figures.bad_proofs += 1
            route.figures.bad_proofs += 1
            route.refuse(error.code)
            self._count(self.figures.refused_messages, error.code)
            if route.figures.bad_proofs > BAD_PROOFS_MAX:
                self._end(trunk, number, route, error)
        except Exception:  # what one host finds to crash ends its own route, and not those of its whole Access
            self._end_crashed(trunk, number, route)

    def _hear(self, trunk: Trunk, number: int, route: HostRoute, envelope: Envelope, frame: link_pb2.Frame) -> None:
        if envelope.kind is Kind.RESUME:
            return self._resume(trunk, number, route, decode_resume(envelope.body))
        if route.is_second:
            raise InvalidInput("A second connection keeps still until it is resumed.")
        if not route.is_confirmed:
            self._confirm(route)
        if envelope.lane is Lane.EVIDENCE or envelope.lane is Lane.TELEMETRY:
            record = decode_record(envelope.body)
            if record.kind is not envelope.kind:
                raise InvalidInput("A record is of another kind than its envelope.")
            if not route.accept(envelope.lane, record.origin_boot, record.origin_sequence):
                route.flush_acks()
            elif envelope.lane is Lane.EVIDENCE:
                self._evidence.offer(Waiting(route, record, sealed_bytes(frame)))
            else:
                self._samples.offer(Waiting(route, record, frame_class=envelope.frame_class))
        elif envelope.kind is Kind.HEARTBEAT:
            self._beat(route, envelope)
        elif envelope.kind is Kind.CHANNEL:
            route.on_channel(decode_channel(envelope.body))

    def _beat(self, route: HostRoute, envelope: Envelope) -> None:
        heartbeat = decode_heartbeat(envelope.body)
        host_id, now_ns = route.host_id, self._clock.monotonic_ns()
        self._fleet.presence.heard(host_id, heartbeat)
        observed = self._fleet.observed(host_id)
        is_stale = observed is None or observed.digest != heartbeat.observed_digest
        is_other = self._lacks_inventory(host_id, heartbeat.inventory_hash)
        reply = HeartbeatReply(
            epoch=self._epoch,
            wall_ns=self._clock.wall_ns(),
            inventory_wanted=is_other and route.may_ask("inventory", now_ns, ASK_AGAIN_NS),
            observed_wanted=is_stale and route.may_ask("observed", now_ns, ASK_AGAIN_NS),
        )
        route.send(Kind.HEARTBEAT_REPLY, Lane.CONTROL, encode_heartbeat_reply(reply))

    # --- greeting --------------------------------------------------------------------------------------------------

    async def _greet(self, trunk: Trunk, number: int, route: HostRoute, frame: link_pb2.Frame) -> None:
        """Answer a hello, or end the route and say why."""
        host_id = route.host_id
        try:
            facts = await self._certificates.check(route.opening)
            hello = route.hear_hello(frame, facts.public_key)
            await self._certificates.proven(route.opening, facts)
            committed = await self._fleet.evidence_marks(host_id)
            route.welcome(
                hello,
                frame,
                public_key=facts.public_key,
                signing=self._signing,
                exchange=self._exchange_key(),
                settings=self.down.settings(host_id),
                committed=committed,
                telemetry_have=lambda boot: self._telemetry.have(host_id, boot),
                inventory_wanted=self._lacks_inventory(host_id, hello.inventory_hash),
                wall_ns=self._clock.wall_ns(),
            )
            assert route.boot_id is not None, "welcomed"
            if not route.is_second:
                self._on_welcome(host_id, route.access_id, route.boot_id, hello.unacked, committed)
        except WindrowError as error:
            if isinstance(error, Fenced):
                log.critical("later_master_seen", host_id=host_id, epoch=self._epoch)
                self._note_later_master(host_id)
            self._end(trunk, number, route, error)
            return
        except Exception:  # the task's top level
            self._end_crashed(trunk, number, route)
            return
        finally:
            route.is_greeting = False
        if route.is_second:
            self._seconds[host_id] = route
            return
        # A hello may be one that a dying line kept back, or that an Access plays again: it takes nobody's place.
        if host_id not in self._routes:
            self._adopt(route)
        route.send(Kind.QUERY, Lane.CONTROL, encode_query(Query((), observed=True)))
        self._maps.tell(route)

    def _resume(self, trunk: Trunk, number: int, route: HostRoute, unacked: tuple[LaneMarks, ...]) -> None:
        """A second connection takes the place of the first, which has died or is about to; what it was greeted with may
        be old by now."""
        if not route.is_second:
            raise InvalidInput("Only a second connection is resumed, and once.")
        host_id = route.host_id
        if self._certificates.is_older(route.opening):
            self._end(trunk, number, route, CertificateRefused(NOT_NEWEST, subject=host_id))
            return
        if (first := self._routes.get(host_id)) is not None:
            route.learn(first)
        if self._seconds.get(host_id) is route:
            del self._seconds[host_id]
        route.resume(unacked)
        self._confirm(route)
        if route.boot_id is not None and not route.is_closed:
            self._on_welcome(host_id, route.access_id, route.boot_id, unacked, route.committed())
            self.down.on_period(host_id)

    def _confirm(self, route: HostRoute) -> None:
        """The first message under the new key: this is the live agent and no replay of its hello."""
        route.is_confirmed = True
        boot = route.boot_id
        assert boot is not None
        if self._copies.is_copy(route.host_id, boot):
            self._on_clone(route)
            return
        if (present := self._routes.get(route.host_id)) is not None and present is not route:
            self._end_route(present, Conflict("The agent has connected anew.", subject=route.host_id))
        self._certificates.heard(route.opening)
        self._adopt(route)

    def _adopt(self, route: HostRoute) -> None:
        boot = route.boot_id
        assert boot is not None
        self._routes[route.host_id] = route
        region = next((t.region for t in self._trunks if t.access_id == route.access_id), "")
        self._fleet.presence.opened(route.host_id, Route(route.access_id, region, route.opening.address, boot))
        self.down.wake(route.host_id, is_urgent=False)

    def _on_clone(self, route: HostRoute) -> None:
        """A boot that another had replaced is alive as well: two agents hold one identity."""
        self.figures.clones += 1
        log.error("clone_seen", host_id=route.host_id, access_id=route.access_id)
        self.down.later(partial(self._fleet.quarantine_now, route.host_id, "two agents use one identity", "master"))
        self.ban(route.host_id)
        self._end_route(route, Banned(subject=route.host_id))

    # --- ending routes ---------------------------------------------------------------------------------------------

    def ban(self, host_id: HostId) -> None:
        """A host's standing has changed for the worse: end its routes. The Accesses are told with the next change of
        the fleet's view."""
        for trunk in self._trunks:
            for number, route in tuple(trunk.routes.items()):
                if route.host_id == host_id:
                    self._end(trunk, number, route, Banned(subject=host_id))

    def _check_bans(self) -> None:
        """The fleet has changed: tell every Access who is banned now, and end their routes."""
        banned = self._banned()
        if banned == self._told_bans:
            return
        for host_id in set(banned) - set(self._told_bans):
            self.ban(HostId(host_id))
        for host_id in set(self._told_bans) - set(banned):
            self._copies.forget(HostId(host_id))
        self._told_bans = banned
        for trunk in self._trunks:
            trunk.put_bans(banned)

    def _end_route(self, route: HostRoute, error: WindrowError) -> None:
        for trunk in self._trunks:
            if trunk.routes.get(route.number) is route:
                self._end(trunk, route.number, route, error)
                return
        self._close(route, error.code)

    def _end(self, trunk: Trunk, number: int, route: HostRoute, error: WindrowError) -> None:
        self._count(self.figures.refused_routes, error.code)
        self._note_misuse(route, error.code)
        log.warning("route_ended", host_id=route.host_id, access_id=trunk.access_id, code=error.code)
        trunk.routes.pop(number, None)
        trunk.put_close(number, error.code, error.detail)
        self._close(route, error.code)

    def _end_crashed(self, trunk: Trunk, number: int, route: HostRoute) -> None:
        log.exception("route_crashed", host_id=route.host_id)
        self._end(trunk, number, route, Unavailable("The Master failed at what this host said."))

    def _note_misuse(self, route: HostRoute, code: str) -> None:
        """Somebody sent what no agent sends: an event, if it was under the host's key, and not for each time."""
        if code in MISUSES and route.is_confirmed:
            self.down.later(partial(self._fleet.link_misused, route.host_id, code))

    def _close(self, route: HostRoute, reason: str) -> None:
        route.close(reason)
        for name, count in route.figures.refused.items():
            self.figures.refused_messages[name] = self.figures.refused_messages.get(name, 0) + count
        if self._seconds.get(route.host_id) is route:
            del self._seconds[route.host_id]
        if self._routes.get(route.host_id) is route:
            del self._routes[route.host_id]
            if (second := self._seconds.get(route.host_id)) is not None:
                second.learn(route)
            if route.boot_id is not None:
                self._fleet.presence.closed(route.host_id, route.boot_id, route.access_id)

    # --- down ---------------------------------------------------------------------------------------------------------

    def wake(self, host_id: HostId) -> None:
        """Commands for this host are in its outbox."""
        self.down.wake(host_id)

    def ask_observed(self, host_id: HostId) -> None:
        """The host should say again what runs on it."""
        self.down.ask_observed(host_id)

    # --- keeping time ----------------------------------------------------------------------------------------------

    async def _keep_time(self) -> None:
        now_ns, wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        for trunk in tuple(self._trunks):
            for number, route in tuple(trunk.routes.items()):
                try:
                    if route.opening.not_after_ns <= wall_ns:
                        self._end(trunk, number, route, Expired("The certificate has expired: renew it."))
                    elif route.is_open and not route.is_second:
                        route.keep_time(now_ns)
                        sent = route.commands_sent
                        if sent and min(sent.values()) + RESEND_NS <= now_ns:
                            self.down.wake(route.host_id, is_urgent=False)
                except LinkClosed:
                    pass  # the trunk does not move, which nobody here did wrong; its own end closes the route
                except Exception:  # one host's business: the others' goes on
                    self._end_crashed(trunk, number, route)
        self._maps.tick()

    # --- what others ask -------------------------------------------------------------------------------------------

    def drain_changed(self, access_id: str) -> None:
        """People drained an Access or let it serve again: it is told now, agents with the next map."""
        self._maps.changed()
        self.accesses.tell(access_id)

    def _note_later_master(self, host_id: HostId) -> None:
        """It is only this host's word: what it can do is to be named to operators, not to stop this Master."""
        self._later_masters.setdefault(host_id, self._clock.wall_ns())
        if len(self._later_masters) > LATER_MASTERS_MAX:
            del self._later_masters[next(iter(self._later_masters))]

    def conditions(self) -> Iterable[Stated]:
        """Code, detail and since when, for health."""
        yield from self.accesses.conditions()
        if self._later_masters:
            named = ", ".join(list(self._later_masters)[:TOLD_MAX])
            more = " and others" if len(self._later_masters) > TOLD_MAX else ""
            yield (
                ConditionCode.MASTER_LATER_SEEN,
                f"These hosts say that they obey a later Master of this market: {named}{more}. They are refused here.",
                min(self._later_masters.values()),
            )

    def _lacks_inventory(self, host_id: HostId, announced: str) -> bool:
        entry = self._fleet.view.get(host_id)
        return entry is None or entry.host.inventory is None or entry.host.inventory_hash != announced

    def _banned(self) -> list[str]:
        return [entry.host.host_id for entry in self._fleet.view if entry.is_banned]

    def telemetry_gap(self, host_id: HostId, gap: Gap) -> None:
        """These samples of the host will never come."""
        self._telemetry.forgive(host_id, gap.origin_boot, gap.ranges)
        route = self._routes.get(host_id)
        if route is not None:
            route.fill(Lane.TELEMETRY, gap.origin_boot, gap.ranges)

    @staticmethod
    def _count(counts: dict[str, int], name: str) -> None:
        counts[name] = counts.get(name, 0) + 1
