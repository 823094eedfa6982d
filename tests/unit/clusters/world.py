"""A small market on a real store: hosts that report what they are told to, a renter, and a clock moved by hand."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from tests.master_support import START_NS, ManualClock, SeededRng, opened_store
from tests.support.personas import DRIVER, uuid
from tests.support.wired import Rented, fleet_on
from windrow_master.clusters import environments
from windrow_master.clusters.model import Cluster, ClusterRequest
from windrow_master.clusters.repository import WorkloadRepository
from windrow_master.clusters.views import ClusterView
from windrow_master.fleet.repository import CommandRepository, SlotRepository
from windrow_master.fleet.states import AdminEvent, LinkEvent
from windrow_master.identity.model import ALL_ROLES, Principal, Role
from windrow_master.market.repository import RentalRepository
from windrow_master.market.service import MarketService
from windrow_master.store.store import Store
from windrow_proto.ids import AccountId, GpuUuid, HostId, TokenId
from windrow_proto.keys import SigningKey
from windrow_proto.model import (
    Command,
    CommandKind,
    CommandPhase,
    CommandStatus,
    GpuFacts,
    GpuSlice,
    Inventory,
    Isolation,
    ObservedWorkload,
    Receipt,
    WorkloadPhase,
    WorkloadSpec,
)
from windrow_proto.sealed import SEAL_KEY, SealKey
from windrow_proto.units import GIB, SECOND
from windrow_proto.wire_command import decode_command

OWNER, STRANGER = AccountId("account_owner"), AccountId("account_stranger")
KEY = SealKey.of(SigningKey.from_raw(bytes(32)))
"""The Master's own."""
HOST, OTHER = HostId("host_a"), HostId("host_b")


def principal(account=OWNER, roles=frozenset({Role.RENTER, Role.PROVIDER})) -> Principal:
    return Principal(account, str(account), frozenset(roles), TokenId("token_1"), "test", START_NS + 10**18)


OPERATOR = principal(AccountId("account_operator"), ALL_ROLES)


def key_of(host_id: str) -> SealKey:
    """A host's own."""
    return SealKey.of(SigningKey.from_raw(sha256(host_id.encode()).digest()))


def opened(command: Command, host_id: HostId) -> WorkloadSpec:
    """Returns the create command of a host, with what was sealed for it."""
    spec = command.create
    assert spec is not None
    values = key_of(host_id).open_values(spec.sealed_env, spec.workload_id) if spec.sealed_env else {}
    return replace(spec, env={**spec.env, **values}, sealed_env=b"")


