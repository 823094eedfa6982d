"""Turns places into leased slots, lines of the rental, workloads and create commands, in the caller's unit of work.

It decides no place and no state; what the members are told of each other is kinds/engines.py's.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from zlib import crc32

from windrow_master.clusters import environments, images
from windrow_master.clusters.kinds import box, engines
from windrow_master.clusters.model import OVER_HOSTS, Cluster, ClusterKind, NetworkMode, Workload
from windrow_master.clusters.repository import ClusterRepository, WorkloadRepository
from windrow_master.clusters.request import Membership, workload_spec
from windrow_master.clusters.topology import Meeting
from windrow_master.fleet.model import Host
from windrow_master.fleet.service import FleetService
from windrow_master.market.model import RentalLine
from windrow_master.market.service import HOLD_NS, LEASE_NS
from windrow_master.placement.model import Chosen, Runtime
from windrow_master.secrets.service import NOTHING, SecretService
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, NoCapacity
from windrow_proto.ids import ClusterId, CommandId, HostId, WorkloadId
from windrow_proto.model import Command, CommandKind, WorkloadSpec
from windrow_proto.sealed import SEAL_KEY, RegistryLogin, SealKey, seal_login, seal_values
from windrow_proto.units import MINUTE, Bytes
from windrow_proto.volumes import VOLUMES

CREATE_NOT_AFTER_NS: Final = MINUTE
"""A creation that its host did not take within a minute is given up: whoever asked is still waiting."""
LOOPBACK: Final = "127.0.0.1"
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Launched:
    """The orders that were issued: a workload for each place, and its line of the rental, in the order of their
    ranks. is_simulated: its hosts are, which are all or none."""

    workloads: tuple[Workload, ...]
    lines: tuple[RentalLine, ...]
    is_simulated: bool


class Launcher:
    """Orders workloads. Every method runs inside the caller's unit of work."""

    def __init__(
        self,
        fleet: FleetService,
        seal_key: SealKey,
        named: SecretService,
        service_place: Callable[[HostId], str],
    ) -> None:
        """seal_key: the Master's own, for what the rows of clusters keep sealed. named: the secrets that requests
        name. service_place: as of ClusterService."""
        self._fleet, self._key, self._named, self._service_place = fleet, seal_key, named, service_place

    def networked(self, uow: UnitOfWork, cluster: Cluster, places: Sequence[Chosen]) -> tuple[Cluster, Cluster]:
        """The cluster with a block of ports that nobody else has on these hosts, where its members listen for each
        other or a box for its renter, and with a new secret: as its row keeps it, and whole. Raises NoCapacity."""
        cluster = environments.whole(self._key, cluster)
        has_secret = box.is_entered(cluster.request) or cluster.kind in OVER_HOSTS
        whole = self._with_block(uow, cluster, places, secrets.token_hex(SECRET_BYTES) if has_secret else None)
        return environments.closed(self._key, whole), whole

    def _with_block(self, uow: UnitOfWork, cluster: Cluster, places: Sequence[Chosen], secret: str | None) -> Cluster:
        if cluster.kind not in OVER_HOSTS and not box.needs_block(cluster.request, places[0].runtime):
            return cluster if cluster.secret == secret else replace(cluster, secret=secret)
        taken = {port for place in places for port in self._blocks_on(uow, place.host_id)}
        first = engines.free_block(crc32(cluster.cluster_id.encode()) + cluster.restarts, taken)
        if first is None:
            raise NoCapacity(
                "On one of the hosts all ports for machines are in use. Try again later, or name another host."
            )
        return replace(cluster, first_port=first, secret=secret)

    def _blocks_on(self, uow: UnitOfWork, host_id: HostId) -> set[int]:
        clusters: set[ClusterId] = {workload.cluster_id for workload in uow[WorkloadRepository].held_on(host_id)}
        found = (uow[ClusterRepository].get(cluster_id) for cluster_id in clusters)
        return {one.first_port for one in found if one is not None and one.first_port is not None}

    def check(self, uow: UnitOfWork, cluster: Cluster) -> None:
        """Raises InvalidInput where a secret that its request names is not there any more."""
        self._named.open(uow, cluster.account_id, cluster.request)

    def launch(
        self,
        uow: UnitOfWork,
        cluster: Cluster,
        places: Mapping[int, Chosen],
        actor: str,
        addresses: Sequence[str] = (),
        login: RegistryLogin | None = None,
        whole: Cluster | None = None,
    ) -> Launched:
        """Lease the slots of these places, by rank, and put a create command for each into the outbox.

        addresses: of all members by rank, where only some of them are launched. login: for the registry of their image.
        whole: the cluster with its values, where they are at hand; else its row's are opened.
        The values of the secrets that its request names go into these commands alone. Raises InvalidInput for a secret
        that is not there any more.
        """
        cluster = environments.whole(self._key, cluster) if whole is None else whole
        opened = self._named.open(uow, cluster.account_id, cluster.request)
        hosts = {rank: self._fleet.hosts.load(uow, place.host_id) for rank, place in places.items()}
        known = dict(enumerate(addresses)) | {rank: _meets_at(cluster, rank, host) for rank, host in hosts.items()}
        told = [known[rank] for rank in sorted(known)]
        if opened is not NOTHING:
            self._named.used(uow, cluster.account_id, cluster.request, cluster.cluster_id, actor)
            env = {**cluster.request.env, **opened.variables}
            cluster, login = replace(cluster, request=replace(cluster.request, env=env)), login or opened.login
        workloads, lines = [], []
        for rank, place in sorted(places.items()):
            workload, line = self._lease(uow, cluster, rank, place, hosts[rank], told, actor)
            workloads.append(self._order(uow, cluster, workload, hosts[rank], told, actor, login))
            lines.append(line)
        return Launched(tuple(workloads), tuple(lines), any(host.simulated for host in hosts.values()))

    def _lease(
        self,
        uow: UnitOfWork,
        cluster: Cluster,
        rank: int,
        place: Chosen,
        host: Host,
        addresses: Sequence[str],
        actor: str,
    ) -> tuple[Workload, RentalLine]:
        workload_id, now = WorkloadId(uow.mint("workload")), uow.now_wall_ns
        past = uow[WorkloadRepository].of_cluster(cluster.cluster_id) if place.image else ()
        cpus, memory_bytes = cluster.request.cpus, cluster.request.memory_bytes or Bytes(0)
        grants = self._fleet.grant(uow, place.slot_ids, cluster.cluster_id, actor, "placed", cpus, memory_bytes)
        lease = now, now + LEASE_NS, now
        priced = host.host_id, host.owner_account, place.price_per_hour
        line = RentalLine(workload_id, cluster.rental_id, *priced, grants, *lease)
        workload = Workload(
            workload_id=workload_id,
            cluster_id=cluster.cluster_id,
            host_id=host.host_id,
            host_name=host.name,
            runtime=place.runtime.value,
            image=images.pin_of(place.image or "", past, host.host_id),
            slots=grants,
            cpus=cpus,
            memory_bytes=memory_bytes,
            created_at_ns=now,
            rank=rank,
            address=addresses[rank] if cluster.kind in OVER_HOSTS else None,
        )
        return workload, line

    def _order(
        self,
        uow: UnitOfWork,
        cluster: Cluster,
        workload: Workload,
        host: Host,
        addresses: Sequence[str],
        actor: str,
        login: RegistryLogin | None,
    ) -> Workload:
        """The workload with its create command, which is in the outbox; what is secret in it is sealed to its host."""
        spec = workload_spec(
            cluster.request,
            workload_id=workload.workload_id,
            cluster_id=cluster.cluster_id,
            slots=workload.slots,
            runtime=workload.runtime,
            image=workload.image,
            lease_ns=LEASE_NS,
            paid_ns=HOLD_NS if cluster.price_per_hour else LEASE_NS,
            member=_membership(
                *(cluster, workload.rank, addresses, host, workload.runtime), self._service_place(host.host_id)
            ),
            may_use_local_image=cluster.account_id == host.owner_account
            or images.is_same(workload.image, host.default_image),
        )
        if spec.volumes and (host.inventory is None or not host.inventory.more.get(VOLUMES)):
            words = f"The agent of {host.name} is too old to have volumes"
            raise Conflict(f"{words}; name another host, or have it updated.", subject=host.host_id)
        spec = _sealed_for(host, spec, cluster)
        if login is not None and workload.image:
            spec = replace(spec, registry_login=seal_login(_seal_key(host), login, workload.workload_id))
        command = Command(CommandId(uow.mint("command")), CommandKind.CREATE, create=spec)
        not_after_ns, about = uow.now_wall_ns + CREATE_NOT_AFTER_NS, workload.workload_id
        return replace(
            workload, create_command=self._fleet.issue(uow, host.host_id, command, not_after_ns, about, actor)
        )


