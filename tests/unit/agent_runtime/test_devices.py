"""A workload sees just the device that it was granted, whole or a slice, whatever its image or its renter asks for."""

from pathlib import Path

import pytest

from windrow_agent.runtimes.docker_facts import fixed_environment, host_config
from windrow_agent.runtimes.sandbox import environment
from windrow_proto.ids import ClusterId, GpuUuid, SlotId, WorkloadId
from windrow_proto.model import Isolation, SlotGrant, WorkloadSpec

SLICE = "MIG-00000302-0000-4000-8000-000000000000"
GRANTS = {
    "slice": ((SlotGrant(SlotId(SLICE), 3, GpuUuid(SLICE), Isolation.MIG),), SLICE),
    "processors": ((SlotGrant(SlotId("host/cpu/0"), 3),), ""),
}
CHEEK = {"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}


@pytest.mark.parametrize(("slots", "device"), GRANTS.values(), ids=GRANTS)
def test_a_workload_sees_just_what_it_was_granted(slots: tuple[SlotGrant, ...], device: str, tmp_path: Path) -> None:
    spec = WorkloadSpec(WorkloadId("work_1"), ClusterId("cluster_1"), slots, "docker", "busybox", env=CHEEK)
    requests = host_config(spec, 4, 8 << 30)["device_requests"]
    assert ([one["DeviceIDs"] for one in requests] if requests else []) == ([[device]] if device else [])
    assert {**spec.env, **fixed_environment(spec)}["NVIDIA_VISIBLE_DEVICES"] == (device or "void")
    assert environment(spec, tmp_path, tmp_path, tmp_path)["CUDA_VISIBLE_DEVICES"] == device
