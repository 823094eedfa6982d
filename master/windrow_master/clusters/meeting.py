"""Finds how the members of a cluster reach each other, and hosts that fit beside the present ones; in the caller's
unit of work."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from windrow_master.clusters.kinds import multi_host
from windrow_master.clusters.launch import meeting_of
from windrow_master.clusters.model import Cluster, Network, NetworkMode, Workload
from windrow_master.clusters.needs import Look
from windrow_master.clusters.snapshot import Placer
from windrow_master.clusters.topology import Reachability
from windrow_master.fleet.service import FleetService
from windrow_master.placement.model import Placement, Refusal, Runtime
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import NoCapacity
from windrow_proto.ids import HostId
from windrow_proto.units import Microcents


class Meeter:
    """reachability: which hosts reach each other."""

    def __init__(self, fleet: FleetService, placer: Placer, reachability: Reachability) -> None:
        self._fleet, self._placer, self._reachability = fleet, placer, reachability

    def network(self, uow: UnitOfWork, runtimes: Mapping[HostId, Runtime]) -> Network | Look:
        """Return how members on these hosts meet, or that the hosts have to look first. Raises NoCapacity where they
        cannot."""
        hosts = [self._fleet.hosts.load(uow, host_id) for host_id in runtimes]
        if len(runtimes) == 1 or any(host.simulated for host in hosts):
            return Network()
        meetings = tuple(meeting_of(host, runtimes[host.host_id]) for host in hosts)
        return self._reachability.decide(meetings) or Look(meetings)

    def beside(
        self,
        uow: UnitOfWork,
        cluster: Cluster,
        workloads: Sequence[Workload],
        hosts: int,
        most: Microcents | None,
        but: frozenset[HostId] = frozenset(),
    ) -> Placement | Refusal:
        """Return the places for so many more members: like those that are or were there, on other hosts, for at most
        so much per hour. workloads: all of the cluster; but: hosts that were found not to do."""
        members = multi_host.members_of(workloads)
        host_id = None if members else cluster.request.host_id
        asked = replace(cluster.request, hosts=hosts, max_price_per_hour=most, host_id=host_id)
        if any(one.runtime == Runtime.DOCKER for one in workloads):
            asked = replace(asked, runtime=Runtime.DOCKER)
        taken = but | {member.host_id for member in members}
        is_private = cluster.network is NetworkMode.TUNNELS
        return self._placer.place(uow, asked, cluster.account_id, but=taken, is_private=is_private)

    def met(self, uow: UnitOfWork, cluster: Cluster, members: Sequence[Workload], found: Placement) -> Cluster | Look:
        """The cluster as its members and these new ones will meet, which for those that are there stays as it is; or
        that the hosts have to look first. Raises NoCapacity where they would not meet."""
        runtimes = {member.host_id: Runtime(member.runtime) for member in members}
        network = self.network(uow, runtimes | {member.host_id: member.runtime for member in found.members})
        if isinstance(network, Look):
            return network
        if network.mode is NetworkMode.TUNNELS and cluster.network is not NetworkMode.TUNNELS:
            way = "Its members meet at their hosts' addresses; create a cluster over more hosts from the start."
            raise NoCapacity(f"{network.reason}. {way}")
        if cluster.network is NetworkMode.NONE:
            return replace(cluster, network=network.mode, network_reason=network.reason)
        return cluster
