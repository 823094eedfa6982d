"""Answers other packages that ask for clusters and their workloads; only this package writes them."""

from collections.abc import Iterable, Sequence

from windrow_master.clusters.model import Cluster, Traffic, Workload
from windrow_master.clusters.repository import ClusterRepository, TrafficRepository, WorkloadRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, ClusterId, WorkloadId


def find(uow: UnitOfWork, cluster_id: ClusterId) -> Cluster | None:
    """One cluster."""
    return uow[ClusterRepository].get(cluster_id)


def find_readable(uow: UnitOfWork, cluster_ids: Iterable[ClusterId]) -> Sequence[Cluster]:
    """Those of these that are there and can be read, in their order; operators are told of the others."""
    return uow[ClusterRepository].readable(cluster_ids)


def find_by_key(uow: UnitOfWork, account_id: AccountId, key: str) -> Cluster | None:
    """The cluster that an account asked for under this key."""
    known = uow[ClusterRepository].by_key(account_id, key)
    return known[0] if known is not None else None


def find_workload(uow: UnitOfWork, workload_id: WorkloadId) -> Workload | None:
    """One workload."""
    return uow[WorkloadRepository].get(workload_id)


def owner_of(uow: UnitOfWork, cluster_id: ClusterId) -> AccountId | None:
    """The account that a cluster is of; None: there is no such cluster."""
    cluster = find(uow, cluster_id)
    return cluster.account_id if cluster is not None else None


def owner_of_workload(uow: UnitOfWork, workload_id: WorkloadId) -> AccountId | None:
    """The account of a workload's cluster; None: there is no such workload."""
    workload = find_workload(uow, workload_id)
    return owner_of(uow, workload.cluster_id) if workload is not None else None


def workloads_of(uow: UnitOfWork, cluster_id: ClusterId) -> tuple[Workload, ...]:
    """The workloads of one cluster in its present run."""
    return uow[WorkloadRepository].of_cluster(cluster_id)


def holds_slots(uow: UnitOfWork, cluster_id: ClusterId) -> bool:
    """True while a workload of its present run holds slots."""
    return any(not one.is_released for one in workloads_of(uow, cluster_id))


def held_by_cluster(uow: UnitOfWork, cluster_id: ClusterId) -> Sequence[Workload]:
    """The workloads of one cluster that still hold slots, of earlier runs, too."""
    return uow[WorkloadRepository].held_of_cluster(cluster_id)


def held_by_account(uow: UnitOfWork, account_id: AccountId) -> Sequence[Workload]:
    """The workloads of one account that still hold slots anywhere."""
    return uow[WorkloadRepository].held_of(account_id)


def with_results(uow: UnitOfWork) -> Sequence[Workload]:
    """The workloads that have ended by themselves, whose logs and files are still on their hosts, or were."""
    return uow[WorkloadRepository].with_results()


def in_tunnels(uow: UnitOfWork) -> Sequence[Cluster]:
    """The clusters whose members are joined by tunnels."""
    return uow[ClusterRepository].in_tunnels()


def count_traffic(uow: UnitOfWork, cluster_id: ClusterId, traffic: Traffic) -> None:
    """Add to the traffic of a cluster's service."""
    uow[TrafficRepository].add(cluster_id, traffic)
