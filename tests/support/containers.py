"""Containers of a test's own on this machine's Docker: an image made here, a runtime that removes all that it ran."""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.services import need
from tests.support import truth
from tests.support.rental import local_image
from windrow_agent.runtimes import docker_pause
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_proto.ids import HostId


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of one static binary, removed at the end."""
    need("docker")
    need("busybox")
    with local_image(tmp_path_factory.mktemp("image")) as name:
        yield name


@pytest.fixture
def host_id() -> HostId:
    """Of a host of the test's own: what carries its mark is the test's."""
    return HostId(f"host_{uuid.uuid4().hex}")


@pytest.fixture
async def runtime(tmp_path: Path, host_id: HostId) -> AsyncIterator[DockerRuntime]:
    """One that holds a network ahead. Whatever the test leaves running is removed, and nothing of it stays."""
    made = holding(tmp_path, host_id)
    try:
        yield made
    finally:
        for run in await made.list():
            await made.remove(run.workload_id)
        await made.close()
    assert left(host_id) == []


def holding(folder: Path, host_id: HostId) -> DockerRuntime:
    """A runtime that holds a network ahead once its first container runs."""
    made = DockerRuntime(folder / "docker", host_id)
    made.pause_containers.is_wanted = True
    return made


def left(host_id: str) -> list[str]:
    """The containers, holders of networks and volumes of a host that are there."""
    return truth.containers(host_id) + truth.containers(host_id, docker_pause.LABEL) + truth.volumes(host_id)
