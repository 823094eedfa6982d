"""GPUs of a real container, as the container itself sees them."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.services import need
from tests.support.places import Place, no_progress
from tests.support.rental import local_image
from tests.waiting import poll_async
from windrow_agent.core import gpu_visibility
from windrow_agent.workloads import gpu_visibility_check
from windrow_agent.workloads.gpu_visibility_check import said
from windrow_proto.model import WorkloadSpec
from windrow_proto.units import SECOND

pytestmark = [pytest.mark.docker, pytest.mark.proves("a container that lost its GPUs is seen from inside it")]

GPU = "GPU-1a0b1c2d-1111-2222-3333-444455556666"
PROGRAM = f"""#!/bin/sh
case "$(cat /workspace/state)" in
sound) echo "GPU 0: NVIDIA H100 (UUID: {GPU})" ;;
stripped) echo "Failed to initialize NVML: Unknown Error"; exit 255 ;;
hung) sleep 600 ;;
esac
"""
"""As the driver's own program speaks; that it is a script is what this machine without a GPU can have."""


@pytest.fixture
async def place(image: str, tmp_path: Path) -> AsyncIterator[Place]:
    made = Place("docker", tmp_path)
    try:
        yield made
    finally:
        for run in await made.runtime.list():
            await made.runtime.remove(run.workload_id)
        await made.runtime.close()


@pytest.fixture
def image(tmp_path: Path) -> Iterator[str]:
    need("docker")
    need("busybox")
    with local_image(tmp_path / "image", {"usr/bin/nvidia-smi": PROGRAM}) as name:
        yield name


async def started(place: Place, state: str, image: str) -> WorkloadSpec:
    spec = place.spec("sh", "-c", f"echo {state} >/workspace/state; sleep 600")
    spec = replace(spec, image=image)
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    return spec


async def heard(place: Place, spec: WorkloadSpec, expected: object) -> None:
    """Until that is what is found; its state may be written a moment after its start."""

    async def is_so() -> bool:
        answer = await said(place.runtime, spec.workload_id)
        return answer == expected or gpu_visibility.missing(*answer, {GPU}) == expected

    await poll_async(is_so, what=str(expected))


@pytest.mark.parametrize(
    ("state", "expected"), [("sound", frozenset()), ("stripped", frozenset({GPU})), ("hung", (None, ""))]
)
async def test_a_container_says_which_gpus_it_can_open(
    place: Place, image: str, state: str, expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_visibility_check, "ANSWER_NS", 2 * SECOND)
    spec = await started(place, state, image)
    await heard(place, spec, expected)


async def test_a_container_without_the_drivers_program_says_nothing(place: Place, tmp_path: Path) -> None:
    with local_image(tmp_path / "plain") as plain:
        spec = await started(place, "sound", plain)
        code, words = await said(place.runtime, spec.workload_id)
        assert code in gpu_visibility.CANNOT_RUN, words
        await place.runtime.remove(spec.workload_id)
