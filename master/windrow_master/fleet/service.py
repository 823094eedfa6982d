"""The fleet's service: one interface for hosts, slots, commands, evidence and presence, and the loop that keeps time
for them.

trunk ── heartbeat ──▶ presence (memory) ──┐ each second: verdicts ──▶ one write for all that changed
      ── evidence ───▶ take(uow, items)    ├ each 5 s: commands and holds that ran out, measurements that are due
others ─ grant, issue ▶ (their uow)        └ each 30 s: desired against observed
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import structlog

from windrow_master.fleet import reconcile
from windrow_master.fleet import use_history_repository as use_history
from windrow_master.fleet.bandwidth_schedule import MEASURE_CAP_BYTES, BandwidthSchedule
from windrow_master.fleet.challenges import ChallengeRegistry
from windrow_master.fleet.claims.uniqueness import FLEET_CODES
from windrow_master.fleet.commands import CommandQueue, ended_words, is_under_way
from windrow_master.fleet.distances import Distances, distances
from windrow_master.fleet.evidence_repository import EvidenceRepository, MarkRepository
from windrow_master.fleet.hosts import HostRegistry
from windrow_master.fleet.intake import AccessKey, EvidenceIntake, EvidenceItem
from windrow_master.fleet.messages import (
    CommandChanged,
    DesiredOn,
    HasHad,
    HostBanned,
    LinkChanged,
    SlotsLost,
    WorkloadReported,
)
from windrow_master.fleet.model import NO_BYTES, AdminState, CommandRow, Host, LinkState, Slot
from windrow_master.fleet.partitioning import GpuPartitioner
from windrow_master.fleet.ports import HostLink, Relays
from windrow_master.fleet.presence import Change, PresenceBook
from windrow_master.fleet.reconcile import Findings
from windrow_master.fleet.reliability import SLOT_NS
from windrow_master.fleet.reliability_counts import ReliabilityCounts
from windrow_master.fleet.repository import ClaimRepository, CommandRepository, HostRepository, SlotRepository
from windrow_master.fleet.slot_leases import SlotLeases, is_back_soon
from windrow_master.fleet.states import AdminEvent, LinkEvent
from windrow_master.fleet.use_history_repository import UseHistoryRepository
from windrow_master.fleet.view import Entry, FleetView
from windrow_master.loops import Boundary, again, ends_alone, when_due
from windrow_master.store.store import Store
from windrow_master.store.unit import DATABASE_FAULTS, UnitOfWork
from windrow_master.work_queue import WorkQueue
from windrow_proto.errors import HostUnreachable, NotFound, WindrowError
from windrow_proto.ids import AccountId, BootId, ClusterId, CommandId, HostId, OperationId, SlotId
from windrow_proto.messages import Gap
from windrow_proto.model import Command, CommandKind, Kind, Observed, ObservedWorkload, SlotGrant, WorkloadPhase
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import DAY, HOUR, SECOND, Bytes

TICK_NS: Final = SECOND
RETURNS_NS: Final = SECOND // 10
"""Between two looks at hosts that come online, at least: many that come together share one."""
TIMEOUTS_EVERY_NS: Final = 5 * SECOND
MEASURES_EVERY_NS: Final = 5 * SECOND
CLAIMS_EVERY_NS: Final = 30 * SECOND
"""Between two looks for cards that two hosts claim: an inventory is looked at when it comes, a host's end here."""
FORGET_EVERY_NS: Final = HOUR
DISTANCES_EVERY_NS: Final = 10 * SECOND
EVIDENCE_KEPT_NS: Final = 30 * DAY
HEARTBEAT_MIN_NS: Final = 5 * SECOND
HEARTBEATS_PER_S_MAX: Final = 1_000
"""The interval stretches with the fleet so that heartbeats alone never fill a core."""

log = structlog.get_logger(__name__)


