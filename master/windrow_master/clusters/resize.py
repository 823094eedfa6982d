"""Changes the number of hosts of a running Ray or Dask cluster, in the caller's unit of work: all of them, or none.

more    new ranks at the end: placed, leased and ordered at once; each joins its head when it is up. What the other
        members were told of their number at their start does not change
fewer   the highest ranks go, and cost nothing from then on; rank 0 always stays
"""

from collections.abc import Sequence
from dataclasses import replace

from windrow_master.clusters import end_limits, quota_use, stopping
from windrow_master.clusters.ceilings import Ceilings
from windrow_master.clusters.controller import ClusterLifecycle
from windrow_master.clusters.kinds import multi_host
from windrow_master.clusters.launch import Launcher
from windrow_master.clusters.meeting import Meeter
from windrow_master.clusters.model import HOSTS_MAX, Cluster, ClusterKind, ClusterPhase, Step, Workload
from windrow_master.clusters.needs import Look, Needs, eviction
from windrow_master.clusters.repository import WorkloadRepository
from windrow_master.clusters.states import noted
from windrow_master.identity.model import Principal
from windrow_master.market import spending
from windrow_master.market.service import MarketService
from windrow_master.placement.model import Refusal
from windrow_master.queue import quotas
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, InvalidInput
from windrow_proto.sealed import RegistryLogin
from windrow_proto.units import Microcents

RESIZED = (ClusterKind.RAY, ClusterKind.DASK)


class Resizer:
    """Changes how many hosts a cluster has."""

    def __init__(
        self,
        market: MarketService,
        meeter: Meeter,
        launcher: Launcher,
        lifecycle: ClusterLifecycle,
        ceilings: Ceilings,
    ) -> None:
        self._market, self._meeter, self._launcher, self._lifecycle = market, meeter, launcher, lifecycle
        self._ceilings = ceilings

    def resize(
        self,
        uow: UnitOfWork,
        cluster: Cluster,
        hosts: int,
        principal: Principal,
        most: Microcents | None = None,
        login: RegistryLogin | None = None,
    ) -> Cluster | Needs:
        """The cluster with so many hosts, or what has to happen first. most: what all of it may cost per hour; None: as
        was asked. login: for the registry of its image, on the new hosts; wanted where those before took one.

        Raises InvalidInput, Conflict (QuotaExceeded among them), InsufficientFunds, NoCapacity; Forbidden where what it
        costs more would not count for a spending limit of the caller's token.
        """
        if cluster.kind not in RESIZED:
            words = f"hosts of a cluster of kind {cluster.kind} cannot be changed: its members know how many they are."
            raise InvalidInput(f"{words} Create another.", subject="hosts")
        if not 1 <= hosts <= HOSTS_MAX:
            raise InvalidInput(f"hosts must be between 1 and {HOSTS_MAX}.", subject="hosts")
        if cluster.phase is not ClusterPhase.RUNNING:
            raise Conflict(f"Only a running cluster can be resized, and this one is {cluster.phase}. Try again later.")
        members = multi_host.members_of(uow[WorkloadRepository].of_cluster(cluster.cluster_id))
        actor = principal.actor
        if hosts > len(members):
            spending.check_counts(uow, principal.spenders, cluster.rental_id)
            return self._grown(uow, cluster, members, hosts, actor, most, login)
        return self._shrunk(uow, cluster, members, hosts, actor) if hosts < len(members) else cluster

    def _shrunk(
        self, uow: UnitOfWork, cluster: Cluster, members: Sequence[Workload], hosts: int, actor: str
    ) -> Cluster:
        for member in members[hosts:]:
            self._lifecycle.let_go(uow, replace(member, replaced_at_ns=uow.now_wall_ns))
            self._market.end_line(uow, member.workload_id)
        price = Microcents(sum(self._market.line_price(uow, one.workload_id) for one in members[:hosts]))
        self._market.reprice(uow, cluster.rental_id, price)
        return self._kept(uow, cluster, hosts, price, actor)

    def _grown(
        self,
        uow: UnitOfWork,
        cluster: Cluster,
        members: Sequence[Workload],
        hosts: int,
        actor: str,
        most: Microcents | None,
        login: RegistryLogin | None,
    ) -> Cluster | Needs:
        stopping.check_login(cluster, login, "add hosts")
        most = cluster.request.max_price_per_hour if most is None else most
        left = None if most is None else Microcents(max(0, most - cluster.price_per_hour))
        found = self._meeter.beside(uow, cluster, members, hosts - len(members), left)
        if isinstance(found, Refusal):
            return eviction(found)
        quota_use.check_at(uow, quotas.of(uow, cluster.account_id), cluster.request, found, is_more=True)
        self._ceilings.check(uow, cluster.account_id, cluster.request, found)
        met = self._meeter.met(uow, cluster, members, found)
        if isinstance(met, Look):
            return met
        cluster = met
        places = dict(enumerate(found.members, len(members)))
        price = Microcents(cluster.price_per_hour + found.price_per_hour)
        end_limits.check_left(cluster.request.budget, price, self._market.spent(uow, cluster.rental_id))
        needs_login = cluster.needs_login or login is not None
        request = replace(cluster.request, hosts=hosts)
        asked = replace(cluster, request=request, price_per_hour=price, needs_login=needs_login)
        addresses = [member.address or "" for member in members]
        launched = self._launcher.launch(uow, asked, places, actor, addresses, login)
        for workload in launched.workloads:
            uow[WorkloadRepository].add(workload)
        self._market.reprice(uow, cluster.rental_id, price, launched.lines)
        for rank, place in places.items():
            asked = noted(asked, Step(uow.now_wall_ns, "placed", None, f"rank {rank} on {place.host_name}"))
        return self._kept(uow, asked, hosts, price, actor)

    def _kept(self, uow: UnitOfWork, cluster: Cluster, hosts: int, price: Microcents, actor: str) -> Cluster:
        after = replace(cluster, request=replace(cluster.request, hosts=hosts), price_per_hour=price)
        after = noted(after, Step(uow.now_wall_ns, "resized", None, f"to {hosts} hosts"))
        uow.audit(actor, "cluster.resize", cluster.cluster_id, "asked for", {"hosts": str(hosts)})
        subjects = (cluster.cluster_id, cluster.account_id)
        uow.event("cluster.resized", subjects, f"{cluster.name} has {hosts} hosts from now on", actor=actor)
        self._lifecycle.keep(uow, after)
        return after