def _sealed_for(host: Host, spec: WorkloadSpec, cluster: Cluster) -> WorkloadSpec:
    """With the values that the renter set, and the members' secret, for nobody but the host."""
    asked, secret = cluster.request, cluster.secret
    is_clear = frozenset[str]() if asked.secrets else environments.in_clear(asked.env)
    theirs = {
        name: value
        for name, value in spec.env.items()
        if (name in asked.env and name not in is_clear) or (secret is not None and value == secret)
    }
    if not theirs:
        return spec
    ours = {name: value for name, value in spec.env.items() if name not in theirs}
    return replace(spec, env=ours, sealed_env=seal_values(_seal_key(host), theirs, spec.workload_id))


def _seal_key(host: Host) -> str:
    key = host.inventory.more.get(SEAL_KEY) if host.inventory is not None else None
    if not isinstance(key, str):
        words = f"The agent of {host.name} is too old to be given secrets that only it can read"
        raise Conflict(f"{words}; name another host, or have it updated.", subject=host.host_id)
    return key


def address_of(host: Host) -> str:
    """Return the address at which others reach this host; loopback where nobody can, since placement then takes it
    alone."""
    own = () if host.inventory is None else host.inventory.addresses
    found = engines.network_of(host.address, own)
    return LOOPBACK if found is None else found[0]


