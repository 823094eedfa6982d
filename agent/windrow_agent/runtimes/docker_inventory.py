"""Finds the containers and volumes of this host's agent by their labels; others are never looked at twice."""

from typing import Any, Final

from windrow_agent.runtimes import docker_facts as facts_of
from windrow_agent.runtimes.port import Run, RunState
from windrow_proto.ids import ClusterId, HostId, WorkloadId
from windrow_proto.ports import Clock
from windrow_proto.units import MINUTE

LOOK_EVERY_NS: Final = 5 * MINUTE
"""Between two looks at the volumes."""


def by_labels(api: Any, host_id: HostId, workload_id: WorkloadId | None) -> list[dict[str, Any]]:
    """The containers of this host, or those of one workload, that are not just going away."""
    wanted = [f"{facts_of.HOST}={host_id}"] + ([f"{facts_of.WORKLOAD}={workload_id}"] if workload_id else [])
    found = api.containers(all=True, filters={"label": wanted})
    return [container for container in found if container.get("State") != "removing"]


def names(api: Any, host_id: HostId) -> list[str]:
    """The workloads that have a container."""
    return sorted({str(found["Labels"].get(facts_of.WORKLOAD, "")) for found in by_labels(api, host_id, None)} - {""})


class BareVolumes:
    """The workloads that have a volume and no container, as is left where the daemon went away between making the two.

    That happens once in a while: the daemon is asked at the first look and then rarely, and what was seen is told until
    it is asked again."""

    def __init__(self, host_id: HostId) -> None:
        self._host_id = host_id
        self._due_ns: int | None = None
        self._seen: dict[WorkloadId, ClusterId] = {}

    def is_due(self, clock: Clock) -> bool:
        """True if the daemon is to be asked now."""
        return self._due_ns is None or clock.monotonic_ns() >= self._due_ns

    def none(self, clock: Clock) -> None:
        """There is no volume at all: another asked."""
        self._seen, self._due_ns = {}, clock.monotonic_ns() + LOOK_EVERY_NS

    def look(self, api: Any, clock: Clock) -> None:
        """Ask the daemon; where it does not answer, asking stays due. Blocking."""
        found = (api.volumes(filters={"label": f"{facts_of.HOST}={self._host_id}"}) or {}).get("Volumes") or []
        labels = [one.get("Labels") or {} for one in found]
        self.none(clock)
        self._seen = {
            WorkloadId(str(one[facts_of.WORKLOAD])): ClusterId(str(one.get(facts_of.CLUSTER, "")))
            for one in labels
            if one.get(facts_of.WORKLOAD)
        }

    def forget(self, workload_id: WorkloadId) -> None:
        """Forgets a workload that was removed."""
        self._seen.pop(workload_id, None)

    def runs(self, known: list[str]) -> list[Run]:
        """known: the workloads that have a container."""
        return [
            Run(name, cluster, (), facts_of.NAME, RunState.CREATED)
            for name, cluster in sorted(self._seen.items())
            if name not in known
        ]


def volumes(api: Any, host_id: HostId, of: WorkloadId) -> list[str]:
    """The daemon's volumes of one workload. Podman gives those that have any of the labels asked for."""
    wanted = {facts_of.HOST: host_id, facts_of.WORKLOAD: of}
    found = (api.volumes(filters={"label": f"{facts_of.WORKLOAD}={of}"}) or {}).get("Volumes") or []
    return [one["Name"] for one in found if wanted.items() <= (one.get("Labels") or {}).items()]
