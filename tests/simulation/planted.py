"""Bugs that the test plants, to see that the judges would find them. Each is a patch that ends with its `with`.

Nothing in the product can be told to behave like this: what is patched here are methods of the shipped modules, as a
careless change of theirs would read.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock
from zlib import crc32

from sqlalchemy import bindparam, update

from tests.simulation.breakages import FailingRuntime
from tests.simulation.planted_caps import CAP_BUGS
from tests.simulation.planted_identities import copies_take_turns, generation_unchecked, older_certificate_accepted
from tests.simulation.planted_links import late_hello_takes_over
from tests.simulation.planted_pairs import beat_of_anybody, log_unfenced, term_unchecked
from tests.simulation.planted_stops import (
    past_work_forgotten,
    start_without_audit,
    stop_never_over,
    stop_that_only_answers,
)
from tests.simulation.world import Plan
from windrow_agent.core import lease
from windrow_agent.runtimes.simulated import SimulatedRuntime
from windrow_agent.storage import journal
from windrow_agent.workloads.manager import WorkloadManager
from windrow_agent.workloads.orphans import Orphans
from windrow_master.clusters.controller import ClusterLifecycle
from windrow_master.clusters.nominations import WHOLE_FLEET
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.clusters.service import ClusterService
from windrow_master.clusters.snapshot import Placer
from windrow_master.fleet import repository as fleet_repository
from windrow_master.fleet.intake import EvidenceIntake
from windrow_master.fleet.model import SlotState
from windrow_master.fleet.repository import SlotRepository, _slot_values
from windrow_master.fleet.service import FleetService
from windrow_master.fleet.slot_leases import SlotLeases
from windrow_master.fleet.tables import grants
from windrow_master.fleet.tables import slots as slots_table
from windrow_master.market import ledger
from windrow_master.store.prepared import Made
from windrow_master.store.unit import UnitOfWork
from windrow_master.telemetry.segment_log import TelemetryLog
from windrow_proto.errors import NotFound, RuntimeUnavailable, WindrowError
from windrow_proto.ids import HostId
from windrow_proto.session import AgentSession
from windrow_proto.units import MINUTE, SECOND

SHORT = Plan(0, hosts=4, faulty_ns=150 * SECOND, settle_ns=0, fault_every_ns=8 * SECOND, turns_chance=0.0)
"""The history that bugs are looked for in, unless they need another."""


@dataclass(frozen=True, slots=True)
class Bug:
    """One planted bug: what it breaks (the beginning of the sentence that must be said), and how to plant it."""

    name: str
    promise: str
    plant: Callable[[], Any]
    faults: tuple[str, ...]
    needs: Mapping[str, Any] | None = None


@contextmanager
def ack_before_fsync() -> Iterator[None]:
    """The telemetry log answers first and syncs with the next group."""
    write = TelemetryLog._write

    def hasty(self: TelemetryLog, group: list[Any]) -> None:
        sync, self._log.sync = self._log.sync, lambda: None  # type: ignore[method-assign]
        self.__dict__.setdefault("_late", []).append(None)
        try:
            write(self, group)
        finally:
            del self._log.sync
        if len(self.__dict__["_late"]) % 5 == 0:
            sync()

    with mock.patch.object(TelemetryLog, "_write", hasty):
        yield


@contextmanager
def no_compare_and_set() -> Iterator[None]:
    """Placement looks at the fleet as it was a moment ago, and granting does not look again."""
    snapshot = Placer.snapshot

    def stale(self: Placer, uow: Any, cpus: int, hosts: Any = None) -> Any:
        kept = self.__dict__.get("_kept")
        if kept is None or uow.now_wall_ns - kept[0] > 10_000_000_000:
            kept = self.__dict__["_kept"] = (uow.now_wall_ns, snapshot(self, uow, cpus))
        wanted = (one for one in kept[1].candidates if hosts is None or one.host_id in hosts)
        return replace(kept[1], candidates=tuple(wanted))

    def reserved(self: SlotLeases, uow: Any, slot: Any, cluster_id: Any, expires_ns: Any) -> Any:
        return replace(slot, state=SlotState.RESERVED, holder=cluster_id, token=slot.token + 1)

    def swap(self: SlotRepository, before: Any, after: Any) -> bool:
        query = slots_table.update().where(slots_table.c.slot_id == before.slot_id)
        values = {name: value for name, value in _slot_values(after).items() if name in slots_table.c}
        return self._connection.execute(query.values(**values)).rowcount == 1

    with (
        mock.patch.object(Placer, "snapshot", stale),
        mock.patch.object(SlotLeases, "_reserved", reserved),
        mock.patch.object(SlotRepository, "swap", swap),
    ):
        yield


@contextmanager
def index_hard_of_hearing() -> Iterator[None]:
    """Whoever listens to what commits change is not told of every second host."""
    listen = FleetService.on_touch

    def on_touch(self: FleetService, listener: Callable[[HostId], None]) -> None:
        listen(self, lambda host_id: listener(host_id) if crc32(host_id.encode()) % 2 else None)

    with mock.patch.object(FleetService, "on_touch", on_touch):
        yield


@contextmanager
def no_tombstone() -> Iterator[None]:
    """The agent's journal forgets deletes."""
    with mock.patch.object(journal, "tombstone", lambda workload_id, at_wall_ns: ("epoch", 0)):
        yield


