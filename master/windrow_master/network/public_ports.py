"""Decides which ports anybody may reach over HTTPS through an Access, and counts their traffic. Pure.

A port of a cluster of kind `service` that it asked for is public: its address is known to whom the renter tells it, and
the service itself looks at who calls. Of each browser's connection no row is written: they are counted by cluster.
"""

from collections.abc import Iterable
from typing import Final

from windrow_master.clusters.model import Cluster, ClusterPhase, Traffic, Workload, WorkPhase
from windrow_master.clusters.views import ClusterView, public_ports
from windrow_proto.errors import Conflict, NotFound
from windrow_proto.ids import ClusterId
from windrow_proto.units import SECOND

UNKNOWN_KEPT_NS: Final = 5 * SECOND
"""How long it is remembered that there is no such service: a flood for one name costs one look at the store."""
UNKNOWN_MAX: Final = 4_096
LIVING: Final = frozenset({ClusterPhase.RUNNING, ClusterPhase.DEGRADED})


def is_running(workload: Workload) -> bool:
    """Return whether something of it may be reached."""
    return workload.phase is WorkPhase.RUNNING and workload.delete_command is None


def judge(
    cluster: Cluster | None, workloads: Iterable[Workload], port: int, *, is_opened: bool = False
) -> tuple[Cluster, Workload]:
    """The workload that answers to this port; raises NotFound, or Conflict while it does not run. is_opened: somebody
    with the right to it has opened this port, whatever its cluster is."""
    if cluster is None or (port not in public_ports(cluster) and not is_opened):
        raise NotFound("There is no such service.")
    for workload in workloads:
        if cluster.phase in LIVING and is_running(workload):
            return cluster, workload
    raise Conflict("This service is not running.", subject=cluster.cluster_id)


def member(view: ClusterView, rank: int) -> Workload:
    """The member of this rank that may be entered. Raises NotFound where there can be none, Conflict where it does not
    run."""
    for workload in view.workloads:
        if workload.rank == rank and is_running(workload) and view.cluster.phase in LIVING:
            return workload
    cluster_id, phase, hosts = view.cluster.cluster_id, view.cluster.phase.value, view.cluster.request.hosts
    if rank >= hosts:
        said = f"This cluster has no member of rank {rank}: ranks count from 0, and its last is {hosts - 1}."
        raise NotFound(said, subject=cluster_id)
    whose = f"the member of rank {rank}" if hosts > 1 else "the machine"
    raise Conflict(f"There is nothing to connect to: {whose} does not run; the machine is {phase}.", subject=cluster_id)


class Unknown:
    """Services of which was found a moment ago that there are none: so many, the oldest are forgotten first."""

    def __init__(self, kept_ns: int = UNKNOWN_KEPT_NS, most: int = UNKNOWN_MAX) -> None:
        self._kept_ns, self._most = kept_ns, most
        self._until_ns: dict[tuple[ClusterId, int], int] = {}

    def note(self, cluster_id: ClusterId, port: int, now_ns: int) -> None:
        """There is none."""
        self._until_ns.pop((cluster_id, port), None)
        self._until_ns[cluster_id, port] = now_ns + self._kept_ns
        if len(self._until_ns) > self._most:
            del self._until_ns[next(iter(self._until_ns))]

    def holds(self, cluster_id: ClusterId, port: int, now_ns: int) -> bool:
        """Return whether it was found a moment ago."""
        return now_ns < self._until_ns.get((cluster_id, port), 0)

    def __len__(self) -> int:
        return len(self._until_ns)


class Tally:
    """Counts until it is written down."""

    def __init__(self) -> None:
        self._counts: dict[ClusterId, Traffic] = {}

    def add(self, cluster_id: ClusterId, traffic: Traffic) -> None:
        """So much more."""
        self._counts[cluster_id] = self._counts.get(cluster_id, Traffic()).plus(traffic)

    def take(self) -> dict[ClusterId, Traffic]:
        """All of it; the count begins anew."""
        taken, self._counts = self._counts, {}
        return taken