def _meets_at(cluster: Cluster, rank: int, host: Host) -> str:
    if cluster.kind is ClusterKind.GANG and cluster.request.hosts == 1:
        return LOOPBACK  # in a network of its own it may not reach its host's address, and nobody else joins it
    return engines.member_address(cluster.network, cluster.first_port or 0, rank) or address_of(host)


def meeting_of(host: Host, runtime: Runtime) -> Meeting:
    """Return the address at which a member on this host would reach others."""
    is_contained = runtime is Runtime.DOCKER
    is_alone = is_contained or not host.is_unconfined
    return Meeting(host.host_id, host.name, address_of(host), network_of(host), is_contained, is_alone)


def network_of(host: Host) -> str | None:
    """The network in which others meet it; simulated hosts all meet in one of their own."""
    if host.simulated:
        return "simulated"
    found = engines.network_of(host.address, () if host.inventory is None else host.inventory.addresses)
    return None if found is None else found[1]


def _membership(
    cluster: Cluster, rank: int, addresses: Sequence[str], host: Host, runtime: str, place: str
) -> Membership | None:
    if box.is_entered(cluster.request):
        words = box.command(cluster, runtime, place)
        return Membership(rank, words, box.environment(cluster, runtime), is_waiting=False)
    if cluster.kind not in OVER_HOSTS or cluster.first_port is None:
        return None
    request, first = cluster.request, cluster.first_port
    is_private = cluster.network is NetworkMode.TUNNELS
    return Membership(
        rank,
        engines.command(request, rank, addresses, first),
        engines.environment(request, rank, addresses, first, cluster.secret or ""),
        None if host.simulated else addresses[rank],
        engines.listens(cluster.kind, rank, first),
        tuple(one for one in addresses if one != addresses[rank]) if is_private else (),
    )
