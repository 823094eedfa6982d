"""Sends messages down to hosts: commands from the outbox, questions, settings and the renewal of leases.

outbox ─wake▶ dispatch ─▶ COMMAND: at once, again each 5 s until accepted, again on every new connection
                      └─▶ QUERY: what was accepted before, or ran out while it was under way; never repeated blindly
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from windrow_master.fleet.commands import to_ask, to_send
from windrow_master.fleet.model import CommandRow, CommandState
from windrow_master.fleet.service import FleetService
from windrow_master.link.route import HostRoute
from windrow_master.loops import ends_alone
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.errors import LinkClosed, WindrowError
from windrow_proto.gather import Gather
from windrow_proto.ids import CommandId, HostId
from windrow_proto.messages import Query, Settings
from windrow_proto.model import CommandKind, Kind, Lane, LeaseRenewal
from windrow_proto.ports import Clock
from windrow_proto.units import KIB, MIB, MILLISECOND, SECOND
from windrow_proto.wire_command import encode_leases
from windrow_proto.wire_link import encode_query, encode_settings

NOTE_SENT_NS: Final = 100 * MILLISECOND
RESEND_NS: Final = 5 * SECOND
RENEW_EVERY_NS: Final = 30 * SECOND
LEASES_LIFE_NS: Final = 60 * SECOND
ASK_AGAIN_NS: Final = 60 * SECOND
AHEAD_BYTES_MAX: Final = 1 * MIB
"""Of commands that one host has not accepted, if there are several; deletes do not count. An Access ends the stream of
a host that has not taken four times as much (outbox.py): all at once they would not get there, now or on the next."""
FRAME_BYTES: Final = 1 * KIB
"""The bytes that the Access counts for each frame beside its body."""
EVIDENCE_CREDITS: Final = 128
TELEMETRY_CREDITS: Final = 256
CHANNEL_CREDIT_BYTES: Final = 1 << 20

Renewals = Callable[[], Awaitable[Mapping[HostId, tuple[LeaseRenewal, ...]]]]
"""Renews the leases that hosts hold; what is to be sent to each of them."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class HubFigures:
    """The counters of the hub."""

    frames: int = 0
    bad_proofs: int = 0
    refused_routes: dict[str, int] = field(default_factory=dict)
    refused_messages: dict[str, int] = field(default_factory=dict)
    commands_sent: int = 0
    clones: int = 0


