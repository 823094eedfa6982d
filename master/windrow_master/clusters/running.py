"""Tells each host which work should be there, and renews the leases of what runs."""

from typing import Final

from windrow_master.clusters.model import Workload, WorkPhase
from windrow_master.clusters.reports import has_results
from windrow_master.clusters.repository import ClusterRepository, WorkloadRepository
from windrow_master.clusters.states import HOLDING
from windrow_master.fleet.model import DesiredWorkload
from windrow_master.fleet.service import FleetService
from windrow_master.loops import Boundary
from windrow_master.market.service import LEASE_NS, MarketService, Renewal
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import HostId
from windrow_proto.model import LeaseRenewal

_RENEWED: Final = frozenset(
    {
        *(WorkPhase.PENDING, WorkPhase.PREPARING, WorkPhase.WAITING_VOLUMES, WorkPhase.WAITING_FILES),
        *(WorkPhase.WAITING_MEMBERS, WorkPhase.RUNNING),
    }
)


class RunningWork:
    """The work of all hosts. faults: keeps a cluster that fails from the others."""

    def __init__(self, store: Store, fleet: FleetService, market: MarketService, faults: Boundary) -> None:
        self._store, self._fleet, self._market, self._faults = store, fleet, market, faults

    def desired(self, uow: UnitOfWork, host_id: HostId) -> tuple[DesiredWorkload, ...]:
        """Return the workloads that should be on a host: all that still holds slots there, and whether it is meant
        to run."""
        found = []
        for workload in uow[WorkloadRepository].held_on(host_id):
            cluster = uow[ClusterRepository].get(workload.cluster_id)
            lives = cluster is not None and cluster.phase in HOLDING and workload.phase is not WorkPhase.FAILED
            lives = (lives and workload.is_member) or has_results(workload)
            found.append(DesiredWorkload(workload.workload_id, workload.slots, lives))
        return tuple(found)

    async def renewals(self) -> dict[HostId, tuple[LeaseRenewal, ...]]:
        """Renew the leases of all that runs on hosts that are Online, and of what has ended there until its results are
        in; send what this returns to each of them."""

        def renew(uow: UnitOfWork) -> dict[HostId, tuple[LeaseRenewal, ...]]:
            found: dict[HostId, tuple[LeaseRenewal, ...]] = {}
            for workload in uow[WorkloadRepository].held():
                with self._faults.around(workload.cluster_id, "renew"), uow.attempt():
                    lease = self._renewed(uow, workload)
                    if lease is not None:
                        found[workload.host_id] = (*found.get(workload.host_id, ()), lease)
            return found

        if not await self._store.read(lambda uow: bool(uow[WorkloadRepository].held())):
            return {}
        return await self._store.write(renew, name="cluster.renew")

    def _renewed(self, uow: UnitOfWork, workload: Workload) -> LeaseRenewal | None:
        if workload.delete_command is not None or not self._fleet.hosts.is_online(uow, workload.host_id):
            return None
        renewal = None
        if workload.phase in _RENEWED:
            renewal = self._market.renew(uow, workload.workload_id)
        elif has_results(workload):  # it costs nothing
            renewal = Renewal(workload.workload_id, LEASE_NS, LEASE_NS)
        if renewal is None:
            return None
        return LeaseRenewal(workload.workload_id, renewal.lease_ns, renewal.paid_ns, workload.token)
