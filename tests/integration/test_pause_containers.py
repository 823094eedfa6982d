"""Networks made ahead, on a real daemon: who gets one, and that none outlives what it was held for."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from tests.support import truth
from tests.support.containers import holding
from tests.support.containers import host_id as host_id
from tests.support.containers import image as image
from tests.support.containers import runtime as runtime
from tests.support.places import new_id, no_progress
from tests.waiting import poll_async
from windrow_agent.runtimes import docker_pause
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_agent.runtimes.port import RunState
from windrow_proto.ids import ClusterId, HostId, SlotId, WorkloadId
from windrow_proto.model import SlotGrant, WorkloadSpec

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(120)]

SERVES = ("sh", "-c", "trap 'exit 0' TERM; echo served > index.html; httpd -p 8080; sleep 300 & wait")


async def test_a_workload_joins_the_network_that_is_held_and_takes_its_holder_along(
    runtime: DockerRuntime, image: str, host_id: HostId
) -> None:
    first = await _started(runtime, image)
    spare = await _spare(runtime, host_id)
    second = await _started(runtime, image)
    following = await _spare(runtime, host_id)

    (address, port), *_ = await runtime.reach(second, 8080)
    reader, writer = await asyncio.open_connection(address, port)
    writer.write(b"GET /index.html HTTP/1.0\r\n\r\n")
    answer = await reader.read()
    writer.close()
    assert answer.endswith(b"served\n")
    assert _mode(second) == f"container:{spare}" and not _mode(first).startswith("container:")
    assert _shown(spare, "{{.State.Running}} {{.HostConfig.CapDrop}} {{.HostConfig.NetworkMode}}") == (
        "true [ALL] windrow"
    )

    await runtime.remove(second)
    assert _holders(host_id) == [following]


async def test_what_publishes_ports_makes_its_own_network(runtime: DockerRuntime, image: str, host_id: HostId) -> None:
    await _started(runtime, image)
    spare = await _spare(runtime, host_id)
    served = await _started(runtime, image, ports=(8080,))

    run = await runtime.observe(served)
    assert run is not None and run.ports.keys() == {"8080"}
    assert not _mode(served).startswith("container:") and _holders(host_id) == [spare]


@pytest.mark.parametrize("words", [("kill",), ("rm", "-f")])
async def test_a_spare_that_ended_or_was_taken_away_is_done_without(
    runtime: DockerRuntime, image: str, host_id: HostId, words: tuple[str, ...]
) -> None:
    await _started(runtime, image)
    was = await _spare(runtime, host_id)
    _docker(*words, was)
    without = await _started(runtime, image)

    assert not _mode(without).startswith("container:") and await runtime.reach(without, 8080)
    assert await _spare(runtime, host_id) != was and was not in _holders(host_id)


async def test_a_holder_that_ended_before_its_workload_started_runs_again(
    runtime: DockerRuntime, image: str, host_id: HostId
) -> None:
    await _started(runtime, image)
    spare = await _spare(runtime, host_id)
    spec = _spec(image)
    await runtime.prepare(spec, no_progress)
    _docker("kill", spare)
    await runtime.start(spec.workload_id)

    assert _mode(spec.workload_id) == f"container:{spare}" and await runtime.reach(spec.workload_id, 8080)


async def test_the_next_agent_takes_over_what_one_that_was_killed_left(
    runtime: DockerRuntime, image: str, host_id: HostId, tmp_path: Path
) -> None:
    await _started(runtime, image)
    used = await _started(runtime, image) if await _spare(runtime, host_id) else None
    left = await _spare(runtime, host_id)
    stray = _docker("create", "--label", f"{docker_pause.LABEL}={host_id}", image, "true").strip()

    after = holding(tmp_path, host_id)
    joins = await _started(after, image)
    assert used is not None
    assert await _spare(after, host_id) == left
    assert stray not in _holders(host_id)
    await after.remove(used)
    await after.remove(joins)
    await after.close()
    assert _holders(host_id) == []


async def test_who_closes_while_a_network_is_made_leaves_none(image: str, host_id: HostId, tmp_path: Path) -> None:
    made = holding(tmp_path, host_id)
    only = await _started(made, image)
    await made.remove(only)
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(made.pause_containers.tend))
        await made.close()
    assert _holders(host_id) == []


async def _started(runtime: DockerRuntime, image: str, ports: tuple[int, ...] = ()) -> WorkloadId:
    spec = _spec(image, ports)
    await runtime.prepare(spec, no_progress)
    run = await runtime.start(spec.workload_id)
    assert run.state is RunState.RUNNING
    return spec.workload_id


def _spec(image: str, ports: tuple[int, ...] = ()) -> WorkloadSpec:
    slots = (SlotGrant(SlotId("cpu/0"), 7),)
    return WorkloadSpec(
        new_id(), ClusterId("cluster_x"), slots, "docker", image, SERVES, ports=ports, may_use_local_image=True
    )


async def _spare(runtime: DockerRuntime, host_id: HostId) -> str:
    """The one holder that no container joins, once there is one."""
    await poll_async(lambda: runtime.pause_containers.is_ready)
    joined = {_shown(one, "{{.HostConfig.NetworkMode}}") for one in truth.containers(host_id)}
    (found,) = (one for one in _holders(host_id) if f"container:{one}" not in joined)
    return found


def _mode(workload_id: WorkloadId) -> str:
    return _shown(f"windrow-{workload_id}-t7", "{{.HostConfig.NetworkMode}}")


def _holders(host_id: HostId) -> list[str]:
    return truth.containers(host_id, docker_pause.LABEL)


def _shown(container: str, form: str) -> str:
    return _docker("inspect", "--format", form, container).strip()


def _docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True, timeout=60).stdout
