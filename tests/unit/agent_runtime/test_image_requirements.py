"""Images are refused by hosts whose driver they do not fit, before anything starts."""

import pytest

from windrow_agent.core.gpu_port import GpuInventory
from windrow_agent.core.image_requirements import Driver, driver_of, refusal
from windrow_agent.runtimes import docker_facts
from windrow_proto.errors import WorkloadFailed
from windrow_proto.ids import ClusterId, GpuUuid, SlotId, WorkloadId
from windrow_proto.model import GpuFacts, GpuSlice, Isolation, SlotGrant, WorkloadSpec

OLD = Driver("525.147.05", "12.0", ("8.0",))
NEW = Driver("550.54.15", "12.4", ("8.9",))
NGC = (
    "NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla,driver>=470,driver<471 brand=tesla,driver>=525,driver<526 "
    "brand=geforce,driver>=470,driver<471"
)


@pytest.mark.parametrize(
    ("env", "driver", "is_refused"),
    [
        (["NVIDIA_REQUIRE_CUDA=cuda>=12.4"], OLD, True),
        (["NVIDIA_REQUIRE_CUDA=cuda>=12.4"], NEW, False),
        (["NVIDIA_REQUIRE_CUDA=cuda>=11.8"], OLD, False),
        (["NVIDIA_REQUIRE_CUDA=cuda>12.4"], NEW, True),
        (["NVIDIA_REQUIRE_CUDA=cuda>=12"], OLD, False),
        (["NVIDIA_REQUIRE_CUDA=cuda>=12.4.1"], NEW, True),
        # One of the alternatives is enough: this driver of a data centre's card runs newer minor versions.
        ([NGC], OLD, False),
        ([NGC], Driver("515.105.01", "11.7"), True),
        (["NVIDIA_REQUIRE_CUDA=cuda>=12.0", "NVIDIA_REQUIRE_ARCH=arch>=8.9"], OLD, True),
        (["NVIDIA_REQUIRE_CUDA=cuda>=12.0", "NVIDIA_REQUIRE_ARCH=arch>=8.9"], NEW, False),
        (["NVIDIA_REQUIRE_CUDA=cuda>=12.0", "NVIDIA_REQUIRE_DRIVER=driver>=550"], OLD, True),
        (["CUDA_VERSION=12.4.1"], OLD, True),
        (["CUDA_VERSION=11.8.0"], OLD, False),
        # The requirement has the word where both are there.
        (["CUDA_VERSION=12.4.1", "NVIDIA_REQUIRE_CUDA=cuda>=12.0"], OLD, False),
        (["NVIDIA_REQUIRE_CUDA=cuda>=12.4", "NVIDIA_DISABLE_REQUIRE=1"], OLD, False),
        # What the host does not know, or nobody can read, refuses nothing.
        (["NVIDIA_REQUIRE_CUDA=cuda>=12.4"], Driver(), False),
        (["NVIDIA_REQUIRE_CUDA=brand=grid"], OLD, False),
        (["NVIDIA_REQUIRE_CUDA=" + "?" * 5000], OLD, False),
        (["NVIDIA_REQUIRE_CUDA="], OLD, False),
        ([], OLD, False),
    ],
)
def test_an_image_is_refused_where_its_driver_is_not(env: list[str], driver: Driver, is_refused: bool) -> None:
    assert bool(refusal({"Env": env}, {}, driver)) is is_refused


def test_the_reason_names_what_is_asked_and_what_is_there() -> None:
    said = refusal({"Env": ["NVIDIA_REQUIRE_CUDA=cuda>=12.4"]}, {}, OLD)
    assert said == "the image asks for cuda>=12.4, and this host has driver 525.147.05 with CUDA 12.0"


def test_a_label_counts_where_the_environment_says_nothing() -> None:
    assert "cuda>=12.4" in refusal({"Labels": {"com.nvidia.cuda.version": "12.4.1"}, "Env": None}, {}, OLD)


def test_the_renter_has_the_last_word() -> None:
    image = {"Env": ["NVIDIA_REQUIRE_CUDA=cuda>=12.4"]}
    assert refusal(image, {"NVIDIA_DISABLE_REQUIRE": "true"}, OLD) == ""
    assert "cuda>=13" in refusal(image, {"NVIDIA_REQUIRE_CUDA": "cuda>=13"}, NEW)


def test_a_slice_is_judged_by_its_card() -> None:
    part = GpuSlice(GpuUuid("MIG-1"), "1g.10gb", Isolation.MIG, 10 << 30, 1)
    more = {"compute_capability_major": 9, "compute_capability_minor": 0}
    cards = (
        GpuFacts(GpuUuid("GPU-1"), 0, "nvidia", "H100", slices=(part,), **more),  # type: ignore[arg-type]
        GpuFacts(GpuUuid("GPU-2"), 1, "nvidia", "T4", compute_capability_major=7, compute_capability_minor=5),
    )
    found = GpuInventory(cards, "550.54.15", "12.4")
    assert driver_of(frozenset({"MIG-1"}), found) == Driver("550.54.15", "12.4", ("9.0",))
    assert driver_of(frozenset({"GPU-1", "GPU-2"}), found).capabilities == ("9.0", "7.5")


def test_only_who_rents_a_card_is_refused() -> None:
    image = {"Config": {"Env": ["NVIDIA_REQUIRE_CUDA=cuda>=12.4"]}}

    def spec(uuid: str) -> WorkloadSpec:
        slots = (SlotGrant(SlotId("s"), 1, GpuUuid(uuid)),)
        return WorkloadSpec(WorkloadId("work_1"), ClusterId("c"), slots, "docker", "cuda:12.4")

    docker_facts.check_driver(spec(""), image, lambda uuids: OLD)
    docker_facts.check_driver(spec("GPU-1"), None, lambda uuids: OLD)
    with pytest.raises(WorkloadFailed, match=r"'cuda:12\.4' does not fit this host: the image asks for cuda>=12.4"):
        docker_facts.check_driver(spec("GPU-1"), image, lambda uuids: OLD)