class Downlink:
    """Sends to whoever is connected; `routes` is the hub's table of live routes."""

    def __init__(
        self,
        fleet: FleetService,
        telemetry: TelemetryService,
        clock: Clock,
        renewals: Renewals,
        figures: HubFigures,
        routes: Mapping[HostId, HostRoute],
    ) -> None:
        self._fleet, self._telemetry, self._clock = fleet, telemetry, clock
        self._renewals, self._figures, self._routes = renewals, figures, routes
        self._woken: dict[HostId, None] = {}
        self._gather = Gather()
        self._sent: list[CommandId] = []
        self._has_sent = asyncio.Event()
        self._calls: deque[Callable[[], Awaitable[None]]] = deque()
        self._called = asyncio.Event()

    def wake(self, host_id: HostId, *, is_urgent: bool = True) -> None:
        """A host has something in its outbox, or may have: then it waits a moment for others, so that the hosts of a
        dead Access take few reads of the store and not one each."""
        self._woken[host_id] = None
        self._gather.nudge(is_urgent=is_urgent)

    async def dispatch(self) -> None:
        while True:
            await self._gather.wait()
            woken, self._woken = self._woken, {}
            hosts = [host_id for host_id in woken if host_id in self._routes]
            if not hosts:
                continue
            try:
                outbox = await self._fleet.outbox(hosts)
                sent = [i for host_id, rows in outbox.items() for i in self._send_commands(host_id, rows)]
                if sent:
                    self._sent += sent
                    self._has_sent.set()
            except WindrowError as error:
                log.warning("dispatch_failed", hosts=len(hosts), error=str(error))
                self._woken = dict.fromkeys(hosts) | self._woken
            except Exception:  # the others of the next turn go on; open commands are looked at again with time
                log.exception("dispatch_crashed", hosts=len(hosts))

    async def note_sent(self) -> None:
        """Write down what was sent, a moment later: by then most of it has been answered, and the answer says more.

        Nothing depends on it but what people read: unanswered commands are sent again, noted or not.
        """
        while True:
            await self._has_sent.wait()
            await self._clock.sleep_ns(NOTE_SENT_NS)
            self._has_sent.clear()
            sent, self._sent = self._sent, []
            with ends_alone("sent_noting", commands=len(sent)):
                await self._fleet.mark_sent(tuple(sent))

    def later(self, call: Callable[[], Awaitable[None]]) -> None:
        """Have something written down by a task of the hub, in order."""
        self._calls.append(call)
        self._called.set()

    async def call(self) -> None:
        while True:
            await self._called.wait()
            self._called.clear()
            while self._calls:
                with ends_alone("hub_call"):  # one host's business: the others' goes on
                    await self._calls.popleft()()

    def _send_commands(self, host_id: HostId, rows: Sequence[CommandRow]) -> list[CommandId]:
        """Put on the wire what is due, and ask after what must not be repeated; returns what was sent for the first
        time."""
        route = self._routes.get(host_id)
        if route is None or not route.is_open:
            return []
        now_ns, wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        first: list[CommandId] = []
        still: dict[CommandId, int] = {}
        asked: list[CommandId] = []
        ahead_bytes = 0
        try:
            for row in rows:
                if to_send(row, wall_ns):
                    before_ns = route.commands_sent.get(row.command_id)
                    size = len(row.body) + FRAME_BYTES if row.kind is not CommandKind.DELETE else 0
                    if size and ahead_bytes and ahead_bytes + size > AHEAD_BYTES_MAX:
                        continue  # when what is before it was accepted
                    ahead_bytes += size
                    if before_ns is None or now_ns - before_ns >= RESEND_NS:
                        self._send_command(route, row)
                        before_ns = now_ns
                        if row.state is CommandState.QUEUED:
                            first.append(row.command_id)
                    still[row.command_id] = before_ns
                elif to_ask(row, wall_ns) and route.may_ask(row.command_id, now_ns, ASK_AGAIN_NS):
                    asked.append(row.command_id)
            if asked:
                route.send(Kind.QUERY, Lane.CONTROL, encode_query(Query(tuple(asked), observed=True)))
        except LinkClosed:
            pass  # the next route sends them
        route.commands_sent = still
        return first

    def _send_command(self, route: HostRoute, row: CommandRow) -> None:
        self._figures.commands_sent += 1
        route.send(Kind.COMMAND, Lane.EVIDENCE, row.body, row.not_after_ns)

    def ask_observed(self, host_id: HostId) -> None:
        """Let a host say again what runs on it."""
        self.send(host_id, Kind.QUERY, encode_query(Query((), observed=True)))

    def on_period(self, host_id: HostId) -> None:
        route = self._routes.get(host_id)
        settings = self.settings(host_id)
        if route is not None and route.settings != settings:
            route.settings = settings
            self.send(host_id, Kind.SETTINGS, encode_settings(settings))

    def send(self, host_id: HostId, kind: Kind, body: bytes, not_after_ns: int = 0) -> None:
        route = self._routes.get(host_id)
        if route is not None and route.is_open:
            try:
                route.send(kind, Lane.CONTROL, body, not_after_ns)
            except LinkClosed:
                pass  # whoever reads the route hears it, too

    def settings(self, host_id: HostId) -> Settings:
        """Return the settings for a host."""
        return Settings(
            telemetry_period_ns=self._telemetry.period_ns(host_id),
            sample_period_ns=SECOND,
            heartbeat_interval_ns=self._fleet.heartbeat_interval_ns(),
            evidence_credits=EVIDENCE_CREDITS,
            telemetry_credits=TELEMETRY_CREDITS,
            channel_credit_bytes=CHANNEL_CREDIT_BYTES,
        )

    async def renew(self) -> None:
        while True:
            await self._clock.sleep_ns(RENEW_EVERY_NS)
            with ends_alone("renewals"):
                await self.renew_once()

    async def renew_once(self) -> None:
        """Send every connected host the time its leases have gained."""
        renewals = await self._renewals()
        not_after_ns = self._clock.wall_ns() + LEASES_LIFE_NS
        for host_id, leases in renewals.items():
            self.send(host_id, Kind.LEASES, encode_leases(leases), not_after_ns)
