"""Does what is due of clusters by time alone: gives up lost hosts, applies limits, replaces lost members, and clears
away ended work. A cluster to which nothing happens rests until something may be due of it.

    changed ─▶ read: nothing is due by time ─▶ rests ─▶ its time has come ─┐
                     else ─────────────────────────────────────────────────┴▶ judged, in one write with all others
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from windrow_master.clusters import end_limits
from windrow_master.clusters.controller import ClusterLifecycle
from windrow_master.clusters.model import OVER_HOSTS, Cluster, ClusterPhase
from windrow_master.clusters.needs import Evict, Look, Needs
from windrow_master.clusters.ports import Proofs
from windrow_master.clusters.repair import Mender
from windrow_master.clusters.repository import ClusterRepository, WorkloadRepository
from windrow_master.clusters.states import FINAL, HOLDING
from windrow_master.clusters.topology import Reachability
from windrow_master.loops import GIVEN_UP, Boundary
from windrow_master.market import spending
from windrow_master.market.service import MarketService
from windrow_master.store.prepared import UNREADABLE
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.work_queue import WorkQueue
from windrow_proto.ids import ClusterId
from windrow_proto.ports import Clock


class DueClusters:
    """The clusters by when something may be due of them. Used on the loop."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        market: MarketService,
        lifecycle: ClusterLifecycle,
        mender: Mender,
        proofs: Proofs,
        reachability: Reachability,
        faults: Boundary,
    ) -> None:
        """proofs, reachability: as of ClusterService. faults: those of each cluster."""
        self._store, self._clock, self._market, self._lifecycle = store, clock, market, lifecycle
        self._mender, self._proofs, self._reachability, self._faults = mender, proofs, reachability, faults
        self._looks = WorkQueue[ClusterId](clock)
        self._changed = set[ClusterId]()
        self._is_listed = False

    def add(self, cluster_id: ClusterId) -> None:
        """Something may be due of it now."""
        self._looks.add(cluster_id)
        self._changed.add(cluster_id)

    async def tick(self) -> None:
        """Do what is due by time alone: give up lost hosts, apply limits, clear away ended work. Every 5 s, for the
        clusters of which something is due."""
        if not self._is_listed:
            for cluster_id in await self._store.read(self._open_ids):
                self._looks.add(cluster_id)
            self._is_listed = True
        due = self._looks.take()
        changed = [one for one in due if one in self._changed]
        self._changed.difference_update(changed)
        try:
            rests: dict[ClusterId, int | None] = {}
            if changed:
                rests |= await self._store.read(partial(self._resting, cluster_ids=changed))
            needs, judged = await self._judged([one for one in due if one not in rests])
        except BaseException:
            for cluster_id in due:
                self._looks.add(cluster_id)
            raise
        rests |= judged
        now_ns = self._clock.monotonic_ns()
        for cluster_id in due:
            rest_ns = rests.get(cluster_id, 0)
            if rest_ns is not None:
                self._looks.add(cluster_id, now_ns + rest_ns)
            else:
                self._faults.forget(cluster_id)
        self._proofs.end_on([host_id for one in needs if isinstance(one, Evict) for host_id in one.hosts])
        # Within some ten seconds; the next tick knows what they saw.
        await asyncio.gather(*(self._reachability.look(one.hosts) for one in needs if isinstance(one, Look)))

    def _resting(self, uow: UnitOfWork, cluster_ids: Sequence[ClusterId]) -> dict[ClusterId, int]:
        """For how long each of these may rest of which nothing is due by time; all others are to be judged. Most of
        what happens to a cluster leaves nothing to do."""
        rests, now_ns = dict[ClusterId, int](), uow.now_wall_ns
        try:
            held = uow[WorkloadRepository].held_of_clusters(cluster_ids)
            rentals = self._market.steady_rentals(uow, cluster_ids)
        except UNREADABLE:  # a row of one of them: each is judged by itself
            return {}
        for cluster in uow[ClusterRepository].some([one for one in cluster_ids if one in rentals]):
            (rental, spent), workloads = rentals[cluster.cluster_id], held.get(cluster.cluster_id, [])
            if cluster.kind in OVER_HOSTS or self._faults.is_spent(cluster.cluster_id):
                continue
            with suppress(Exception):  # who judges it meets the same, and counts it
                if not end_limits.is_steady(cluster, workloads) or spending.is_capped(uow, rental):
                    continue
                if not end_limits.reached(cluster, spent, 0, now_ns):
                    rests[cluster.cluster_id] = end_limits.rest_ns(cluster, workloads, spent, now_ns)
        return {one: rest_ns for one, rest_ns in rests.items() if rest_ns}

    async def _judged(self, cluster_ids: Sequence[ClusterId]) -> tuple[Sequence[Needs], dict[ClusterId, int | None]]:
        if not cluster_ids:
            return [], {}
        return await self._store.write(partial(self._judge, cluster_ids=cluster_ids), name="cluster.tick")

    def _judge(
        self, uow: UnitOfWork, cluster_ids: Sequence[ClusterId]
    ) -> tuple[Sequence[Needs], dict[ClusterId, int | None]]:
        """Do what is due of these; returns what they need first, and for how long each may rest, as `_rest_ns` says."""
        found, judged, needs = uow[ClusterRepository].readable(cluster_ids), list[Cluster](), list[Needs]()
        go_on = {cluster.cluster_id for cluster in found if cluster.phase in HOLDING}
        for cluster in found:
            is_spent = self._faults.is_spent(cluster.cluster_id)
            if cluster.phase in (*FINAL, ClusterPhase.STOPPED) or (is_spent and self._faults.skips(cluster.cluster_id)):
                continue
            with self._faults.around(cluster.cluster_id), uow.attempt():
                if is_spent:
                    self._lifecycle.end(uow, cluster, GIVEN_UP, "master")
                else:
                    judged.append(self._lifecycle.limit(uow, self._lifecycle.judge(uow, cluster)))
        for cluster in judged:
            with self._faults.around(cluster.cluster_id, "mend"), uow.attempt():
                if need := self._mender.mend(uow, cluster):
                    needs.append(need)
        rests: dict[ClusterId, int | None] = {}
        for cluster_id in cluster_ids:
            for workload in uow[WorkloadRepository].held_of_cluster(cluster_id):
                if workload.delete_command is None and cluster_id in go_on:
                    continue  # almost all of them: nothing of it is to end
                with self._faults.around(cluster_id, "order_again"), uow.attempt():
                    self._lifecycle.order_again(uow, workload)
            for rental in self._market.live_rentals(uow, cluster_id):
                with self._faults.around(cluster_id, "rental"), uow.attempt():
                    self._market.judge(uow, rental)
            with self._faults.around(cluster_id, "rest"):
                rests[cluster_id] = self._rest_ns(uow, cluster_id)
        return needs, rests

    def _rest_ns(self, uow: UnitOfWork, cluster_id: ClusterId) -> int | None:
        """Return how soon something may be due of a cluster to which nothing happens; None: nothing ever is again."""
        held, rentals = uow[WorkloadRepository].held_of_cluster(cluster_id), self._market.live_rentals(uow, cluster_id)
        (cluster,) = uow[ClusterRepository].readable([cluster_id]) or (None,)
        is_over = cluster is None or cluster.phase in (*FINAL, ClusterPhase.STOPPED)
        if is_over and not held and not rentals:
            return None
        if cluster is not None and cluster.phase is ClusterPhase.QUEUED and not held and not rentals:
            return max(0, min(end_limits.REST_NS, end_limits.wait_left_ns(cluster, uow.now_wall_ns)))
        if cluster is None or not end_limits.is_steady(cluster, held) or len(rentals) != 1:
            return 0
        spent, is_capped = self._market.spent(uow, cluster.rental_id), spending.is_capped(uow, rentals[0])
        return end_limits.rest_ns(cluster, held, spent, uow.now_wall_ns, is_capped=is_capped)

    def _open_ids(self, uow: UnitOfWork) -> set[ClusterId]:
        """The ids of all clusters that still need work."""
        return {
            *uow[ClusterRepository].living_ids(),
            *uow[WorkloadRepository].holding_clusters(),
            *self._market.live_clusters(uow),
        }
