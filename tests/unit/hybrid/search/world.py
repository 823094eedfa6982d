"""A market without hosts whose jobs may run in the cloud in memory: machines join when a test says so."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from tests.master_support import ManualClock, opened_store
from tests.support.memory_backend import MemoryBackend, MemoryCloud, Planned, Terms
from tests.support.wired import answers
from tests.unit.clusters.world import OPERATOR, OWNER
from tests.unit.hybrid.purchases.world import PLENTY, RULES, AnyKind
from tests.unit.hybrid.purchases.world import Hosts as NotedHosts
from tests.unit.jobs import world as jobs_world
from windrow_master.clusters import lookup
from windrow_master.clusters import messages as cluster_says
from windrow_master.fleet.messages import HostLeaving
from windrow_master.fleet.states import AdminEvent
from windrow_master.hybrid.backends.port import Finding
from windrow_master.hybrid.purchases.backends import BackendService
from windrow_master.hybrid.purchases.model import Caps, Purchase
from windrow_master.hybrid.purchases.service import PurchaseService
from windrow_master.hybrid.search.service import SearchService
from windrow_master.identity.model import BUYER_ACCOUNT
from windrow_master.jobs import messages as job_says
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import HostId
from windrow_proto.model import CommandKind, CommandPhase, WorkloadPhase, WorkloadSpec
from windrow_proto.sealed import SealKey
from windrow_proto.units import SECOND, Microcents, parse_money

TURN_NS: Final = 15 * SECOND
CREATE, RUNNING, RUNS = CommandKind.CREATE, CommandPhase.RUNNING, WorkloadPhase.RUNNING


class Hosts(NotedHosts):
    """The hosts of the market's fleet."""

    def __init__(self, world: "World") -> None:
        super().__init__()
        self._world = world

    def is_busy(self, uow: UnitOfWork, host_id: HostId) -> bool:
        return lookup.running_on(uow, host_id) > 0

    def paid(self, uow: UnitOfWork, host_id: HostId) -> Microcents:
        return Microcents(0)

    def drain(self, uow: UnitOfWork, host_id: HostId, at_ns: int, reason: str) -> None:
        self._world.leave(uow, host_id, at_ns, "purchase")

    def lose(self, uow: UnitOfWork, host_id: HostId, reason: str) -> None:
        self._world.market.fleet.gone(uow, host_id, reason)


class NoRuns:
    """A market without services that run code."""

    kinds: frozenset[str] = frozenset()


