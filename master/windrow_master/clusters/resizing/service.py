"""More or fewer hosts of a Ray or Dask cluster that runs, in the caller's unit of work: all of them, or none.

more    new ranks at the end: placed, leased and ordered at once; each joins its head when it is up. What the other
        members were told of their number at their start does not change
fewer   the highest ranks go, and cost nothing from then on; rank 0 always stays
"""

from collections.abc import Sequence
from dataclasses import replace

from windrow_master.clusters import fellows
from windrow_master.clusters.launching.service import Launcher, meeting_of
from windrow_master.clusters.life.service import LifeDesk
from windrow_master.clusters.machine import noted
from windrow_master.clusters.model import Cluster, ClusterKind, ClusterPhase, NetworkMode, Step, Workload
from windrow_master.clusters.networks import Sight, Unsighted
from windrow_master.clusters.placing.service import Placer
from windrow_master.clusters.request import HOSTS_MAX
from windrow_master.market.service import MarketService
from windrow_master.placement.model import Placement, Refusal, Runtime
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, InvalidInput, NoCapacity
from windrow_proto.sealed import RegistryLogin
from windrow_proto.units import Microcents

RESIZED = (ClusterKind.RAY, ClusterKind.DASK)


class Resizer:
    """Changes how many hosts a cluster has."""

    def __init__(self, market: MarketService, placer: Placer, launcher: Launcher, life: LifeDesk) -> None:
        self._market, self._placer, self._launcher, self._life = market, placer, launcher, life

    def resize(
        self,
        uow: UnitOfWork,
        cluster: Cluster,
        hosts: int,
        actor: str,
        sight: Sight | None,
        most: Microcents | None = None,
        login: RegistryLogin | None = None,
    ) -> Cluster | Refusal:
        """The cluster with so many hosts, or why no more fit. most: what all of it may cost per hour; None: as was
        asked. login: for the registry of its image, on the new hosts.

        Raises InvalidInput, Conflict, InsufficientFunds, NoCapacity, and Unsighted where hosts have to look for each
        other first; then nothing is changed.
        """
        if cluster.kind not in RESIZED:
            words = f"hosts of a cluster of kind {cluster.kind} cannot be changed: its members know how many they are."
            raise InvalidInput(f"{words} Create another.", subject="hosts")
        if not 1 <= hosts <= HOSTS_MAX:
            raise InvalidInput(f"hosts must be between 1 and {HOSTS_MAX}.", subject="hosts")
        if cluster.phase is not ClusterPhase.RUNNING:
            raise Conflict(f"Only what runs is resized: it is {cluster.phase}. Ask again later.")
        members = fellows.members_of(uow.workloads.of_cluster(cluster.cluster_id))
        if hosts > len(members):
            return self._grown(uow, cluster, members, hosts, actor, sight, most, login)
        return self._shrunk(uow, cluster, members, hosts, actor) if hosts < len(members) else cluster

    def _shrunk(
        self, uow: UnitOfWork, cluster: Cluster, members: Sequence[Workload], hosts: int, actor: str
    ) -> Cluster:
        for member in members[hosts:]:
            self._life.let_go(uow, replace(member, replaced_at_ns=uow.now_wall_ns))
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
        sight: Sight | None,
        most: Microcents | None,
        login: RegistryLogin | None,
    ) -> Cluster | Refusal:
        found = self._place(uow, cluster, members, hosts, most)
        if isinstance(found, Refusal):
            return found
        cluster = self._met(uow, cluster, members, found, sight)
        places = dict(enumerate(found.members, len(members)))
        price = Microcents(cluster.price_per_hour + found.price_per_hour)
        asked = replace(cluster, request=replace(cluster.request, hosts=hosts), price_per_hour=price)
        addresses = [member.address or "" for member in members]
        launched = self._launcher.launch(uow, asked, places, actor, addresses, login)
        for workload in launched.workloads:
            uow.workloads.add(workload)
        self._market.reprice(uow, cluster.rental_id, price, launched.lines)
        for rank, place in places.items():
            asked = noted(asked, Step(uow.now_wall_ns, "placed", None, f"rank {rank} on {place.host_name}"))
        return self._kept(uow, asked, hosts, price, actor)

    def _place(
        self, uow: UnitOfWork, cluster: Cluster, members: Sequence[Workload], hosts: int, most: Microcents | None
    ) -> Placement | Refusal:
        """Where the new members would run: like those that are there, on other hosts, within what is left to spend."""
        most = cluster.request.max_price_per_hour if most is None else most
        left = None if most is None else Microcents(max(0, most - cluster.price_per_hour))
        asked = replace(cluster.request, hosts=hosts - len(members), max_price_per_hour=left, host_id=None)
        if any(one.runtime == Runtime.DOCKER for one in members):
            asked = replace(asked, runtime=Runtime.DOCKER)
        taken = frozenset(member.host_id for member in members)
        is_private = cluster.network is NetworkMode.TUNNELS
        return self._placer.place(uow, asked, cluster.account_id, but=taken, is_private=is_private)

    def _met(
        self, uow: UnitOfWork, cluster: Cluster, members: Sequence[Workload], found: Placement, sight: Sight | None
    ) -> Cluster:
        """The cluster as its members will meet, which for those that are there stays as it is."""
        runtimes = {member.host_id: Runtime(member.runtime) for member in members}
        runtimes |= {member.host_id: member.runtime for member in found.members}
        known = [host for host_id in runtimes if (host := uow.hosts.get(host_id)) is not None]
        if sight is None or any(host.simulated for host in known):
            return cluster
        meetings = tuple(meeting_of(host, runtimes[host.host_id]) for host in known)
        network = sight.decide(meetings)
        if network is None:
            raise Unsighted(meetings)
        if network.mode is NetworkMode.TUNNELS and cluster.network is not NetworkMode.TUNNELS:
            way = "Its members meet at their hosts' addresses; create a cluster over more hosts from the start."
            raise NoCapacity(f"{network.reason}. {way}")
        if cluster.network is NetworkMode.NONE:
            return replace(cluster, network=network.mode, network_reason=network.reason)
        return cluster

    def _kept(self, uow: UnitOfWork, cluster: Cluster, hosts: int, price: Microcents, actor: str) -> Cluster:
        after = replace(cluster, request=replace(cluster.request, hosts=hosts), price_per_hour=price)
        after = noted(after, Step(uow.now_wall_ns, "resized", None, f"to {hosts} hosts"))
        uow.audit(actor, "cluster.resize", cluster.cluster_id, "asked for", {"hosts": str(hosts)})
        subjects = (cluster.cluster_id, cluster.account_id)
        uow.event("cluster.resized", subjects, f"{cluster.name} has {hosts} hosts from now on", actor=actor)
        self._life.keep(uow, after)
        return after
