"""The contract of containers alone, on a real Docker and on Podman."""

import asyncio
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.master_support import ManualClock
from tests.support.places import (
    CONTAINERS,
    DOCKER,
    HOST,
    IMAGE,
    Place,
    files_of,
    log_of,
    new_id,
    no_progress,
    only,
    run_to_end,
)
from tests.support.rental import import_image
from tests.waiting import poll_async
from windrow_agent.runtimes.docker_facts import container_name, volume_name
from windrow_agent.runtimes.docker_inventory import LOOK_EVERY_NS
from windrow_agent.runtimes.port import Run, RunState
from windrow_proto.errors import WindrowError
from windrow_proto.ids import HostId, WorkloadId
from windrow_proto.units import MIB, SECOND


@only(CONTAINERS)
async def test_a_container_has_the_floor_of_isolation(place: Place):
    spec = place.spec("sh", "-c", "touch /workspace/y && echo own; cat /proc/self/status", memory_bytes=64 * MIB)
    await run_to_end(place, spec)
    log = (await log_of(place, spec.workload_id))[0].decode()
    assert "own" in log
    assert "CapEff:\t0000000000000000" in log
    assert "NoNewPrivs:\t1" in log


FITS = """
set -e
b=/bin/busybox
echo "user $USER $LOGNAME home $HOME unbuffered $PYTHONUNBUFFERED"
for folder in "$HOME" /tmp /workspace; do
    $b mkdir -p "$folder/.cache/models"
    $b cp $b "$folder/.cache/sh"
    "$folder/.cache/sh" -c true
    $b rm -r "$folder/.cache"
    if $b df -T "$folder" | $b grep -q tmpfs; then echo "$folder is memory"; fi
done
$b touch /workspace/written
"""


@only(CONTAINERS)
@pytest.mark.parametrize(
    ("user", "said"),
    [
        ("", "user root root home /root unbuffered 1"),
        ("1234", "user user user home /tmp unbuffered 1"),
        ("1234:5678", "user user user home /tmp unbuffered 1"),
    ],
)
async def test_a_container_is_what_images_expect(place: Place, tmp_path: Path, user: str, said: str):
    name = f"windrow-test-user:{user.replace(':', '-') or 'root'}"
    change = f"USER {user}" if user else ""
    own = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "root/.profile": ""}
    await asyncio.to_thread(import_image, tmp_path / "image", name, own, place.docker_url, change=change)
    try:
        spec = replace(place.spec("sh", "-c", FITS), image=name)
        run = await run_to_end(place, spec)
        log = (await log_of(place, spec.workload_id))[0].decode()
        assert log == f"{said}\n"
        assert run.exit_code == 0
        files = await files_of(place, spec.workload_id, changed_only=True)
        assert files == {"written": b""}
        await place.runtime.remove(spec.workload_id)
        assert await _docker(place, "volume", "ls", "--quiet", "--filter", f"name={spec.workload_id}") == ""
    finally:
        await _docker(place, "rmi", "-f", name)


PROGRAM = 'ENTRYPOINT ["/bin/echo", "EP:"]\nCMD ["own"]\nWORKDIR /app'


@only(CONTAINERS)
@pytest.mark.parametrize(
    ("argv", "entrypoint", "is_with_files", "said"),
    [
        ((), None, False, "EP: own"),
        (("two words", "$HOME"), None, True, "EP: two words $HOME"),
        (("sh", "-c", "echo $0; pwd"), "", False, "sh\n/app"),
        (("sh", "-c", "echo $0; pwd"), "", True, "sh\n/workspace"),
        (("-c", "pwd"), "sh", False, "/app"),
        ((), "hostname", False, "HOST"),
    ],
)
async def test_an_images_entry_point_and_folder_are_honoured(
    place: Place, tmp_path: Path, argv: tuple[str, ...], entrypoint: str | None, is_with_files: bool, said: str
):
    name = "windrow-test-entry:local"
    await asyncio.to_thread(import_image, tmp_path / "image", name, None, place.docker_url, change=PROGRAM)
    try:
        spec = place.spec(*argv, entrypoint=entrypoint, starts_in_workspace=is_with_files)
        spec = replace(spec, image=name)
        run = await run_to_end(place, spec)
        log = (await log_of(place, spec.workload_id))[0].decode()
        container = await _docker(place, "inspect", "-f", "{{.Config.Hostname}}", container_name(spec))
        assert (run.exit_code, log) == (0, said.replace("HOST", container) + "\n")
        await place.runtime.remove(spec.workload_id)
    finally:
        await _docker(place, "rmi", "-f", name)


@only(DOCKER)
async def test_a_program_is_not_process_1_and_ends_by_signals(place: Place):
    killed = place.spec("sh", "-c", "kill -9 $$")
    run = await run_to_end(place, killed)
    assert run.exit_code == 137
    spec = place.spec("sleep", "300")
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    began_s = asyncio.get_running_loop().time()
    await place.runtime.stop(spec.workload_id, 60 * SECOND)
    assert asyncio.get_running_loop().time() - began_s < 30, "it heeds SIGTERM"


