"""A container that fills its host's disk is ended, and its renter is told why."""

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.master_support import ManualClock
from tests.services import need
from tests.support.agent_world import HOST, creation
from tests.support.namespaces import need_networks
from tests.support.own_podman import own_podman
from tests.support.places import IMAGE, no_progress
from tests.support.rental import import_image
from tests.waiting import poll_async
from windrow_agent.runtimes import docker_disk, docker_facts
from windrow_agent.runtimes.docker import DEFAULT_URL, DockerRuntime
from windrow_agent.runtimes.port import Run, RunState
from windrow_proto.clock import SystemClock
from windrow_proto.model import WorkloadSpec
from windrow_proto.units import MIB, SECOND
from windrow_proto.volumes import Mount

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(180)]

LIMIT = 8 * MIB
WHOLE = 4 * LIMIT // MIB
FILES = 2_000
DATA = (Mount("data", "/data"),)
WHERE = "its root, /tmp and /workspace"
FILL = "dd if=/dev/zero of=/{folder}/full bs=1048576 count={size} 2>/dev/null; exec sleep 600"


@pytest.fixture(scope="module", params=["docker", pytest.param("podman", marks=pytest.mark.long)])
def daemon(request: pytest.FixtureRequest) -> Iterator[str]:
    """Returns the address of a daemon of this kind."""
    need("docker")
    if request.param == "docker":
        yield DEFAULT_URL
        return
    need("podman")
    need_networks()
    with own_podman() as url:
        yield url