class FleetService:
    """Hosts, slots and commands. Methods that take a `uow` run inside the caller's unit of work."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        rng: Rng,
        relays: Relays,
        access_key: AccessKey,
        measure_cap_bytes: int = MEASURE_CAP_BYTES,
    ) -> None:
        """access_key: the Ed25519 key that an Access signs with; None if the Access is not one of this market.
        measure_cap_bytes: that a measurement of a real host may move each way."""
        self._store, self._clock, self._rng = store, clock, rng
        self.relays: Final = relays
        self._links: list[HostLink] = []
        self.view = FleetView()
        self.presence = PresenceBook(clock)
        self._back = WorkQueue[HostId](clock)
        self.presence.on_return(self._back.add)
        self.slots = SlotLeases(self._touch)
        self.commands = CommandQueue(self._wake, self._on_command)
        self.hosts = HostRegistry(self.slots, self._touch, self._on_ban, self._alarm)
        self.challenges = ChallengeRegistry()
        self.measures = BandwidthSchedule(self.hosts, self.commands, measure_cap_bytes)
        self.cuts = GpuPartitioner(self.hosts, self.commands)
        self.reliability = ReliabilityCounts(self.hosts)
        self.distances: Distances = {}
        self.evidence = EvidenceIntake(
            self.hosts, self.commands, access_key, self._on_observed, self._on_gap, self.presence.leaving
        )
        self._faults = Boundary("fleet", DATABASE_FAULTS)
        self._timeouts = Boundary("timeout", DATABASE_FAULTS)
        self._steps = Boundary("fleet", (*DATABASE_FAULTS, WindrowError))
        self._dirty: set[HostId] = set()
        self._refreshing = asyncio.Lock()
        self._observed: dict[HostId, Observed] = {}
        self._findings: dict[HostId, Findings] = {}
        self._returned: set[HostId] = set()
        self._listeners: list[Callable[[Collection[HostId]], None]] = []
        self._touch_listeners: list[Callable[[HostId], None]] = []
        self._due: dict[str, int] = {}
        self._is_alarmed = False

    # --- what other packages call inside their unit of work --------------------------------------------------------

    def enrol(
        self, uow: UnitOfWork, host_id: HostId, name: str, owner_account: AccountId, simulated: bool, actor: str
    ) -> Host:
        """A host has joined; the same one again changes nothing."""
        return self.hosts.enrol(uow, host_id, name, owner_account, simulated, actor)

    def quarantine(self, uow: UnitOfWork, host_id: HostId, reason: str, actor: str) -> None:
        """Something is wrong with a host's identity: nothing new goes there, and it is not listened to."""
        self.hosts.decide(uow, host_id, AdminEvent.QUARANTINE, actor, reason)

    def gone(self, uow: UnitOfWork, host_id: HostId, reason: str) -> None:
        """The machine of this host has ended, by the word of who sells it: it is lost now, whatever its silence says,
        with all that it had, and does not come back. Safe to repeat."""
        if self.hosts.load(uow, host_id).admin_state is AdminState.RETIRED:
            return
        after = self.hosts.link(uow, host_id, LinkEvent.GONE, None, is_ours=True)
        if after is not None:
            uow.publish(LinkChanged(host_id, after.link_state))
        for one in uow.ask(DesiredOn(host_id)):
            lost = ObservedWorkload(one.workload_id, WorkloadPhase.GONE, one.slots, detail=reason)
            uow.publish(WorkloadReported(host_id, lost))
        self.hosts.decide(uow, host_id, AdminEvent.RETIRE, "master", reason)
        self.commands.abandon(uow, host_id)
        uow.after_commit(lambda: self.presence.gone(host_id))

    def check_instance(self, uow: UnitOfWork, host_id: HostId) -> None:
        """Look whether a host is the machine that was bought, now that its id may be known."""
        self.hosts.check_instance(uow, host_id)

    def hold(
        self, uow: UnitOfWork, slot_ids: Sequence[SlotId], cluster_id: ClusterId, expires_ns: int, actor: str
    ) -> tuple[SlotGrant, ...]:
        """Reserve free slots until a wall time; all of them, or Conflict and none."""
        return self.slots.hold(uow, slot_ids, cluster_id, expires_ns, actor)

    def lock(self, uow: UnitOfWork, host_ids: Sequence[HostId]) -> None:
        """Let nobody else grant anything of these hosts until this transaction ends; a grant does so by itself."""
        self.slots.lock(uow, host_ids)

    def grant(
        self,
        uow: UnitOfWork,
        slot_ids: Sequence[SlotId],
        cluster_id: ClusterId,
        actor: str,
        reason: str,
        cpus: int = 0,
        memory_bytes: Bytes = NO_BYTES,
    ) -> tuple[SlotGrant, ...]:
        """Give slots of a host to a cluster to start on; all of them, or Conflict and none. cpus, memory_bytes: of the
        host, that it has with them."""
        return self.slots.grant(uow, slot_ids, cluster_id, actor, reason, cpus, memory_bytes)

    def slots_running(self, uow: UnitOfWork, grants: Sequence[SlotGrant], actor: str, reason: str) -> int:
        """Note that granted slots run their work now."""
        return self.slots.running(uow, grants, actor, reason)

    def slots_stopping(self, uow: UnitOfWork, grants: Sequence[SlotGrant], actor: str, reason: str) -> int:
        """Note that work on granted slots is being ended."""
        return self.slots.stopping(uow, grants, actor, reason)

    def slots_scrubbing(self, uow: UnitOfWork, grants: Sequence[SlotGrant], actor: str, reason: str) -> int:
        """Note that work on granted slots has ended; its host cleans up."""
        return self.slots.scrubbing(uow, grants, actor, reason)

    def slots_released(self, uow: UnitOfWork, grants: Sequence[SlotGrant], actor: str, reason: str) -> int:
        """Note that work on granted slots has ended and is cleaned up."""
        return self.slots.released(uow, grants, actor, reason)

    def issue(
        self,
        uow: UnitOfWork,
        host_id: HostId,
        command: Command,
        not_after_ns: int | None = None,
        subject: str = "",
        actor: str = "master",
    ) -> CommandId:
        """Queue a command for a host; it goes after the commit, or when the host is back."""
        return self.commands.issue(uow, host_id, command, not_after_ns, subject=subject, actor=actor)

    def changes(self, uow: UnitOfWork, host_id: HostId) -> None:
        """Something else about what a host has free changes with this unit of work."""
        uow.after_commit(lambda: self._touch(host_id))

    # --- what people ask for -----------------------------------------------------------------------------------------

    async def decide(self, host_id: HostId, event: AdminEvent, actor: str, reason: str) -> Entry:
        """Drain, activate, maintain, quarantine or retire a host."""

        def change(uow: UnitOfWork) -> None:
            host = self.hosts.load(uow, host_id)
            if event is AdminEvent.MAINTAIN and host.admin_state is AdminState.ACTIVE:
                self.hosts.decide(uow, host_id, AdminEvent.DRAIN, actor, reason)
            is_return = event is AdminEvent.ACTIVATE and host.admin_state is AdminState.QUARANTINED
            self.hosts.decide(uow, host_id, AdminEvent.REVERIFIED if is_return else event, actor, reason)
            if event is AdminEvent.RETIRE:
                self.commands.abandon(uow, host_id)

        await self._store.write(change, name=f"host.{event}")
        await self.refresh()
        return self.entry(host_id)

    async def set_default_image(self, host_id: HostId, image: str | None, actor: str) -> Entry:
        """Choose the image that runs on a host where a request names none; None: none. Raises InvalidInput."""
        await self._store.write(
            lambda uow: self.hosts.set_default_image(uow, host_id, image, actor), name="host.default_image"
        )
        await self.refresh()
        return self.entry(host_id)

    async def set_place(self, host_id: HostId, country: str | None, labels: tuple[str, ...], actor: str) -> Entry:
        """Write down the country and the labels of a host, as its owner says them; None, empty: not said."""
        await self._store.write(
            lambda uow: self.hosts.set_place(uow, host_id, country, labels, actor), name="host.place"
        )
        await self.refresh()
        return self.entry(host_id)

    async def measure(self, host_id: HostId, account_id: AccountId, actor: str) -> OperationId:
        """Measure a host's bandwidth now; the operation ends with the command."""
        if not self.is_connected(host_id):
            raise HostUnreachable(subject=host_id)

        relays = self.relays.serving()

        def begin(uow: UnitOfWork) -> OperationId:
            command_id = self.measures.ask(uow, host_id, actor, relays)
            return uow.operation("host.measure", command_id, account_id, actor).id

        return await self._store.write(begin, name="host.measure")

    def entry(self, host_id: HostId) -> Entry:
        """One host as last read, or NotFound."""
        entry = self.view.get(host_id)
        if entry is None:
            raise NotFound("There is no such host. List hosts: windrow host ls", subject=host_id)
        return entry

    def is_connected(self, host_id: HostId) -> bool:
        """Return whether a route to it is open."""
        live = self.presence.get(host_id)
        return live is not None and live.is_open

    # --- what the trunk calls ---------------------------------------------------------------------------------------

    async def take(self, items: Sequence[EvidenceItem]) -> None:
        """Commit the records of many hosts together; when this returns they may be acknowledged."""
        if any(item.record.kind is Kind.BANDWIDTH for item in items):
            self.evidence.relay_regions = self.relays.regions()
        await self._store.write(lambda uow: self.evidence.take(uow, items), name="fleet.evidence")
        if self._is_alarmed:  # a fault shows at once; everything else with the next tick
            self._is_alarmed = False
            await self.refresh()

    async def mark_sent(self, command_ids: tuple[CommandId, ...]) -> None:
        """These commands were handed to the link."""
        await self._store.write(lambda uow: self.commands.sent(uow, command_ids), name="fleet.sent")

    async def outbox(self, host_ids: Iterable[HostId]) -> Mapping[HostId, Sequence[CommandRow]]:
        """The open commands of these hosts, oldest first."""
        wanted = tuple(host_ids)
        return await self._store.read(lambda uow: {h: uow[CommandRepository].open_of_host(h) for h in wanted})

    async def evidence_marks(self, host_id: HostId) -> Mapping[BootId, tuple[tuple[int, int], ...]]:
        """Return the committed evidence of a host, per boot of origin."""
        return await self._store.read(lambda uow: self.evidence.committed(uow, host_id))

    async def quarantine_now(self, host_id: HostId, reason: str, actor: str) -> None:
        """The same as `quarantine`, in a unit of work of its own; a retired host stays retired."""
        await self._store.write(lambda uow: self.quarantine(uow, host_id, reason, actor), name="host.quarantine")

    async def link_misused(self, host_id: HostId, code: str) -> None:
        """A host's connection was ended for what it sent."""
        await self._store.write(lambda uow: self.hosts.misused(uow, host_id, code), name="host.misuse")

    async def messages_kept_back(self, host_id: HostId, access_id: str) -> None:
        """An Access kept back messages of a host, or to it, as both found over another one."""
        await self._store.write(lambda uow: self.hosts.kept_back(uow, host_id, access_id), name="host.kept_back")

    def heartbeat_interval_ns(self) -> int:
        """Return how often agents are to send heartbeats."""
        return max(HEARTBEAT_MIN_NS, len(self.view) * SECOND // HEARTBEATS_PER_S_MAX)

    def observed(self, host_id: HostId) -> Observed | None:
        """Return a host's last report of its workloads, since this Master started."""
        return self._observed.get(host_id)

    # --- keeping time ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Read the fleet, of which nobody was heard yet; call once before `run`, without a loop running in another
        thread."""
        self._store.write_now(_begin_unheard, name="fleet.start")
        for host, slots in self._store.read_now(self.hosts.with_slots):
            self._put(host, slots)

    async def run(self) -> None:
        """Keep time until cancelled. Hosts that come online do not wait for the next turn: work may wait for them."""
        async with asyncio.TaskGroup() as group:
            group.create_task(again(self.tick, TICK_NS, self._clock, "fleet"), name="fleet")
            group.create_task(when_due(self._show_returns, self._back, RETURNS_NS, "returns"), name="returns")

    async def _show_returns(self) -> None:
        self._back.take()
        await self.flush()
        await self.refresh()

    async def tick(self) -> None:
        """Everything that is due now; safe to call at any time. What one step meets does not keep the next from its
        turn."""
        steps = (
            ("presence", 0, self._keep_presence),
            ("timeouts", TIMEOUTS_EVERY_NS, self._time_out),
            ("reconcile", reconcile.RECONCILE_NS, self.reconcile),
            ("returns", 0, self._reconcile_returns),
            ("claims", CLAIMS_EVERY_NS, self._judge_claims),
            ("forget", FORGET_EVERY_NS, self._forget),
            ("reliability", SLOT_NS, self._count_reliability),
            ("uses", use_history.LOOK_EVERY_NS, self._count_uses),
            ("distances", DISTANCES_EVERY_NS, self._measure_distances),
            ("refresh", 0, self.refresh),
            ("measures", MEASURES_EVERY_NS, self._measure_due),
        )
        failures: list[WindrowError] = []
        for name, every_ns, step in steps:
            if not self._is_due(name, every_ns):
                continue
            try:
                with self._steps.around(name):
                    await step()
            except WindrowError as error:  # the world refused: the store is away, a disk is full
                failures.append(error)
        if failures:
            raise failures[0]

    async def _keep_presence(self) -> None:
        self.presence.judge(self.heartbeat_interval_ns())
        await self.flush()

    async def _measure_distances(self) -> None:
        self.distances = distances(self.presence.measured(), self.relays.regions())

    async def _reconcile_returns(self) -> None:
        if settled := self._settled_returns():
            await self.reconcile(settled)

    async def _forget(self) -> None:
        await self._store.write(_forget, name="fleet.forget")

    async def _count_reliability(self) -> None:
        is_frozen = self.presence.breaker.is_frozen(self._clock.monotonic_ns())
        count = self.reliability.ended(tuple(self.view), self._clock.wall_ns(), is_frozen)
        await self._store.write(count, name="fleet.reliability")

    async def _count_uses(self) -> None:
        counts = use_history.counted(self.view)
        if counts is not None:
            await self._store.write(
                lambda uow: uow[UseHistoryRepository].add(counts, uow.now_wall_ns), name="fleet.uses"
            )

    async def uses_since(self, step_ns: int, from_ns: int) -> Sequence[use_history.Point]:
        """The number of GPUs in each state, in spans of this length since then, oldest first."""
        return await self._store.read(lambda uow: uow[UseHistoryRepository].since(step_ns, from_ns))

    async def flush(self) -> None:
        """Write down what changed of presence, all that is due in one unit of work."""
        changes = self.presence.take_changes()
        if not changes:
            return
        try:
            undone = await self._store.write(lambda uow: self._write_changes(uow, changes), name="fleet.presence")
        except WindrowError:
            self.presence.put_back(changes)
            raise
        self.presence.put_back(undone)
        self._returned |= {c.host_id for c in changes if c.event is LinkEvent.HEARD or c.route is not None}

    def _write_changes(self, uow: UnitOfWork, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Each change alone; returns those that are worth another try."""
        is_ours, undone = self.presence.breaker.is_frozen(self._clock.monotonic_ns()), list[Change]()
        for change in changes:
            undone.append(change)
            with self._faults.around(change.host_id, "presence"), uow.attempt():
                self._write_change(uow, change, is_ours=is_ours)
                undone.pop()
        return tuple(one for one in undone if not self._faults.is_spent(one.host_id))

    def _write_change(self, uow: UnitOfWork, change: Change, *, is_ours: bool) -> None:
        host_id = change.host_id
        if uow[HostRepository].get(host_id) is None:
            return
        if change.route is not None:
            route = change.route
            self.hosts.route(
                uow,
                host_id,
                access_id=route.access_id,
                region=route.region,
                address=route.address,
                boot_id=route.boot_id,
            )
        if change.conditions is not None:
            lost = self.hosts.conditions(uow, host_id, change.conditions, is_whole=change.is_whole)
            if lost:
                uow.publish(SlotsLost(host_id, tuple(lost), "the GPU is out of order"))
        if change.event is not None:
            after = self.hosts.link(uow, host_id, change.event, change.seen_ns, is_ours)
            if after is not None:
                uow.publish(LinkChanged(host_id, after.link_state))

    async def _time_out(self) -> None:
        def look(uow: UnitOfWork) -> tuple[Sequence[CommandRow], Sequence[Slot]]:
            return uow[CommandRepository].open_all(), uow[SlotRepository].expired(uow.now_wall_ns)

        def judge(uow: UnitOfWork) -> None:
            rows, slots = look(uow)
            for row in rows:
                if not self._timeouts.skips(row.command_id):
                    with self._timeouts.around(row.command_id), uow.attempt():
                        self.commands.judge(uow, row)
            for slot in slots:
                with self._timeouts.around(slot.slot_id), uow.attempt():
                    self.slots.expire_hold(uow, slot)

        rows, slots = await self._store.read(look)
        self._timeouts.keep_only({*(row.command_id for row in rows), *(slot.slot_id for slot in slots)})
        if rows or slots:
            await self._store.write(judge, name="fleet.timeouts")

    async def _judge_claims(self) -> None:
        rivals = set(await self._store.read(lambda uow: uow[ClaimRepository].rivals()))
        rivals |= {e.host.host_id for e in self.view if any(c.code.startswith(FLEET_CODES) for c in e.host.conditions)}

        def judge(uow: UnitOfWork) -> None:
            for host_id in sorted(rivals):
                with self._faults.around(host_id, "claims"), uow.attempt():
                    self.hosts.judge_claims(uow, host_id)

        if rivals:
            await self._store.write(judge, name="fleet.claims")

    async def _measure_due(self) -> None:
        due, bare = self.measures.due(self.view, self.is_connected, self._clock.wall_ns())
        if due or bare:
            relays = self.relays.serving()
            await self._store.write(lambda uow: self.measures.ask_all(uow, due, bare, relays), name="fleet.measure")

    async def reconcile(self, only: Collection[HostId] | None = None) -> None:
        """Compare desired with observed, on these hosts or on all that have reported since the start."""
        reports = {h: o for h, o in self._observed.items() if (only is None or h in only) and self._is_online(h)}
        if not reports:
            return
        now_ns = self._clock.monotonic_ns()
        findings = await self._store.read(lambda uow: self._compare(uow, reports, now_ns))
        self._findings |= findings
        acting = {host_id: found for host_id, found in findings.items() if found.lost or found.delete}
        if acting:
            await self._store.write(lambda uow: self._act(uow, acting), name="fleet.reconcile")
        for host_id, found in findings.items():
            if found.ask:
                self._ask_observed(host_id)

    def _settled_returns(self) -> set[HostId]:
        """Hosts that are back, once what is known of their workloads is what their heartbeat says it is."""
        settled = set()
        for host_id in self._returned:
            live, observed = self.presence.get(host_id), self._observed.get(host_id)
            if live is not None and observed is not None and live.observed_digest == observed.digest:
                settled.add(host_id)
        self._returned -= settled
        return settled

    def _compare(self, uow: UnitOfWork, reports: dict[HostId, Observed], now_ns: int) -> dict[HostId, Findings]:
        found = {}
        for host_id, observed in reports.items():
            with self._faults.around(host_id, "compare"):
                under_way = {row.subject for row in uow[CommandRepository].open_of_host(host_id) if is_under_way(row)}
                desired = uow.ask(DesiredOn(host_id))
                found[host_id] = reconcile.compare(
                    desired,
                    observed.workloads,
                    under_way=under_way,
                    before=self._findings.get(host_id, Findings()),
                    now_ns=now_ns,
                )
        return found

    def _act(self, uow: UnitOfWork, acting: dict[HostId, Findings]) -> None:
        for host_id, found in acting.items():
            with self._faults.around(host_id, "act"), uow.attempt():
                self._act_on(uow, host_id, found)

    def _act_on(self, uow: UnitOfWork, host_id: HostId, found: Findings) -> None:
        under_way = {row.subject for row in uow[CommandRepository].open_of_host(host_id) if is_under_way(row)}
        for workload in found.lost:
            why = "the host does not have it any more"
            gone = ObservedWorkload(workload.workload_id, WorkloadPhase.GONE, workload.slots, detail=why)
            uow.event("workload.lost", (host_id, workload.workload_id), "A workload is gone from its host")
            uow.publish(WorkloadReported(host_id, gone))
        for spec in found.delete:
            if spec.workload_id in under_way:
                continue
            if not self.hosts.budget.admit(host_id, "orphans", uow.now_wall_ns):
                self.hosts.tell_excess(uow, host_id, "orphans")
                break  # the next look goes on
            own = (spec.workload_id,) if uow.ask(HasHad(host_id, spec.workload_id)) else ()
            uow.event("workload.orphan", (host_id, *own), "A workload nobody wants is being ended")
            command = Command(CommandId(""), CommandKind.DELETE, delete=spec)
            self.issue(uow, host_id, command, subject=spec.workload_id)

    async def refresh(self) -> None:
        """Read again what changed in the store, and tell who watches the view."""
        async with self._refreshing:  # who comes while another reads finds its own change in the view as well
            dirty, self._dirty = self._dirty, set()
            if not dirty:
                return
            try:
                found = await self._store.read(lambda uow: self.hosts.with_slots(uow, dirty))
            except BaseException:
                self._dirty |= dirty  # for the next who reads
                raise
            for host, slots in found:
                with self._faults.around(host.host_id, "view"):
                    self._put(host, slots)
        for listener in self._listeners:
            with ends_alone("fleet_listener"):
                listener(dirty)

    def on_change(self, listener: Callable[[Collection[HostId]], None]) -> None:
        """Call `listener` on the loop with the hosts that have changed whenever the view has."""
        self._listeners.append(listener)

    def on_touch(self, listener: Callable[[HostId], None]) -> None:
        """Call `listener` on the loop right after each commit that changed a host or a slot of it."""
        self._touch_listeners.append(listener)

    def attach(self, link: HostLink) -> None:
        """Tell this link what there is for its hosts."""
        self._links.append(link)

    # --- callbacks --------------------------------------------------------------------------------------------------

    def _put(self, host: Host, slots: Sequence[Slot]) -> None:
        before = self.view.get(host.host_id)
        if host.inventory is not None and (before is None or before.host.inventory is None):
            self._due.pop("measures", None)  # whoever has just joined waits for its tier
        self.view.put(host, slots)
        self.presence.learn(host)

    def _touch(self, host_id: HostId) -> None:
        self._dirty.add(host_id)
        for listener in self._touch_listeners:
            listener(host_id)

    def _alarm(self) -> None:
        self._is_alarmed = True

    def _on_command(self, uow: UnitOfWork, row: CommandRow) -> None:
        if row.is_done:
            for operation in uow.operations.running(row.command_id):
                uow.operations.finish(operation.id, uow.now_wall_ns, row.error_code or None, row.error_detail)
            fields = {"error": row.error_code, "kind": row.kind.name.lower()}
            uow.event("command.done", (row.host_id, row.command_id), ended_words(row), fields)
        uow.publish(CommandChanged(row))

    def _on_ban(self, uow: UnitOfWork, host_id: HostId, is_banned: bool) -> None:
        uow.publish(HostBanned(host_id, is_banned))

    def _wake(self, host_id: HostId) -> None:
        for link in self._links:
            link.wake(host_id)

    def _ask_observed(self, host_id: HostId) -> None:
        for link in self._links:
            link.ask_observed(host_id)

    def _on_gap(self, host_id: HostId, gap: Gap) -> None:
        for link in self._links:
            link.telemetry_gap(host_id, gap)

    def _on_observed(self, host_id: HostId, observed: Observed) -> None:
        self._observed[host_id] = observed

    def _is_online(self, host_id: HostId) -> bool:
        live = self.presence.get(host_id)
        return live is not None and live.presence.link is LinkState.ONLINE

    def _is_due(self, what: str, every_ns: int) -> bool:
        now = self._clock.monotonic_ns()
        if now < self._due.get(what, 0):
            return False
        self._due[what] = now + every_ns
        return True


def _forget(uow: UnitOfWork) -> None:
    uow[EvidenceRepository].forget_before(uow.now_wall_ns - EVIDENCE_KEPT_NS)
    uow[MarkRepository].forget_before(uow.now_wall_ns - EVIDENCE_KEPT_NS)


def _begin_unheard(uow: UnitOfWork) -> None:
    """The links that an earlier Master wrote down are not believed; said once for all hosts."""
    count = uow[HostRepository].not_heard(uow.now_wall_ns)
    if count:
        said, fields = "the Master started and has heard no host yet", {"hosts": str(count)}
        uow.audit("master", "fleet.start", "", said, fields)
        uow.event(
            "fleet.not_heard", (), f"The Master started and has not heard {count} of its hosts yet", fields, "master"
        )


__all__ = ["FleetService", "is_back_soon"]