class Market:
    """Everything between a renter's request and a host's reports, without the link between them."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.wired(store, clock)
        for account in (OWNER, STRANGER):
            self.write(lambda uow, account=account: self.market.open_account(uow, account))

    def wired(self, store: Store, clock: ManualClock) -> None:
        """A Master on this store, whatever is in it."""
        self.store, self.clock = store, clock
        self.fleet = fleet_on(store, clock, SeededRng())
        self.market = MarketService(store)
        self.rented = Rented(store, clock, self.fleet, self.market, KEY)
        self.queue = self.rented.queue
        self.clusters, self.reachability, self.tests = self.rented.clusters, self.rented.reachability, self.rented.tests

    def write(self, change):
        return self.store.write_now(change, name="test")

    def read(self, look):
        return self.store.read_now(look)

    def join(
        self,
        host_id=HOST,
        gpus=0,
        cut=(),
        simulated=False,
        runtimes=("docker", "process"),
        name="",
        more=None,
        owner=OWNER,
        memory=16 * GIB,
    ):
        """A host joins, says what it is, and is Online."""
        cards = tuple(
            GpuFacts(
                uuid(zlib.crc32(f"{host_id} {n}".encode())),
                n,
                "nvidia",
                "NVIDIA H100 PCIe",
                pci_device_id=0x233110DE,
                memory_bytes=80 * GIB,
                mig_enabled=bool(cut),
                more={"mig_devices_max": 7},
                slices=tuple(
                    GpuSlice(GpuUuid(f"MIG-{n}-{at}"), one, Isolation.MIG, int(one[3:-2]) * GIB, int(one[0]))
                    for at, one in enumerate(cut)
                ),
            )
            for n in range(gpus)
        )
        inventory = Inventory(
            hostname=host_id,
            cpu_count=4,
            memory_bytes=memory,
            gpus=cards,
            runtimes=runtimes,
            simulated=simulated,
            driver_version=DRIVER,
            more={SEAL_KEY: key_of(host_id).public} if more is None else more,
        )

        def change(uow):
            self.fleet.enrol(uow, host_id, name or host_id, owner, simulated, "account/account_owner")
            self.fleet.hosts.inventory(uow, host_id, inventory)
            self.fleet.hosts.link(uow, host_id, LinkEvent.HEARD, uow.now_wall_ns)

        self.write(change)

    def link(self, event: LinkEvent, host_id=HOST):
        def change(uow):
            after = self.fleet.hosts.link(uow, host_id, event, uow.now_wall_ns)
            if after is not None:
                self.clusters.lifecycle.on_host_link(uow, host_id, after.link_state)

        self.write(change)

    def decide(self, event: AdminEvent, host_id=HOST):
        self.write(lambda uow: self.fleet.hosts.decide(uow, host_id, event, "account/1", "test"))

    async def create(self, who=None, key=None, **request):
        asked = ClusterRequest(**{"argv": ("true",), **request})
        _, view = await self.clusters.create(who or principal(), asked, key)
        return view

    def commands(self, kind: CommandKind, host_id=HOST) -> list[Command]:
        rows = self.read(lambda uow: uow[CommandRepository].open_of_host(host_id))
        return [decode_command(row.body) for row in rows if row.kind is kind]

    def spec(self, host_id=HOST) -> WorkloadSpec:
        """Returns the spec of the latest create command of the host."""
        (*_, command) = self.commands(CommandKind.CREATE, host_id)
        return opened(command, host_id)

    def spec_of(self, workload_id) -> WorkloadSpec:
        """Returns the spec that the host of a workload was asked to start, whether it answered or not."""

        def look(uow):
            workload = uow[WorkloadRepository].get(workload_id)
            return decode_command(uow[CommandRepository].get(workload.create_command).body), workload.host_id

        return opened(*self.read(look))

    def whole(self, view: ClusterView) -> Cluster:
        """A cluster with what its row keeps sealed."""
        return environments.whole(KEY, view.cluster)

    def status(self, kind: CommandKind, phase: CommandPhase, host_id=HOST, **other):
        """The host answers its latest open command of this kind."""
        (*_, command) = self.commands(kind, host_id)
        status = CommandStatus(command.command_id, phase, **other)
        self.write(lambda uow: self.fleet.commands.on_status(uow, host_id, status))

    def report(self, spec: WorkloadSpec, phase: WorkloadPhase, host_id=HOST, **other):
        seen = ObservedWorkload(spec.workload_id, phase, spec.slots, runtime=spec.runtime, **other)
        self.write(lambda uow: self.clusters.lifecycle.on_workload(uow, host_id, seen))

    def receipt(self, spec: WorkloadSpec, number: int, seconds: float, host_id=HOST, **other):
        """A host signs what is true: so much time has passed since its slots were leased."""
        line = self.read(lambda uow: uow[RentalRepository].line(spec.workload_id))
        passed_ns = 0 if line is None else self.clock.wall_ns() - line.lease_from_ns
        self.clock.advance(max(0, int(seconds * SECOND) - passed_ns))
        signed = Receipt(
            spec.workload_id, spec.cluster_id, spec.slots, number, int(seconds * SECOND), START_NS, START_NS
        )
        signed = replace(signed, **other)
        self.write(lambda uow: self.clusters.lifecycle.on_receipt(uow, host_id, signed, b"sealed"))

    async def running(self, **request):
        """A cluster whose work runs, with its first receipt."""
        view = await self.create(**request)
        spec = self.spec(view.workloads[0].host_id)
        host_id = view.workloads[0].host_id
        self.status(CommandKind.CREATE, CommandPhase.SUCCEEDED, host_id)
        self.report(spec, WorkloadPhase.RUNNING, host_id)
        self.receipt(spec, 1, 0, host_id)
        return view.cluster.cluster_id, spec

    async def ended(self, cluster_id, spec, number, seconds, who=None):
        """Delete it and let the host do it: final receipt, gone, result."""
        await self.clusters.delete(who or principal(), cluster_id)
        self.receipt(spec, number, seconds, final=True, end_reason="deleted", exit_code=143)
        self.report(spec, WorkloadPhase.GONE, running_ns=int(seconds * SECOND))
        self.status(CommandKind.DELETE, CommandPhase.SUCCEEDED)

    async def cluster(self, cluster_id, who=None):
        return (await self.clusters.get(who or OPERATOR, cluster_id)).cluster

    async def workload(self, cluster_id):
        return (await self.clusters.get(OPERATOR, cluster_id)).workloads[0]

    def slots(self, host_id=HOST):
        """The states of the slots of a host, without the free processor slot beside those in use."""
        found = self.read(lambda uow: uow[SlotRepository].of_host(host_id))
        is_used = any(slot.kind == "cpu" and slot.state.value != "free" for slot in found)
        shown = [one for one in found if not (is_used and one.kind == "cpu" and one.state.value == "free")]
        return {slot.slot_id: slot.state.value for slot in shown}

    def balance(self, account=OWNER):
        return self.read(lambda uow: self.market.balance(uow, account))

    def rental(self, cluster_id):
        """Of its present run."""
        return self.read(lambda uow: uow[RentalRepository].of_cluster(cluster_id))[-1]

    def events(self, subject):
        return [row.kind for row in self.read(lambda uow: uow.events.newest(subject, limit=100))]

    def check(self):
        """The promises about money hold."""
        assert self.read(self.market.verify) == ()


@contextmanager
def market_world(directory: Path, database: str | None = None) -> Iterator[Market]:
    """A fresh market with one real host of the owner; at the end the ledger must balance. database: instead of SQLite
    in the directory."""
    clock = ManualClock()
    with opened_store(directory, clock, database=database) as store:
        made = Market(store, clock)
        made.join()
        yield made
        made.check()