@contextmanager
def token_unchecked() -> Iterator[None]:
    """The agent takes any token."""
    with mock.patch.object(lease, "fence", lambda book, workload_id, slots: None):
        yield


@contextmanager
def receipt_from_wall_time() -> Iterator[None]:
    """Running time is what the wall clock says went by."""
    observe = SimulatedRuntime.observe

    async def wall(self: SimulatedRuntime, workload_id: Any) -> Any:
        run = await observe(self, workload_id)
        if run is None or run.started_wall_ns is None:
            return run
        return replace(run, running_ns=max(0, self._machine.clock.wall_ns() - run.started_wall_ns))

    with mock.patch.object(SimulatedRuntime, "observe", wall):
        yield


@contextmanager
def evidence_unmarked() -> Iterator[None]:
    """Evidence is acknowledged although its mark was forgotten."""

    def careless(self: EvidenceIntake, uow: Any, items: Any) -> None:
        for item in items:
            try:
                self._take_one(uow, item)
            except WindrowError:
                continue

    with mock.patch.object(EvidenceIntake, "take", careless):
        yield


@contextmanager
def charge_by_lease() -> Iterator[None]:
    """Charges the time that the slot was leased, not what was signed."""

    def billable(line: Any) -> int:
        return max(0, line.seen_at_ns - line.lease_from_ns)

    with mock.patch.object(ledger, "billable_ns", billable):
        yield


@contextmanager
def lease_without_end() -> Iterator[None]:
    """The agent waits for the Master to say that the time is over."""
    found = lease.lapsed

    def unpaid_only(book: Any, now_ns: int) -> Any:
        return tuple(lapse for lapse in found(book, now_ns) if lapse.reason != lease.LAPSED)

    with mock.patch.object(lease, "lapsed", unpaid_only):
        yield


@contextmanager
def paid_until_ignored() -> Iterator[None]:
    """Makes the agent ignore how long a hold is paid for."""
    with mock.patch.object(lease.Lease, "ends_ns", property(lambda self: self.lease_until_ns)):
        yield


@contextmanager
def lease_on_the_wall_clock() -> Iterator[None]:
    """Deadlines are compared with what time it is, not with how much has passed."""
    found, began = lease.lapsed, WorkloadManager.recover

    async def recover(self: WorkloadManager) -> None:
        self.__dict__["_offset"] = self._clock.wall_ns() - self._clock.monotonic_ns()
        await began(self)

    async def end_lapsed(self: WorkloadManager) -> None:
        while True:
            for lapse in found(self.journal.book, self._clock.wall_ns() - self.__dict__["_offset"]):
                await self._lapse(lapse)
            await self._clock.sleep_ns(1_000_000_000)

    with (
        mock.patch.object(WorkloadManager, "recover", recover),
        mock.patch.object(WorkloadManager, "_end_lapsed", end_lapsed),
    ):
        yield


@contextmanager
def reaper_skips_tombstones() -> Iterator[None]:
    """Makes the sweep of a host leave alone what was deleted once."""
    reap = Orphans.reap

    async def skip(self: Orphans, now_ns: int) -> None:
        lists = {runtime: runtime.list for runtime in self.runtimes.values()}

        async def without(runtime: Any) -> Any:
            return tuple(run for run in await lists[runtime]() if run.workload_id not in self.journal.tombstones)

        with ExitStack() as stack:
            for runtime in self.runtimes.values():
                stack.enter_context(mock.patch.object(runtime, "list", lambda runtime=runtime: without(runtime)))
            await reap(self, now_ns)

    with mock.patch.object(Orphans, "reap", skip):
        yield


@contextmanager
def freed_before_the_host_said_so() -> Iterator[None]:
    """A slot is given back when the end is ordered."""
    order = ClusterLifecycle._order_end

    def hasty(self: ClusterLifecycle, uow: Any, workload: Any, actor: str) -> None:
        order(self, uow, workload, actor)
        self._fleet.slots_released(uow, workload.slots, actor, "it will end soon")

    with mock.patch.object(ClusterLifecycle, "_order_end", hasty):
        yield


_END_NO_GRANT = Made(
    update(grants)
    .where(grants.c.slot_id == bindparam("was_id"), grants.c.token < 0)
    .values(ended_at_ns=bindparam("now_ns"))
)


