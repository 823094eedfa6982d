"""A workload sees just the device that it was granted, whole or a slice, whatever its image or its renter asks for."""

from pathlib import Path
from typing import Any

import pytest

from windrow_agent.core import devices
from windrow_agent.runtimes import docker_daemon, docker_facts
from windrow_agent.runtimes.docker_facts import host_config
from windrow_agent.runtimes.sandbox import environment
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.ids import ClusterId, GpuUuid, SlotId, WorkloadId
from windrow_proto.model import GpuFacts, Isolation, SlotGrant, WorkloadSpec

SLICE = "MIG-00000302-0000-4000-8000-000000000000"
GRANTS = {
    "slice": ((SlotGrant(SlotId(SLICE), 3, GpuUuid(SLICE), Isolation.MIG),), SLICE),
    "processors": ((SlotGrant(SlotId("host/cpu/0"), 3),), ""),
}
CHEEK = {"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}


@pytest.mark.parametrize(("slots", "device"), GRANTS.values(), ids=GRANTS)
def test_a_workload_sees_just_what_it_was_granted(slots: tuple[SlotGrant, ...], device: str, tmp_path: Path) -> None:
    spec = WorkloadSpec(WorkloadId("work_1"), ClusterId("cluster_1"), slots, "docker", "busybox", env=CHEEK)
    requests = host_config(spec, 4, 8 << 30, devices.of(spec, ()))["device_requests"]
    assert ([one["DeviceIDs"] for one in requests] if requests else []) == ([[device]] if device else [])
    assert docker_facts.environment(spec, {}, frozenset())["NVIDIA_VISIBLE_DEVICES"] == (device or "void")
    assert environment(spec, tmp_path, tmp_path, tmp_path, "")["CUDA_VISIBLE_DEVICES"] == device


NVIDIAS, AMDS, INTELS = "GPU-00000001-0000-4000-8000-000000000000", "GPU-3b6f2c1d90a4e857", "PCI-" + "0f" * 16
CARDS = (
    GpuFacts(GpuUuid(NVIDIAS), 0, "nvidia", "NVIDIA H100"),
    GpuFacts(GpuUuid(AMDS), 1, "amd", "MI300X", more={"render_node": "/dev/dri/renderD128"}),
    GpuFacts(GpuUuid("GPU-ffffffffffffffff"), 2, "amd", "MI300X", more={"render_node": "/dev/dri/renderD129"}),
    GpuFacts(GpuUuid(INTELS), 3, "intel", "Arc A770", more={"render_node": "/dev/dri/renderD130"}),
    GpuFacts(GpuUuid("PCI-" + "00" * 16), 4, "", "unknown card 1020"),
)


def holding(*uuids: str) -> WorkloadSpec:
    """A workload that holds these cards."""
    slots = tuple(SlotGrant(SlotId(one), 3, GpuUuid(one)) for one in uuids)
    return WorkloadSpec(WorkloadId("work_1"), ClusterId("cluster_1"), slots, "docker", "busybox", env=CHEEK)


@pytest.mark.parametrize(
    ("held", "nodes", "nvidia"),
    [
        ((AMDS,), ["/dev/dri/renderD128", "/dev/kfd"], "void"),
        ((INTELS,), ["/dev/dri/renderD130"], "void"),
        ((NVIDIAS, AMDS), ["/dev/dri/renderD128", "/dev/kfd"], NVIDIAS),
        ((NVIDIAS,), [], NVIDIAS),
        ((), [], "void"),
    ],
)
def test_a_container_gets_the_files_of_its_own_cards_and_of_no_other(
    held: tuple[str, ...], nodes: list[str], nvidia: str
) -> None:
    spec = holding(*held)
    config = host_config(spec, 4, 8 << 30, devices.of(spec, CARDS))
    assert config["devices"] == ([f"{node}:{node}:rw" for node in nodes] or None)
    assert bool(config["device_requests"]) is (NVIDIAS in held)
    assert docker_facts.environment(spec, {}, frozenset())["NVIDIA_VISIBLE_DEVICES"] == nvidia


OTHER = "GPU-00000002-0000-4000-8000-000000000000"
ALL = {"Source": "cdi", "ID": "nvidia.com/gpu=all"}
BY_CDI = frozenset({f"nvidia.com/gpu={NVIDIAS}", "nvidia.com/gpu=all", "nvidia.com/gpu=0"})


def test_a_daemon_that_knows_the_card_by_cdi_is_asked_so_and_no_hook_adds_another() -> None:
    spec = holding(NVIDIAS)
    (request,) = host_config(spec, 4, 8 << 30, devices.of(spec, CARDS), None, BY_CDI)["device_requests"]

    assert (request["Driver"], request["DeviceIDs"]) == ("cdi", [f"nvidia.com/gpu={NVIDIAS}"])
    assert docker_facts.environment(spec, {}, BY_CDI)["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_a_daemon_that_does_not_know_all_of_the_cards_by_cdi_is_asked_for_devices() -> None:
    spec = holding(NVIDIAS, OTHER)
    (request,) = host_config(spec, 4, 8 << 30, devices.of(spec, CARDS), None, BY_CDI)["device_requests"]

    assert (request["Driver"], request["DeviceIDs"]) == ("", [NVIDIAS, OTHER])
    assert docker_facts.environment(spec, {}, BY_CDI)["NVIDIA_VISIBLE_DEVICES"] == f"{NVIDIAS},{OTHER}"


@pytest.mark.parametrize(
    ("info", "cdi", "users"),
    [
        ({"SecurityOptions": ["name=seccomp,profile=default"]}, set(), "without a user namespace"),
        ({"SecurityOptions": ["name=userns"], "DiscoveredDevices": None}, set(), "in a user namespace"),
        (
            {
                "SecurityOptions": ["name=rootless"],
                "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=all"}],
            },
            {"nvidia.com/gpu=all"},
            "in a user namespace",
        ),
        ({"Rootless": True, "SecurityOptions": ["name=seccomp,profile=default"]}, set(), "in a user namespace"),
        ({}, set(), "without a user namespace"),
    ],
)
def test_what_a_daemon_says_of_devices_and_users(info: dict[str, Any], cdi: set[str], users: str) -> None:
    assert docker_daemon.kind_of({}, info, "unix:///x").cdi == cdi
    assert docker_daemon.users_of(info).startswith(users)


@pytest.mark.parametrize("held", ["GPU-0123456789abcdef", "PCI-" + "11" * 16, "PCI-" + "00" * 16])
def test_a_card_to_which_no_file_leads_is_not_given_away_without_it(held: str) -> None:
    with pytest.raises(RuntimeUnavailable, match=held):
        devices.of(holding(held), CARDS)


def test_a_process_sees_its_own_card_by_its_makers_tools(tmp_path: Path) -> None:
    told = environment(holding(NVIDIAS, AMDS), tmp_path, tmp_path, tmp_path, "")
    assert (told["CUDA_VISIBLE_DEVICES"], told["ROCR_VISIBLE_DEVICES"]) == (NVIDIAS, AMDS)
    told = environment(holding(), tmp_path, tmp_path, tmp_path, "")
    assert (told["CUDA_VISIBLE_DEVICES"], told["ROCR_VISIBLE_DEVICES"]) == ("", "")