class World(jobs_world.World):
    """cloud: the truth of the only backend, `cloud`."""

    runs: Any = NoRuns()

    def __init__(self, store: Any, clock: ManualClock, folder: Path, caps: Caps, planned: Planned) -> None:
        self.cloud = MemoryCloud(clock.wall_ns, planned, Terms(list_lag_ns=60 * SECOND))
        self.caps, self.machines = caps, 0
        super().__init__(store, clock, folder)
        self.market.write(lambda uow: self.market.market.open_account(uow, BUYER_ACCOUNT))

    def start_again(self) -> None:
        super().start_again()
        self.backends = BackendService(
            self.store,
            self.clock,
            SealKey.of(self.signing),
            {"memory": AnyKind(), "service": AnyKind()},
            lambda *_given: MemoryBackend(self.cloud, self.clock),
            lambda: Finding("reachability", True, ""),
        )
        self.purchases = PurchaseService(self.store, self.clock, self.backends, Hosts(self), "market", RULES)
        clusters = self.market.clusters
        self.searches = SearchService(
            self.store,
            self.clock,
            self.jobs,
            clusters,
            self.purchases,
            self.queue,
            self.runs,
            self.market.market.check_funds,
        )
        store, on = self.store, self.store.messages.on
        answers(store, cluster_says.HostLimits, self.purchases.limits)
        answers(store, cluster_says.HostsKept, self.purchases.hosts_kept)
        answers(store, cluster_says.HostKeptFor, self.purchases.host_kept_for)
        answers(store, cluster_says.CheapestElsewhere, self.searches.cheapest)
        answers(store, job_says.PlaceOf, self.purchases.place_of)
        for kind in (cluster_says.ElsewhereAsked, cluster_says.NoRoom, HostLeaving):
            store.messages._handlers.pop(kind, None)
        on(cluster_says.ElsewhereAsked, self.searches.asked)
        on(cluster_says.NoRoom, self.searches.no_room)
        on(HostLeaving, self.jobs.handovers.host_leaving)
        on(HostLeaving, self.purchases.leaving)

    async def connect(self, name: str = "cloud", kind: str = "memory", per_day: str = "500") -> None:
        """Connect the cloud, and let the work of OWNER buy there."""
        await self.backends.add(OPERATOR, name, kind, {}, {}, self.caps)
        await self.backends.allow(OPERATOR, name, OWNER, per_day=parse_money(per_day))

    async def turn(self, times: int = 1, after_ns: int = TURN_NS) -> None:
        """Let time pass, and every loop look."""
        for _ in range(times):
            self.clock.advance(after_ns)
            for name in ("cloud", "service"):
                self.backends.queue.add(name)
            await self.purchases.controller.turn()
            for _ in range(2):  # what one loop tells another is heard
                await self.tick()
                await self.market.queue.tick()
                await self.searches.turn()

    async def bought(self) -> list[Purchase]:
        """All purchases, the oldest first."""
        return list(reversed(await self.purchases.list()))

    def join(self, purchase: Purchase) -> HostId:
        """The agent of a machine that was bought joins, is online, and holds."""
        self.machines += 1
        host_id = HostId(f"host_{self.machines}")
        self.market.join(host_id, owner=BUYER_ACCOUNT)
        self.joined(purchase, host_id)
        return host_id

    def joined(self, purchase: Purchase, host_id: HostId) -> None:
        """This host is the machine of a purchase."""
        fact: Any = SimpleNamespace(member=SimpleNamespace(id=host_id, purchase_id=purchase.purchase_id))
        self.market.write(lambda uow: self.purchases.joined(uow, fact))

    def run_on(self, host_id: HostId) -> WorkloadSpec:
        """The host takes its latest command, and its work runs."""
        spec = self.market.spec(host_id)
        self.market.status(CREATE, RUNNING, host_id)
        self.market.report(spec, RUNS, host_id)
        return spec

    def leave(self, uow: UnitOfWork, host_id: HostId, at_ns: int | None, why: str) -> None:
        """A host says that it will be gone."""
        self.market.fleet.hosts.decide(uow, host_id, AdminEvent.DRAIN, "master", why)
        uow.publish(HostLeaving(host_id, at_ns, why))

    async def tries(self, job: Any) -> list[tuple[str, str, str]]:
        """Zone, kind and state of each try of a job."""
        found = await self.searches.tries(job.job_id) or ()
        return [(one.place.zone, "spot" if one.place.is_spot else "on-demand", str(one.state)) for one in found]

    def told(self, kind: str) -> list[str]:
        """The texts of all events of a kind."""
        return [one.text for one in self.market.read(lambda uow: uow.events.after(0, limit=500)) if one.kind == kind]

    async def running_at(self, job: Any) -> HostId:
        """Buy, join and start a job; returns its host."""
        await self.turn(2)
        host_id = self.join((await self.bought())[-1])
        await self.turn(6)
        self.run_on(host_id)
        await self.tick()
        return host_id


@asynccontextmanager
async def world(tmp_path: Path, caps: Caps = PLENTY, planned: Planned | None = None) -> AsyncIterator[World]:
    """One with the cloud connected."""
    clock = ManualClock()
    with opened_store(tmp_path, clock) as store:
        made = World(store, clock, tmp_path / "objects", caps, planned or Planned(is_stale=False))
        await made.connect()
        yield made
