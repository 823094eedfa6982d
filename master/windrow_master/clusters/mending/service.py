"""Lets members go that are lost, and looks for hosts in their place; what and when is fellows.py's.

All of it in the caller's unit of work, at every tick of a Degraded cluster, so it goes on after a restart where it was.
"""

from collections.abc import Sequence
from dataclasses import replace

from windrow_master.clusters import fellows
from windrow_master.clusters.launching.service import Launcher
from windrow_master.clusters.life.service import LifeDesk
from windrow_master.clusters.machine import noted
from windrow_master.clusters.model import (
    OVER_HOSTS,
    Cluster,
    ClusterKind,
    ClusterRequest,
    NetworkMode,
    Step,
    Workload,
)
from windrow_master.clusters.placing.service import Placer
from windrow_master.market.service import MarketService
from windrow_master.placement.model import Refusal, Runtime
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import NoCapacity
from windrow_proto.units import Microcents


class Mender:
    """Makes clusters whole again."""

    def __init__(self, market: MarketService, placer: Placer, launcher: Launcher, life: LifeDesk) -> None:
        self._market, self._placer, self._launcher, self._life = market, placer, launcher, life

    def mend(self, uow: UnitOfWork, cluster: Cluster) -> None:
        """Do the next thing that leads to a whole cluster; nothing where it is whole or cannot be."""
        if cluster.kind not in OVER_HOSTS:
            return
        workloads = uow.workloads.of_cluster(cluster.cluster_id)
        found = fellows.mending(cluster, workloads)
        if found.leaving:
            self._let_go(uow, cluster, found.leaving)
        elif found.ranks:
            is_contained = any(one.runtime == Runtime.DOCKER for one in workloads)
            asked = replace(cluster.request, runtime=Runtime.DOCKER) if is_contained else cluster.request
            self._fill(uow, cluster, asked, fellows.members_of(workloads), found.ranks)

    def _let_go(self, uow: UnitOfWork, cluster: Cluster, leaving: Sequence[Workload]) -> None:
        for member in leaving:
            self._life.let_go(uow, replace(member, replaced_at_ns=uow.now_wall_ns))
            self._market.end_line(uow, member.workload_id)
        said = ", ".join(fellows.named(member) for member in leaving)
        after = replace(cluster, restarts=cluster.restarts + 1)
        self._life.keep(uow, noted(after, Step(uow.now_wall_ns, "replacing", None, said)))
        uow.audit("master", "cluster.replace", cluster.cluster_id, said)

    def _fill(
        self,
        uow: UnitOfWork,
        cluster: Cluster,
        request: ClusterRequest,
        members: Sequence[Workload],
        ranks: Sequence[int],
    ) -> None:
        """request: the cluster's, for members like those that it has."""
        taken = frozenset(member.host_id for member in members)
        spent = sum(self._market.line_price(uow, member.workload_id) for member in members)
        # What was agreed on at the start is never exceeded: the price is frozen for as long as the cluster is rented.
        limit = Microcents(max(0, cluster.price_per_hour - spent))
        asked = replace(request, hosts=len(ranks), max_price_per_hour=limit)
        is_private = cluster.network is NetworkMode.TUNNELS
        found = self._placer.place(uow, asked, cluster.account_id, but=taken, is_private=is_private)
        if isinstance(found, Refusal):
            return  # asked again with the next tick, until fellows.FILL_NS is over
        try:
            is_new = cluster.kind is ClusterKind.GANG
            cluster = self._launcher.networked(uow, cluster, found.members) if is_new else cluster
        except NoCapacity:
            return
        places = dict(zip(ranks, found.members, strict=True))
        addresses = [member.address or "" for member in members]
        for rank in ranks:
            addresses.insert(rank, "")
        launched = self._launcher.launch(uow, cluster, places, "master", addresses)
        for workload in launched.workloads:
            uow.workloads.add(workload)
        self._market.add_lines(uow, launched.lines)
        said = ", ".join(f"rank {rank} on {place.host_name}" for rank, place in places.items())
        self._life.keep(uow, noted(cluster, Step(uow.now_wall_ns, "placed", None, said)))