@only(CONTAINERS)
async def test_containers_of_others_are_never_touched(place: Place):
    limits = ("--ulimit", "nofile=1024", "--ulimit", "nproc=1024")  # Podman's own defaults need more rights
    foreign = await _docker(place, "run", "-d", "--network", "none", *limits, IMAGE, "sleep", "300")
    try:
        stranger = place.of(HostId("host_" + "0" * 31 + "2"))
        spec = place.spec()
        await stranger.prepare(spec, no_progress)
        assert await place.runtime.list() == ()
        assert await place.runtime.observe(spec.workload_id) is None
        await place.runtime.remove(spec.workload_id)
        assert len(await stranger.list()) == 1
        await stranger.remove(spec.workload_id)
        await stranger.close()
        assert await _docker(place, "inspect", "-f", "{{.State.Running}}", foreign) == "true"
    finally:
        await _docker(place, "rm", "-f", foreign)


@only(CONTAINERS)
async def test_a_volume_whose_container_never_came_is_found_and_goes(place: Place):
    workload_id, name = await _bare_volume(place)
    fresh = place.again()  # that has asked the daemon for nothing yet
    (run,) = await fresh.list()
    assert (run.workload_id, run.cluster_id, run.state) == (workload_id, "cluster_x", RunState.CREATED)
    await fresh.remove(workload_id)
    assert await fresh.list() == ()
    assert await _docker(place, "volume", "ls", "--quiet", "--filter", f"name={name}") == ""
    await fresh.close()


@only(CONTAINERS)
@pytest.mark.parametrize("has_container", [False, True])
async def test_volumes_are_looked_at_after_a_start_and_then_seldom(place: Place, has_container: bool):
    fresh = place.of(HOST)
    fresh.clock = clock = ManualClock()
    if has_container:
        await fresh.prepare(place.spec("true"), no_progress)
    own = {run.workload_id for run in await fresh.list()}
    assert len(own) == has_container

    async def bare() -> set[WorkloadId]:
        return {run.workload_id for run in await fresh.list()} - own

    workload_id, _ = await _bare_volume(place)
    assert await bare() == set()
    clock.advance(LOOK_EVERY_NS)
    assert await bare() == {workload_id} == await bare()
    await fresh.remove(workload_id)
    assert await bare() == set()
    await fresh.close()


@only(DOCKER)
@pytest.mark.parametrize(
    ("ended", "state", "code"),
    [("by itself", RunState.EXITED, 137), ("by its agent", RunState.EXITED, 137), ("by hand", RunState.LOST, None)],
)
async def test_an_end_is_its_own_unless_its_host_brought_it_about(
    place: Place, ended: str, state: RunState, code: int | None
):
    spec = place.spec("sh", "-c", "exit 137" if ended == "by itself" else "sleep 300")
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    if ended == "by its agent":
        await place.runtime.stop(spec.workload_id, 0)
    elif ended == "by hand":
        await _docker(place, "kill", container_name(spec))

    async def over() -> Run | None:
        run = await place.runtime.observe(spec.workload_id)
        return run if run is not None and run.state is not RunState.RUNNING else None

    seen = (await poll_async(over), await place.again().observe(spec.workload_id))
    assert [(one.state, one.exit_code) for one in seen if one] == [(state, code)] * 2


@only(CONTAINERS)
async def test_ports_are_published_on_the_loopback_only(place: Place):
    spec = place.spec("sleep", "300", ports=(8080,))
    await place.runtime.prepare(spec, no_progress)
    run = await place.runtime.start(spec.workload_id)
    assert run.ports["8080"] > 1024


@only(CONTAINERS)
@pytest.mark.parametrize("lacks", ["its image", "a free name", "a network to join"])
async def test_what_cannot_be_created_leaves_no_volume(place: Place, lacks: str):
    spec, foreign = place.spec("echo"), ""
    if lacks == "its image":
        spec = replace(spec, image="missing.invalid/none:1")
    elif lacks == "a free name":
        foreign = await _docker(place, "create", "--network", "none", "--name", container_name(spec), IMAGE, "true")
    else:
        spec = replace(spec, peers=("10.0.0.2",))
    try:
        with pytest.raises(WindrowError):
            await place.runtime.prepare(spec, no_progress)
        assert await _docker(place, "volume", "ls", "--quiet", "--filter", f"name={spec.workload_id}") == ""
    finally:
        if foreign:
            await _docker(place, "rm", foreign)


async def _bare_volume(place: Place) -> tuple[WorkloadId, str]:
    """As is left of a workload whose container never came: its id, the volume's name."""
    workload_id = new_id()
    labels = {"windrow.host": HOST, "windrow.cluster": "cluster_x", "windrow.workload": workload_id}
    marks = [f"--label={key}={value}" for key, value in labels.items()]
    return workload_id, await _docker(place, "volume", "create", *marks, volume_name(workload_id))


async def _docker(place: Place, *words: str) -> str:
    own = os.environ | {"DOCKER_HOST": place.docker_url}
    done = await asyncio.to_thread(
        subprocess.run, ["docker", *words], check=True, capture_output=True, text=True, timeout=60, env=own
    )
    return done.stdout.strip()
