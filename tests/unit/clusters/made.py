"""Clusters and workloads for the tests of this package."""

from windrow_master.clusters.model import Cluster, ClusterPhase, ClusterRequest, Workload, WorkPhase
from windrow_master.market.model import RentalId
from windrow_proto.ids import AccountId, ClusterId, HostId, SlotId, WorkloadId
from windrow_proto.model import ObservedWorkload, SlotGrant, WorkloadPhase
from windrow_proto.units import HOUR, Bytes, Microcents

NOW = 1_000 * HOUR
GRANT = SlotGrant(SlotId("host_a/cpu/0"), 3)


def cluster(phase: ClusterPhase) -> Cluster:
    return Cluster(
        ClusterId("cluster_a"),
        AccountId("account_renter"),
        ClusterRequest(name="demo"),
        phase,
        RentalId("rental_a"),
        "cpu/B",
        Microcents(1),
        NOW,
    )


def workload(phase: WorkPhase = WorkPhase.PENDING, number: int = 1) -> Workload:
    return Workload(
        WorkloadId(f"workload_{number}"),
        ClusterId("cluster_a"),
        HostId("host_a"),
        "host a",
        "docker",
        "busybox",
        (GRANT,),
        1,
        Bytes(0),
        NOW,
        phase,
    )


def report(phase: WorkloadPhase, token: int = 3, **other: object) -> ObservedWorkload:
    slots = (SlotGrant(GRANT.slot_id, token),)
    return ObservedWorkload(WorkloadId("workload_1"), phase, slots, **other)  # type: ignore[arg-type]