@contextmanager
def grant_left_open() -> Iterator[None]:
    """A slot is freed and the row of its holding forgotten."""
    with mock.patch.object(fleet_repository, "_END_GRANT", _END_NO_GRANT):
        yield


@contextmanager
def epoch_forgotten() -> Iterator[None]:
    """The agent forgets with each connection which Master it has served."""
    leave = AgentSession.on_disconnect

    def forget(self: AgentSession) -> None:
        leave(self)
        self.epoch = 0

    with mock.patch.object(AgentSession, "on_disconnect", forget):
        yield


@contextmanager
def money_in_floats() -> Iterator[None]:
    """A charge is what the hours come to, rounded as numbers are."""

    def about(price_per_hour: int, running_ns: int) -> int:
        return round(price_per_hour * (running_ns / 3.6e12))

    with mock.patch.object(ledger, "charge", about):
        yield


@contextmanager
def ack_before_commit() -> Iterator[None]:
    """The intake hands evidence to the store and does not wait for it."""
    take = FleetService.take
    under_way: set[asyncio.Task[None]] = set()

    async def hasty(self: FleetService, items: Any) -> None:
        task = asyncio.get_running_loop().create_task(take(self, items))
        under_way.add(task)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    with mock.patch.object(FleetService, "take", hasty):
        yield
    under_way.clear()


@contextmanager
def anybodys_cluster() -> Iterator[None]:
    """A caller who knows a cluster's id may have it."""

    def load(self: ClusterService, uow: Any, principal: Any, cluster_id: Any, others: Any) -> Any:
        cluster = uow[ClusterRepository].get(cluster_id)
        if cluster is None:
            raise NotFound("There is no such cluster.", subject=cluster_id)
        return cluster

    with mock.patch.object(ClusterService, "_load", load):
        yield


@contextmanager
def key_forgotten() -> Iterator[None]:
    """A request's key is not kept with what it made."""
    add = ClusterRepository.add

    def without(self: ClusterRepository, cluster: Any, request_key: Any, request_sha256: bytes) -> None:
        add(self, cluster, None, request_sha256)

    with mock.patch.object(ClusterRepository, "add", without):
        yield


@contextmanager
def fault_without_audit() -> Iterator[None]:
    """A card's fault changes its slot and nobody writes down that it did."""
    audit = UnitOfWork.audit

    def silent(self: UnitOfWork, actor: str, action: str, *rest: Any, **more: Any) -> None:
        if action != "slot.fault":
            audit(self, actor, action, *rest, **more)

    with mock.patch.object(UnitOfWork, "audit", silent):
        yield


@contextmanager
def hold_never_given_back() -> Iterator[None]:
    """A rental closes and keeps what it had set aside."""
    with mock.patch.object(ledger, "voiding", lambda rental, now_ns: None):
        yield


@contextmanager
def journal_unsynced() -> Iterator[None]:
    """The agent's journal trusts that what was written is on the platter."""
    store = journal.Journal.store

    def trusting(self: journal.Journal, facts: list[Any]) -> None:
        with mock.patch.object(self._log, "sync", lambda: None):
            store(self, facts)

    with mock.patch.object(journal.Journal, "store", trusting):
        yield


@contextmanager
def end_taken_for_granted() -> Iterator[None]:
    """A daemon that does not answer has surely stopped and removed what it was told to."""
    stop, remove, observe = FailingRuntime.stop, FailingRuntime.remove, FailingRuntime.observe
    believed: set[tuple[FailingRuntime, str]] = set()

    async def hopeful_stop(self: FailingRuntime, workload_id: str, grace_ns: int) -> None:
        with suppress(RuntimeUnavailable):
            await stop(self, workload_id, grace_ns)

    async def hopeful_remove(self: FailingRuntime, workload_id: str) -> None:
        believed.add((self, workload_id))
        with suppress(RuntimeUnavailable):
            await remove(self, workload_id)

    async def hopeful_observe(self: FailingRuntime, workload_id: str) -> Any:
        return None if (self, workload_id) in believed else await observe(self, workload_id)

    with (
        mock.patch.object(FailingRuntime, "stop", hopeful_stop),
        mock.patch.object(FailingRuntime, "remove", hopeful_remove),
        mock.patch.object(FailingRuntime, "observe", hopeful_observe),
    ):
        yield


