"""Answers what other packages ask about clusters and their workloads, and counts the traffic that they report.

Only this package reads and writes their rows; what changes a cluster is in service.py and controller.py.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from windrow_master.clusters.kinds import multi_host
from windrow_master.clusters.messages import IsOfJob
from windrow_master.clusters.model import Cluster, ClusterKind, ClusterPhase, Traffic, Workload, WorkPhase
from windrow_master.clusters.repository import ClusterRepository, TrafficRepository, WorkloadRepository
from windrow_master.clusters.states import HOLDING
from windrow_master.clusters.template_repository import TemplateRepository
from windrow_master.queue.quota import NodeLevel
from windrow_master.secrets.model import SecretUser
from windrow_master.spec import Work
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, ClusterId, HostId, WorkloadId

_ENDED: Final = (WorkPhase.EXITED, WorkPhase.GONE)


def find(uow: UnitOfWork, cluster_id: ClusterId) -> Cluster | None:
    """One cluster."""
    return uow[ClusterRepository].get(cluster_id)


def workloads_of(uow: UnitOfWork, cluster_id: ClusterId) -> tuple[Workload, ...]:
    """The workloads of one cluster in its present run."""
    return uow[WorkloadRepository].of_cluster(cluster_id)


def is_made(uow: UnitOfWork, account_id: AccountId, key: str) -> bool:
    """Return whether an account asked for a cluster under this key."""
    return uow[ClusterRepository].by_key(account_id, key) is not None


def owner_of(uow: UnitOfWork, cluster_id: ClusterId) -> AccountId | None:
    """The account of a cluster; None: there is no such cluster."""
    cluster = find(uow, cluster_id)
    return cluster.account_id if cluster is not None else None


def owner_of_workload(uow: UnitOfWork, workload_id: WorkloadId) -> AccountId | None:
    """The account of a workload's cluster; None: there is no such workload."""
    workload = uow[WorkloadRepository].get(workload_id)
    return owner_of(uow, workload.cluster_id) if workload is not None else None


def running_on(uow: UnitOfWork, host_id: HostId) -> int:
    """The number of clusters that hold slots of a host."""
    return len({one.cluster_id for one in uow[WorkloadRepository].held_on(host_id)})


def holding(uow: UnitOfWork, host_id: HostId) -> Sequence[Cluster]:
    """The clusters that hold slots of a host."""
    held = dict.fromkeys(one.cluster_id for one in uow[WorkloadRepository].held_on(host_id))
    return uow[ClusterRepository].readable(held)


def over_several(uow: UnitOfWork, host_id: HostId, least: int) -> Cluster | None:
    """A cluster over so many hosts or more that this host works for; None: there is none."""
    held = dict.fromkeys(one.cluster_id for one in uow[WorkloadRepository].held_on(host_id))
    found = (find(uow, cluster_id) for cluster_id in held)
    return next((one for one in found if one is not None and one.request.hosts >= least), None)


def queued_below(uow: UnitOfWork, level: NodeLevel, node_id: str) -> int:
    """The number of clusters below a node of the tree of shares that wait for a place."""
    return uow[ClusterRepository].queued_below(level, node_id)


# --- for secrets ---


def naming_secrets(
    uow: UnitOfWork, account_id: AccountId, but: Collection[ClusterId]
) -> Iterator[tuple[SecretUser, Work]]:
    """The clusters that are not over, but for these, and the templates of an account, with their requests. A stopped
    cluster waits: its next start needs the values again."""
    for one in uow[ClusterRepository].open_of(account_id):
        if one.cluster_id not in but:
            is_stopped = one.phase in (ClusterPhase.STOPPING, ClusterPhase.STOPPED)
            yield SecretUser("cluster", one.cluster_id, one.name, is_stopped), one.request
    for kept in uow[TemplateRepository].of_account(account_id):
        yield SecretUser("template", kept.name, kept.name, False), kept.request


# --- for the end of projects ---


