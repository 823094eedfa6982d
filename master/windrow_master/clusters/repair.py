"""Replaces lost members of clusters: lets them go, and looks for hosts in their place; kinds/multi_host.py decides
which and when.

All of it in the caller's unit of work, at every tick of a Degraded cluster, so it goes on after a restart where it was.
"""

from collections.abc import Sequence
from dataclasses import replace

from windrow_master.clusters.controller import ClusterLifecycle
from windrow_master.clusters.kinds import multi_host
from windrow_master.clusters.launch import Launcher
from windrow_master.clusters.meeting import Meeter
from windrow_master.clusters.model import (
    OVER_HOSTS,
    Cluster,
    ClusterKind,
    Step,
    Workload,
)
from windrow_master.clusters.needs import Look, Needs, eviction
from windrow_master.clusters.repository import WorkloadRepository
from windrow_master.clusters.states import noted
from windrow_master.market.service import MarketService
from windrow_master.placement.model import Placement, Refusal
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import InvalidInput, NoCapacity
from windrow_proto.ids import HostId
from windrow_proto.units import Microcents


class Mender:
    """Makes clusters whole again."""

    def __init__(self, market: MarketService, meeter: Meeter, launcher: Launcher, lifecycle: ClusterLifecycle) -> None:
        self._market, self._meeter, self._launcher, self._lifecycle = market, meeter, launcher, lifecycle

    def mend(self, uow: UnitOfWork, cluster: Cluster) -> Needs | None:
        """Do the next thing that leads to a whole cluster; nothing where it is whole or cannot be. Returns what has to
        happen first, if anything."""
        if cluster.kind not in OVER_HOSTS:
            return None
        workloads = uow[WorkloadRepository].of_cluster(cluster.cluster_id)
        found = multi_host.mending(cluster, workloads)
        if found.leaving:
            self._let_go(uow, cluster, found.leaving)
        elif found.ranks:
            return self._fill(uow, cluster, workloads, found.ranks)
        return None

    def _let_go(self, uow: UnitOfWork, cluster: Cluster, leaving: Sequence[Workload]) -> None:
        for member in leaving:
            self._lifecycle.let_go(uow, replace(member, replaced_at_ns=uow.now_wall_ns))
            self._market.end_line(uow, member.workload_id)
        said = ", ".join(multi_host.named(member) for member in leaving)
        after = replace(cluster, restarts=cluster.restarts + 1)
        self._lifecycle.keep(uow, noted(after, Step(uow.now_wall_ns, "replacing", None, said)))
        uow.audit("master", "cluster.replace", cluster.cluster_id, said)

    def _fill(
        self, uow: UnitOfWork, cluster: Cluster, workloads: Sequence[Workload], ranks: Sequence[int]
    ) -> Needs | None:
        """Order members for these ranks, or return what has to happen first."""
        members = multi_host.members_of(workloads)
        found = self._found(uow, cluster, workloads, len(ranks))
        if isinstance(found, Look):
            return found
        if isinstance(found, Refusal):  # tried again with the next tick, until multi_host.FILL_NS is over
            return None if found.without_proofs is None else eviction(found)
        try:
            self._launcher.check(uow, cluster)
            if cluster.kind is ClusterKind.GANG:
                cluster, _ = self._launcher.networked(uow, cluster, found.members)
        except NoCapacity:
            return None
        except InvalidInput as error:  # a secret was deleted: tried again likewise, it may be set again
            after = noted(cluster, Step(uow.now_wall_ns, "waiting", None, error.detail))
            if after is not cluster:
                self._lifecycle.keep(uow, after)
            return None
        places = dict(zip(ranks, found.members, strict=True))
        addresses = [member.address or "" for member in members]
        for rank in ranks:
            addresses.insert(rank, "")
        launched = self._launcher.launch(uow, cluster, places, "master", addresses)
        for workload in launched.workloads:
            uow[WorkloadRepository].add(workload)
        self._market.add_lines(uow, launched.lines)
        said = ", ".join(f"rank {rank} on {place.host_name}" for rank, place in places.items())
        self._lifecycle.keep(uow, noted(cluster, Step(uow.now_wall_ns, "placed", None, said)))
        return None

    def _found(
        self, uow: UnitOfWork, cluster: Cluster, workloads: Sequence[Workload], missing: int
    ) -> Placement | Refusal | Look:
        """Hosts that meet those of the members as these meet each other; those that do not are left out, and others are
        tried."""
        members = multi_host.members_of(workloads)
        spent = sum(self._market.line_price(uow, member.workload_id) for member in members)
        # What was agreed on at the start is never exceeded: the price is frozen for as long as the cluster is rented.
        left = Microcents(max(0, cluster.price_per_hour - spent))
        unmet: frozenset[HostId] = frozenset()
        while not isinstance(found := self._meeter.beside(uow, cluster, workloads, missing, left, unmet), Refusal):
            try:
                met = self._meeter.met(uow, cluster, members, found)
            except NoCapacity:
                unmet |= {member.host_id for member in found.members}
            else:
                return met if isinstance(met, Look) else found
        return found