POWER = ("cut power of master", "kill agent", "reset streams")
HOSTS = ("kill agent", "cut power of host", "partition host", "reset streams")
OLD_MASTERS = ("restore master", "kill master")
DISKS = ("fail disk of master", "cut power of master", "kill master")
ALONE, STRAY = ("isolate host",), ("stray box",)
FEW = {"hosts": 2, "renters": 2}
COPIED = {"copies": True, "faulty_ns": 4 * MINUTE}
COPY = ("copy host", "renew certificate")
LATE = {"faulty_ns": MINUTE, "fault_every_ns": 30 * SECOND, "settle_ns": 100 * SECOND}
OFTEN = {"hosts": 4, "renters": 6, "fault_every_ns": 2 * SECOND}
SETTLED = {"settle_ns": 100 * SECOND}
TURNS = {"hosts": 4, "renters": 6, "faulty_ns": MINUTE, "turns_chance": 0.5}
MANY = {"hosts": WHOLE_FLEET + 1, "renters": 6, "faulty_ns": MINUTE}
"""Hosts enough for an index of them."""
PAIR = {"masters": 2}
STOPS, CUTS = ("stop leader",), ("cut leader from database", "end leader's sessions")
BUGS = (
    Bug("ack before fsync", "I1", ack_before_fsync, POWER),
    Bug("no compare-and-set in the grant", "I2", no_compare_and_set, ("reset streams",)),
    Bug("no tombstone on the agent", "I3", no_tombstone, ("withhold",), {"withhold_chance": 0.6}),
    Bug("token unchecked on the agent", "I2", token_unchecked, ("restore master",), {"hosts_only": True}),
    Bug("receipt from wall time", "I6", receipt_from_wall_time, ("clock jumps",)),
    Bug("evidence acknowledged without its mark", "I1", evidence_unmarked, POWER),
    Bug("charged by lease", "I6", charge_by_lease, HOSTS),
    Bug("lease not ended by the host", "I6", lease_without_end, ALONE, {**FEW, "lease_ns": 75 * SECOND}),
    Bug("paid_until ignored", "I6", paid_until_ignored, ALONE, {**FEW, "hold_ns": 75 * SECOND}),
    Bug("lease on the wall clock", "I6", lease_on_the_wall_clock, ("clock jumps",), {**FEW, "faulty_ns": MINUTE}),
    Bug("reconcile skips tombstones", "I8", reaper_skips_tombstones, STRAY, {**FEW, "settle_ns": 100 * SECOND}),
    Bug("slot freed before its host said so", "I2", freed_before_the_host_said_so, HOSTS, {"faulty_ns": MINUTE}),
    Bug("grant left open", "I2", grant_left_open, HOSTS, {**FEW, "faulty_ns": MINUTE}),
    Bug("epoch forgotten by the agent", "I7", epoch_forgotten, OLD_MASTERS, {**FEW, "hosts_only": True}),
    Bug("money in floats", "I6", money_in_floats, HOSTS, {**FEW, "faulty_ns": MINUTE}),
    Bug("ack before commit", "I1", ack_before_commit, DISKS),
    Bug("anybody's cluster", "I9", anybodys_cluster, ("reset streams",), {"hosts": 2, "faulty_ns": MINUTE}),
    Bug("the key of a request forgotten", "I3", key_forgotten, DISKS),
    Bug("a fault without its audit row", "I4", fault_without_audit, ("card fails", "operator looks"), FEW),
    Bug("hold never given back", "I5", hold_never_given_back, HOSTS, {**FEW, "faulty_ns": MINUTE}),
    Bug("journal not synced", "I3", journal_unsynced, ("withhold", "cut power of host"), {"withhold_chance": 0.6}),
    Bug("generation unchecked", "I7", generation_unchecked, COPY, COPIED),
    Bug("an older certificate accepted", "I7", older_certificate_accepted, COPY[:1], {**COPIED, "hosts": 8}),
    Bug("copies take turns", "I7", copies_take_turns, COPY, COPIED),
    Bug("a late hello takes over", "I8", late_hello_takes_over, ("keep hellos back",), LATE),
    Bug("an end taken for granted", "I2", end_taken_for_granted, ("daemon fails",), OFTEN),
    Bug("a start without its audit rows", "I4", start_without_audit, ("reset streams",), TURNS),
    Bug("a stop that is never over", "I8", stop_never_over, ("reset streams",), TURNS | SETTLED),
    Bug("past work forgotten", "I8", past_work_forgotten, ("reset streams",), TURNS | SETTLED),
    Bug("a term unchecked in a write", "I7", term_unchecked, STOPS, PAIR),
    Bug("the log of an overtaken Master", "I1", log_unfenced, CUTS, PAIR),
    Bug("beat of anybody", "I7", beat_of_anybody, STOPS, PAIR),
    Bug("a stop that only answers", "I3", stop_that_only_answers, ("reset streams",), TURNS),
    *(Bug(*row) for row in CAP_BUGS),
    Bug("an index that does not hear of each host", "I8", index_hard_of_hearing, HOSTS, {**MANY, **SETTLED}),
)


def plan_of(bug: Bug, plan: Plan) -> Plan:
    """The plan in which this bug is looked for: more of the faults that bring it out."""
    return replace(plan, faults=bug.faults, **(bug.needs or {}))