def open_of(uow: UnitOfWork, account_id: AccountId) -> list[Cluster]:
    """The clusters of an account that are not over, stopped ones too, or of which a host still holds something."""
    found = {one.cluster_id: one for one in uow[ClusterRepository].open_of(account_id)}
    held = {one.cluster_id for one in uow[WorkloadRepository].held_of(account_id)} - set(found)
    return [*found.values(), *uow[ClusterRepository].readable(sorted(held))]


def forget_templates(uow: UnitOfWork, account_id: AccountId) -> None:
    """Delete the templates of an account."""
    uow[TemplateRepository].forget_account(account_id)


# --- for acceptance tests ---


def has_work_on(uow: UnitOfWork, account_id: AccountId, hosts: Collection[HostId]) -> bool:
    """True while work of an account holds slots of any of these hosts."""
    return any(one.host_id in hosts for one in uow[WorkloadRepository].held_of(account_id))


def going_on(uow: UnitOfWork, account_id: AccountId, but_keys: Iterable[str]) -> list[Cluster]:
    """The clusters of an account that hold slots and are meant to run, but for those requested under these keys."""
    clusters = uow[ClusterRepository]
    held = {one.cluster_id for one in uow[WorkloadRepository].held_of(account_id)}
    if not held:
        return []
    known = (clusters.by_key(account_id, key) for key in but_keys)
    held -= {one[0].cluster_id for one in known if one is not None}
    found = (clusters.get(cluster_id) for cluster_id in sorted(held))
    return [one for one in found if one is not None and one.phase in HOLDING]


# --- for private networks and services ---


def joined_by_tunnels(uow: UnitOfWork) -> Sequence[Cluster]:
    """The clusters with a private network of tunnels that are not over."""
    return uow[ClusterRepository].in_tunnels()


def count_traffic(uow: UnitOfWork, counts: Mapping[ClusterId, Traffic]) -> None:
    """Add to the traffic of these clusters."""
    for cluster_id, traffic in counts.items():
        uow[TrafficRepository].add(cluster_id, traffic)


# --- for results and volumes ---


def with_ended_work(uow: UnitOfWork) -> list[ClusterId]:
    """The clusters with work that has ended by itself, whose log and files are still on its host, or were: one for each
    such workload."""
    return [one.cluster_id for one in uow[WorkloadRepository].with_results()]


def ended_work(uow: UnitOfWork, cluster_ids: Iterable[ClusterId]) -> list[tuple[Workload, Cluster]]:
    """The workloads of these clusters that have ended and are not a job's, where the cluster is over or ending."""
    found = []
    for cluster in uow[ClusterRepository].readable(cluster_ids):
        if cluster.ended_at_ns is None and cluster.phase is not ClusterPhase.DELETING:
            continue
        held = uow[WorkloadRepository].held_of_cluster(cluster.cluster_id)
        ended = [one for one in held if one.phase in _ENDED and one.delete_command is None]
        if ended and not uow.ask(IsOfJob(cluster.cluster_id)):
            found += [(workload, cluster) for workload in ended]
    return found


def first_ends(uow: UnitOfWork, cluster_ids: Iterable[ClusterId]) -> list[tuple[Workload, Cluster]]:
    """The rank of each of these gangs that failed first, where nobody was told yet."""
    found = []
    for cluster in uow[ClusterRepository].readable(cluster_ids):
        if cluster.kind is ClusterKind.GANG and not multi_host.is_first_end_told(cluster):
            first = multi_host.first_ended(cluster, uow[WorkloadRepository].of_cluster(cluster.cluster_id))
            found += [(first, cluster)] if first is not None else []
    return found


def held_of(uow: UnitOfWork, cluster_id: ClusterId) -> tuple[Cluster | None, Sequence[Workload]]:
    """A cluster, and its workloads that still hold slots, of earlier runs, too. None: there is no such cluster, or its
    row cannot be read, of which operators are told."""
    (cluster,) = uow[ClusterRepository].readable([cluster_id]) or (None,)
    return cluster, uow[WorkloadRepository].held_of_cluster(cluster_id)


def holds_slots(uow: UnitOfWork, cluster_id: ClusterId) -> bool:
    """True while a workload of a cluster's present run holds slots."""
    return any(not one.is_released for one in workloads_of(uow, cluster_id))
