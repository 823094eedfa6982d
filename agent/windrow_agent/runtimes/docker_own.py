"""What a container daemon has of this host's own, found by our marks; what lacks them is never looked at twice."""

from typing import Any

from windrow_agent.runtimes import docker_facts as facts_of
from windrow_agent.runtimes.port import Run, RunState
from windrow_proto.ids import ClusterId, HostId, WorkloadId


def by_labels(api: Any, host_id: HostId, workload_id: WorkloadId | None) -> list[dict[str, Any]]:
    """The containers of this host, or those of one workload, that are not just going away."""
    wanted = [f"{facts_of.HOST}={host_id}"] + ([f"{facts_of.WORKLOAD}={workload_id}"] if workload_id else [])
    found = api.containers(all=True, filters={"label": wanted})
    return [container for container in found if container.get("State") != "removing"]


def names(api: Any, host_id: HostId) -> list[str]:
    """The workloads that have a container."""
    return sorted({str(found["Labels"].get(facts_of.WORKLOAD, "")) for found in by_labels(api, host_id, None)} - {""})


def bare(api: Any, host_id: HostId, known: list[str]) -> list[Run]:
    """The workloads that have a volume and no container, as is left where the daemon went away between making the two.
    known: those that have one."""
    found = (api.volumes(filters={"label": f"{facts_of.HOST}={host_id}"}) or {}).get("Volumes") or []
    labels = [one.get("Labels") or {} for one in found]
    left = {str(one.get(facts_of.WORKLOAD, "")): str(one.get(facts_of.CLUSTER, "")) for one in labels}
    return [
        Run(WorkloadId(name), ClusterId(cluster), (), facts_of.NAME, RunState.CREATED)
        for name, cluster in sorted(left.items())
        if name not in ("", *known)
    ]


def volumes(api: Any, host_id: HostId, of: WorkloadId) -> list[str]:
    """The daemon's volumes of one workload."""
    wanted = [f"{facts_of.HOST}={host_id}", f"{facts_of.WORKLOAD}={of}"]
    return [one["Name"] for one in (api.volumes(filters={"label": wanted}) or {}).get("Volumes") or []]