@pytest.fixture(scope="module")
def image(daemon: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    import_image(tmp_path_factory.mktemp("image"), IMAGE, docker_url=daemon)
    return IMAGE


@pytest.fixture
async def runtime(daemon: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DockerRuntime]:
    monkeypatch.setattr(docker_disk, "share", lambda root: LIMIT)
    monkeypatch.setattr(docker_disk, "share_of_files", lambda root: FILES)
    monkeypatch.setattr(docker_disk, "LOOK_EVERY_NS", SECOND)
    made = DockerRuntime(tmp_path / "docker", HOST, daemon)
    yield made
    await made.close()


async def until(runtime: DockerRuntime, spec: WorkloadSpec, clock: SystemClock) -> Run:
    """Watch it as the manager of workloads does, until it has ended."""

    async def look() -> list[Run]:
        await runtime.pause(spec.workload_id, clock)
        run = await runtime.observe(spec.workload_id)
        return [run] if run is not None and run.state is RunState.EXITED else []

    return (await poll_async(look, 60, "it has ended"))[0]


@pytest.mark.proves("a container that fills the disk is ended with that reason; its neighbour goes on")
async def test_who_fills_more_than_their_share_is_ended_and_told_so(runtime: DockerRuntime, image: str) -> None:
    full, beside, below, fair = (
        replace(made, runtime="docker", image=image, volumes=volumes, may_use_local_image=True)
        for folder, size, volumes in (
            *(("workspace", WHOLE, ()), ("data", WHOLE, DATA), ("etc", WHOLE, ()), ("data", 1, DATA)),
        )
        if (made := creation("sh", "-c", FILL.format(folder=folder, size=size)).create) is not None
    )
    try:
        for spec in (full, beside, below, fair):
            await runtime.prepare(spec, no_progress)
            await runtime.start(spec.workload_id)

        run = await until(runtime, full, SystemClock())
        in_volume = await until(runtime, beside, SystemClock())
        in_root = await until(runtime, below, SystemClock())
        other = await runtime.observe(fair.workload_id)

        assert run.detail == f"the workload filled its disk: 32 MiB in {WHERE} where 8 MiB may be"
        assert in_root.detail == run.detail
        assert in_volume.detail == f"the workload filled its disk: 32 MiB in {WHERE} and its volumes where 8 MiB may be"
        assert run.exit_code == in_volume.exit_code == in_root.exit_code == 137
        assert other is not None and other.state is RunState.RUNNING
    finally:
        for spec in (full, beside, below, fair):
            await runtime.remove(spec.workload_id)


TOUCH = "cd /{folder}; i=0; while [ $i -lt 4000 ]; do : > f$i; i=$((i+1)); done; exec sleep 600"
NEST = (
    "cd /workspace; i=0; while [ $i -lt {depth} ]; do mkdir {name}; cd -P {name}; i=$((i+1)); done; "
    "dd if=/dev/zero of=full bs=1048576 count=32; exec sleep 600"
)


@pytest.mark.proves("a container that makes files without end is ended with that reason")
@pytest.mark.parametrize(
    ("script", "words"),
    [
        (TOUCH.replace("{folder}", "workspace"), f"the workload made too many files: more than 2000 in {WHERE}"),
        pytest.param(
            TOUCH.replace("{folder}", "etc"),
            f"the workload made too many files: more than 2000 in {WHERE}",
            marks=pytest.mark.long,
        ),
        pytest.param(
            NEST.format(name="$(printf %0200d 0)", depth=30),
            f"the workload filled its disk: 32 MiB in {WHERE} where 8 MiB may be",
            marks=pytest.mark.long,
        ),
        pytest.param(
            NEST.format(name="d", depth=4000),
            f"the disk of the workload cannot be measured: folders in {WHERE} are nested too deep",
            marks=pytest.mark.long,
        ),
    ],
    ids=["files", "files in its root", "a path too long for the daemon", "folders without end"],
)
async def test_who_takes_what_is_not_counted_in_bytes_is_ended(
    runtime: DockerRuntime, image: str, script: str, words: str
) -> None:
    spec = asked(image, script)
    try:
        await runtime.prepare(spec, no_progress)
        await runtime.start(spec.workload_id)
        assert (await until(runtime, spec, SystemClock())).detail == words
    finally:
        await runtime.remove(spec.workload_id)


@pytest.mark.long
async def test_volumes_that_an_image_declares_count_and_go_with_the_container(
    daemon: str, runtime: DockerRuntime, image: str, tmp_path: Path
) -> None:
    def told(*words: str) -> str:
        own = os.environ | {"DOCKER_HOST": daemon}
        return subprocess.run(
            ["docker", *words], check=True, capture_output=True, text=True, timeout=60, env=own
        ).stdout

    declaring, mounted = f"{image}-declaring", "{{range .Mounts}}{{.Name}} {{end}}"
    made = told("create", "--network", "none", image, "true").strip()
    told("export", "--output", str(tmp_path / "image.tar"), made)
    told("import", "--change", "VOLUME /extra", str(tmp_path / "image.tar"), declaring)
    told("rm", made)
    spec = asked(declaring, FILL.format(folder="extra", size=WHOLE))
    try:
        await runtime.prepare(spec, no_progress)
        await runtime.start(spec.workload_id)
        (container,) = told("ps", "--quiet", "--filter", f"name={spec.workload_id}").split()
        own = set(told("inspect", "--format", mounted, container).split())
        assert len(own) == 3, "its workspace, its /tmp and /extra"
        words = f"the workload filled its disk: 32 MiB in {WHERE} and its volumes where 8 MiB may be"
        assert (await until(runtime, spec, SystemClock())).detail == words
    finally:
        await runtime.remove(spec.workload_id)
        told("rmi", declaring)
    assert not own & set(told("volume", "ls", "--quiet").split())


def asked(image: str, script: str) -> WorkloadSpec:
    created = creation("sh", "-c", script).create
    assert created is not None
    return replace(created, runtime="docker", image=image, may_use_local_image=True)


def test_a_disk_that_fills_fast_is_looked_at_sooner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, free = ManualClock(), docker_disk.FreeSpace(80, 8000)
    monkeypatch.setattr(docker_disk, "free_space", lambda root: free)
    watch = docker_disk.DiskWatch(tmp_path, HOST, "", lambda: "/")
    assert not watch.is_due(clock)
    clock.advance(docker_disk.LOOK_AGAIN_NS)
    assert not watch.is_due(clock), "nothing is gone"
    for less in (docker_disk.FreeSpace(60, 8000), docker_disk.FreeSpace(60, 6000)):
        free = less
        assert watch.is_due(clock)
        assert not watch.is_due(clock)
        clock.advance(docker_disk.LOOK_AGAIN_NS)
    clock.advance(docker_disk.LOOK_EVERY_NS)
    assert watch.is_due(clock)


class Silent:
    """A daemon with one container, whose volume lies here."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def volumes(self) -> dict[str, Any]:
        return {"Volumes": [{"Name": "one", "Mountpoint": str(self.place)}]}

    def containers(self, **_: Any) -> list[dict[str, Any]]:
        labels = {docker_facts.WORKLOAD: "workload_1", docker_facts.DISK: str(LIMIT), docker_facts.FILES: "0"}
        return [{"Id": "container", "Labels": labels, "Mounts": [{"Name": "one"}]}]


def test_a_daemon_that_does_not_measure_leaves_no_disk_unwatched_and_each_file_counts_once(tmp_path: Path) -> None:
    place, ended = tmp_path / "volume", list[str]()
    place.mkdir()
    (tmp_path / "workload_1").mkdir()
    (place / "package").write_bytes(bytes(LIMIT * 3 // 4))
    for number in range(3):
        (place / f"linked-{number}").hardlink_to(place / "package")
    watch = docker_disk.DiskWatch(tmp_path, HOST, f"unix://{tmp_path}/nobody", lambda: "/")

    watch.look(Silent(place), lambda _, container: ended.append(container))
    assert not ended

    (place / "more").write_bytes(bytes(LIMIT // 2))
    watch.look(Silent(place), lambda _, container: ended.append(container))
    assert ended == ["container"]
    assert docker_disk.note_of(tmp_path / "workload_1").startswith("the workload filled its disk: 10 MiB")
