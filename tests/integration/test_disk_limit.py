"""A container that fills its host's disk is ended, and its renter is told why."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.services import need
from tests.support.agent_world import HOST, creation
from tests.support.places import no_progress
from tests.support.rental import local_image
from tests.waiting import poll_async
from windrow_agent.runtimes import docker_disk
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_agent.runtimes.port import Run, RunState
from windrow_proto.clock import SystemClock
from windrow_proto.model import WorkloadSpec
from windrow_proto.units import MIB, SECOND
from windrow_proto.volumes import Mount

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(180)]

LIMIT = 8 * MIB
WHOLE = 4 * LIMIT // MIB
DATA = (Mount("data", "/data"),)
FILL = "dd if=/dev/zero of=/{folder}/full bs=1048576 count={size} 2>/dev/null; exec sleep 600"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need("docker")
    with local_image(tmp_path_factory.mktemp("image")) as name:
        yield name


@pytest.fixture
async def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DockerRuntime]:
    monkeypatch.setattr(docker_disk, "share", lambda root: LIMIT)
    monkeypatch.setattr(docker_disk, "LOOK_EVERY_NS", SECOND)
    made = DockerRuntime(tmp_path / "docker", HOST)
    yield made
    await made.close()


async def until(runtime: DockerRuntime, spec: WorkloadSpec, clock: SystemClock) -> Run:
    """Watch it as the keeper does, until it has ended."""

    async def look() -> list[Run]:
        await runtime.pause(spec.workload_id, clock)
        run = await runtime.observe(spec.workload_id)
        return [run] if run is not None and run.state is RunState.EXITED else []

    return (await poll_async(look, 60, "it has ended"))[0]


@pytest.mark.proves("a container that fills the disk is ended with that reason; its neighbour goes on")
async def test_who_fills_more_than_their_share_is_ended_and_told_so(runtime: DockerRuntime, image: str) -> None:
    full, beside, fair = (
        replace(made, runtime="docker", image=image, volumes=volumes, may_use_local_image=True)
        for folder, size, volumes in (("workspace", WHOLE, ()), ("data", WHOLE, DATA), ("data", 1, DATA))
        if (made := creation("sh", "-c", FILL.format(folder=folder, size=size)).create) is not None
    )
    try:
        for spec in (full, beside, fair):
            await runtime.prepare(spec, no_progress)
            await runtime.start(spec.workload_id)

        run = await until(runtime, full, SystemClock())
        in_volume = await until(runtime, beside, SystemClock())
        other = await runtime.observe(fair.workload_id)

        assert run.detail == "it filled its disk: 32 MiB in /workspace where 8 MiB may be"
        assert in_volume.detail == "it filled its disk: 32 MiB in /workspace and its volumes where 8 MiB may be"
        assert run.exit_code == in_volume.exit_code == 137
        assert other is not None and other.state is RunState.RUNNING
    finally:
        for spec in (full, beside, fair):
            await runtime.remove(spec.workload_id)
