"""Clusters that wait for a place: puts them into the queue, has them placed when their turn comes, and tells them why
they wait.

    create, --wait ─▶ Queued: no rental, no money set aside ─▶ its turn ─▶ Creating, as what was stopped is started
                         └▶ its wait is over, or it can never run ─▶ Failed

The rows decide: after a start of the Master all that are Queued are put again, and the entry of each has its id.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from windrow_master.clusters import environments
from windrow_master.clusters.controller import ClusterLifecycle
from windrow_master.clusters.end_limits import BudgetTooSmall
from windrow_master.clusters.entries import entry_of
from windrow_master.clusters.messages import HostKeptFor, NoRoom
from windrow_master.clusters.model import Cluster, ClusterPhase, ClusterRequest, Step
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.clusters.states import noted
from windrow_master.clusters.views import ClusterView
from windrow_master.identity.model import Principal, Role
from windrow_master.market.model import RentalId
from windrow_master.queue.model import Entry
from windrow_master.queue.ports import Gone, Refused, Started
from windrow_master.queue.service import QueueService
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import InvalidInput, NoCapacity, StorageFailed, TooMany, WindrowError
from windrow_proto.ids import AccountId, ClusterId, HostId, TokenId
from windrow_proto.sealed import SealKey
from windrow_proto.units import MINUTE, Microcents

WAITING_MAX: Final = 1_000
"""Clusters of one account that wait: as many as jobs."""
_LIFE_NS: Final = 10 * MINUTE
Place = Callable[[ClusterId, frozenset[HostId]], Awaitable[ClusterView | None]]


class WaitingClusters:
    """The clusters in phase Queued; a source of the queue."""

    def __init__(
        self, store: Store, queue: QueueService, seal_key: SealKey, lifecycle: ClusterLifecycle, place: Place
    ) -> None:
        """place: starts one now, on none of these hosts; None: it waits no more."""
        self._store, self._queue, self._seal_key = store, queue, seal_key
        self._lifecycle, self._place = lifecycle, place

    def __len__(self) -> int:
        """How many entries of any source wait."""
        return len(self._queue)

    def new(
        self, uow: UnitOfWork, principal: Principal, cluster_id: ClusterId, asked: ClusterRequest, said: str
    ) -> Cluster:
        """The row of a cluster that waits from now on, which is in the queue once that is committed. said: why. Raises
        TooMany."""
        check_room(uow, principal.account_id)
        new = Cluster(
            cluster_id=cluster_id,
            account_id=principal.account_id,
            request=asked,
            phase=ClusterPhase.QUEUED,
            rental_id=RentalId(""),
            tier="",
            price_per_hour=Microcents(0),
            created_at_ns=uow.now_wall_ns,
            reason=said,
            version=0,
            spenders=principal.spenders,
        )
        cluster = environments.closed(self._seal_key, noted(new, Step(uow.now_wall_ns, "queued", None, said)))
        uow.after_commit(lambda: self.put(cluster))
        return cluster

    def put(self, cluster: Cluster, kept: HostId | None = None) -> None:
        """It waits in the queue. kept: the host that was bought for it."""
        self._queue.put(self._entry(cluster, kept), self)

    def kept(self, account_id: AccountId, request: ClusterRequest) -> frozenset[HostId]:
        """The hosts that a request which does not wait may not have, as they are kept for what does."""
        entry = entry_of(request, account_id, "", 0, tier_costs={}, hosts=request.hosts)
        return frozenset(map(HostId, self._queue.kept(entry)))

    async def put_all(self) -> None:
        """Put all that wait by their rows, once at a start."""
        for cluster, kept in await self._store.read(_queued):
            self.put(cluster, kept)

    async def put_again(self, cluster_id: ClusterId) -> None:
        """The host that is kept for one that waits may be another."""

        def read(uow: UnitOfWork) -> tuple[Cluster | None, HostId | None]:
            return uow[ClusterRepository].get(cluster_id), uow.ask(HostKeptFor(cluster_id))

        cluster, kept = await self._store.read(read)
        if cluster is not None and cluster.phase is ClusterPhase.QUEUED:
            self.put(cluster, kept)

    def _entry(self, cluster: Cluster, kept: HostId | None = None) -> Entry:
        """The entry of a cluster that waits, or has its place."""
        return entry_of(
            cluster.request,
            cluster.account_id,
            cluster.cluster_id,
            cluster.created_at_ns,
            tier_costs=self._queue.tier_costs(),
            hosts=cluster.request.hosts,
            tier=cluster.tier,
            kept=kept,
            spenders=cluster.spenders,
        )

    # --- what the queue asks -----------------------------------------------------------------------------------------

    async def place(self, entry: Entry, closed: frozenset[str]) -> Started | Refused | Gone:
        """As queue.ports.Source."""
        cluster_id = ClusterId(entry.entry_id)
        try:
            view = await self._place(cluster_id, frozenset(map(HostId, closed)))
        except StorageFailed:
            raise
        except WindrowError as error:
            is_elsewhere = isinstance(error, NoCapacity | BudgetTooSmall) and await self._store.write(
                lambda uow: self._no_room(uow, cluster_id), name="cluster.no_room"
            )
            if isinstance(error, InvalidInput) and not is_elsewhere:
                said = error.detail or error.code
                await self._store.write(lambda uow: self._fail(uow, cluster_id, said), name="cluster.impossible")
                return Gone()
            return Refused.by(error, closed)
        if view is None:
            return Gone()
        hosts = dict.fromkeys(one.host_id for one in view.workloads)
        return Started(self._entry(view.cluster), tuple(hosts))

    async def place_copies(self, entries: Sequence[Entry], closed: frozenset[str]) -> Sequence[Started]:
        """As queue.ports.Source: of a cluster there are no copies."""
        return ()

    async def tell(self, entry_ids: Sequence[str], said: str) -> None:
        """As queue.ports.Source."""

        def change(uow: UnitOfWork) -> None:
            for cluster in uow[ClusterRepository].readable([ClusterId(one) for one in entry_ids]):
                if cluster.phase is ClusterPhase.QUEUED and cluster.reason != said:
                    self._lifecycle.keep(uow, replace(cluster, reason=said, version=cluster.version + 1))

        await self._store.write(change, name="cluster.waits")

    def _no_room(self, uow: UnitOfWork, cluster_id: ClusterId) -> bool:
        """Tell that there is none here for one that may run elsewhere; False: it may not."""
        cluster = uow[ClusterRepository].get(cluster_id)
        if cluster is None or cluster.phase is not ClusterPhase.QUEUED or cluster.request.backend is None:
            return False
        uow.publish(NoRoom(cluster_id))
        return True

    def _fail(self, uow: UnitOfWork, cluster_id: ClusterId, said: str) -> None:
        cluster = uow[ClusterRepository].get(cluster_id)
        if cluster is not None:
            self._lifecycle.impossible(uow, cluster, said)


def _queued(uow: UnitOfWork) -> list[tuple[Cluster, HostId | None]]:
    """All that wait, each with the host that was bought for it."""
    return [(one, uow.ask(HostKeptFor(one.cluster_id))) for one in uow[ClusterRepository].queued()]


def check_room(uow: UnitOfWork, account_id: AccountId) -> None:
    """Raises TooMany where so many clusters of the account wait that no other may."""
    count = uow[ClusterRepository].count_queued(account_id)
    if count >= WAITING_MAX:
        said = f"{count:,} machines of this account wait for a place, and no more may."
        raise TooMany(f"{said} Wait until some have started, or delete some: windrow machine delete ID")


def principal_of(cluster: Cluster, now_ns: int) -> Principal:
    """The account of a cluster that waits, as who rents for it."""
    roles, lives_until_ns = frozenset({Role.RENTER}), now_ns + _LIFE_NS
    ids = cluster.account_id, cluster.name, roles, TokenId(""), "queue", lives_until_ns
    return Principal(*ids, spenders=cluster.spenders)
