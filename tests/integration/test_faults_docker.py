"""A container daemon that hangs, is restarted or killed under running work, and what a renter does to a host by it.

The daemon is the test's own, in a network of its own; the agent is a whole one with less patience, and its Master a
small one that keeps all that it is told.
"""

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.services import need
from tests.support.agent_world import HOST, World, creation, deletion, final_receipt, until_done
from tests.support.namespaces import namespace, need_networks
from tests.support.own_docker import OwnDocker, own_docker
from tests.support.rental import import_image
from tests.support.tiny_registry import TinyRegistry, tiny_registry
from tests.waiting import poll_async
from windrow_agent.core.image_requirements import Driver
from windrow_agent.runtimes import cgroups, images, port
from windrow_agent.runtimes import docker as docker_runtime
from windrow_agent.runtimes.docker import DockerRuntime
from windrow_agent.workloads import manager
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.ids import CommandId, GpuUuid, SlotId
from windrow_proto.link_memory import MemoryNetwork
from windrow_proto.model import Command, CommandPhase, ObservedWorkload, SlotGrant, WorkloadPhase
from windrow_proto.units import MIB, MILLISECOND, SECOND

pytestmark = [
    *(pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(240)),
    # Docker's library leaves its socket open where nobody answers.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

IMAGE, NEEDY = "windrow-test-faults:local", "windrow-test-needy:local"
OBEDIENT = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done")
DEAF = (*OBEDIENT[:2], "trap '' TERM; while :; do sleep 1; done")
PROCESSES = 200
"""In place of the shipped limit: a bomb is a bomb, and this machine has other things to do."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnDocker]:
    need_networks()
    need("docker")
    need("busybox")
    with namespace() as network, own_docker(network) as made:
        before = os.environ.get("DOCKER_HOST")
        os.environ["DOCKER_HOST"] = made.url
        try:
            folder = tmp_path_factory.mktemp("image")
            import_image(folder, IMAGE)
            made.ask("import", "--change", "ENV NVIDIA_REQUIRE_CUDA=cuda>=12.4", str(folder / "image.tar"), NEEDY)
        finally:
            os.environ.pop("DOCKER_HOST") if before is None else os.environ.update(DOCKER_HOST=before)
        yield made


@pytest.fixture(scope="module")
def registry(daemon: OwnDocker) -> Iterator[TinyRegistry]:
    with tiny_registry(daemon.network) as made:
        yield made


@pytest.fixture
async def world(
    daemon: OwnDocker, registry: TinyRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    """An agent that waits seconds for its daemon where the shipped one waits half a minute."""
    monkeypatch.setattr(docker_runtime, "CALL_S", 6)
    monkeypatch.setattr(cgroups, "PROCESSES_MAX", PROCESSES)
    monkeypatch.setattr(manager, "LOOK_NS", 200 * MILLISECOND)
    runtime = DockerRuntime(tmp_path / "docker", HOST, daemon.url, (registry.address,))
    runtime.driver_of = lambda uuids: Driver("525.147.05", "12.0")
    async with MemoryNetwork(SystemClock(), SystemRng()) as network:
        here = World(tmp_path, network, {"docker": runtime})
        await here.open()
        yield here
    await runtime.close()
    containers, volumes = left(daemon)  # of a test that failed
    for kind, names in (("rm", containers), ("volume", volumes)):
        if names:
            daemon.ask(kind, *(["rm"] if kind == "volume" else []), "--force", *names)
    gc.collect()  # what the library left open is noticed here, where it is known, and in no later test


def asked(*argv: str, image: str = IMAGE, **more: Any) -> Command:
    made = creation(*argv, **more)
    assert made.create is not None
    return replace(made, create=replace(made.create, runtime="docker", image=image, may_use_local_image=True))


def seen(world: World, create: Command) -> ObservedWorkload | None:
    """Returns the last report of this workload to the Master."""
    assert create.create is not None
    told = world.master.observed()
    found = [one for one in told[-1].workloads if one.workload_id == create.create.workload_id] if told else []
    return found[0] if found else None


async def until_seen(world: World, create: Command, phase: WorkloadPhase) -> ObservedWorkload:
    def look() -> ObservedWorkload | None:
        found = seen(world, create)
        return found if found is not None and found.phase is phase else None

    found = await poll_async(look, what=f"it is told to be {phase.name}")
    assert found is not None
    return found


async def running(world: World, create: Command) -> None:
    await world.master.command(create)
    await until_done(world, create)


async def deleted(world: World, create: Command) -> None:
    """Order its end as a Master does: again, until its host says that it is done."""
    for _ in range(10):
        delete = deletion(create, grace_ns=SECOND)
        await world.master.command(delete)
        ends = (CommandPhase.SUCCEEDED, CommandPhase.FAILED)
        await poll_async(lambda: set(ends) & set(world.master.phases(delete.command_id)))  # noqa: B023
        if CommandPhase.SUCCEEDED in world.master.phases(delete.command_id):
            return
    raise AssertionError("it was never deleted")


def left(daemon: OwnDocker) -> tuple[list[str], list[str]]:
    """Containers and volumes that are there."""
    return daemon.ask("ps", "-aq").split(), daemon.ask("volume", "ls", "-q").split()


@pytest.mark.long
@pytest.mark.proves(
    "a container daemon that hangs: what waits for it says so, nothing runs on, the bill ends with the work"
)
async def test_while_the_daemon_hangs_a_creation_fails_with_the_reason_and_an_end_waits_for_it(
    world: World, daemon: OwnDocker
) -> None:
    first, second = asked(*OBEDIENT), asked(*OBEDIENT)
    second = replace(second, create=replace(second.create, slots=(SlotGrant(SlotId("cpu/1"), 1),)))  # type: ignore[type-var]
    async with world.running():
        await running(world, first)
        with daemon.frozen():
            await world.master.command(second)
            status = await until_done(world, second, CommandPhase.FAILED)
            delete = deletion(first, grace_ns=SECOND)
            await world.master.command(delete)
            refused = await until_done(world, delete, CommandPhase.FAILED)
        await deleted(world, first)
        await deleted(world, second)
        final = await final_receipt(world, first)

    assert (status.error_code, refused.error_code) == ("runtime_unavailable", "runtime_unavailable")
    assert "container daemon" in status.error_detail
    assert (final.end_reason, left(daemon)) == ("deleted", ([], []))
    assert first.create is not None and second.create is not None
    receipts = world.master.receipts(first.create.workload_id)
    assert [one.number for one in receipts] == list(range(1, len(receipts) + 1))
    assert world.master.receipts(second.create.workload_id) == []


@pytest.mark.proves("a container daemon that is away holds no slot of work that never reached it, and an end says so")
async def test_while_the_daemon_is_away_what_never_reached_it_ends_and_what_may_run_waits(
    world: World, daemon: OwnDocker
) -> None:
    first, second = asked(*OBEDIENT), asked(*OBEDIENT)
    second = replace(second, create=replace(second.create, slots=(SlotGrant(SlotId("cpu/1"), 1),)))  # type: ignore[type-var]
    waiting, never_made = deletion(first, grace_ns=SECOND), deletion(second, grace_ns=SECOND)

    def told() -> bool:
        return "docker.silent" in world.master.inventories()[-1].conditions

    async with world.running():
        await running(world, first)
        await asyncio.to_thread(daemon.kill)
        await world.master.command(second)
        await until_done(world, second, CommandPhase.FAILED)
        await world.master.command(never_made)
        await until_done(world, never_made)
        gone = await until_seen(world, second, WorkloadPhase.GONE)
        assert not told()
        await world.master.command(waiting)
        await until_done(world, waiting, CommandPhase.FAILED)
        held = await until_seen(world, first, WorkloadPhase.STOPPING)
        await poll_async(told, what="the host says that it waits for its daemon")
        await asyncio.to_thread(daemon.start)
        await deleted(world, first)
        await poll_async(lambda: not told(), what="it waits no more")

    assert gone.slots and held.slots
    assert left(daemon) == ([], [])


@pytest.mark.proves("work whose container daemon is restarted or killed ends by a stated fault of its host")
@pytest.mark.parametrize(
    ("how", "command"),
    [
        pytest.param("stopped", DEAF, marks=pytest.mark.long),
        ("stopped", OBEDIENT),
        pytest.param("killed", DEAF, marks=pytest.mark.long),
    ],
    ids=["stopped", "stopped and it obeyed", "killed"],
)
async def test_a_daemon_that_is_restarted_ends_the_work_by_no_fault_of_its_own(
    world: World, daemon: OwnDocker, how: str, command: tuple[str, ...]
) -> None:
    create = asked(*command)
    async with world.running():
        await running(world, create)
        await asyncio.to_thread(daemon.stop if how == "stopped" else daemon.kill)
        await asyncio.to_thread(daemon.start)
        ended = await until_seen(world, create, WorkloadPhase.EXITED)
        final = await final_receipt(world, create)
        await deleted(world, create)
        again = asked(*OBEDIENT, token=2)
        await running(world, again)
        await deleted(world, again)

    assert (ended.exit_code, ended.detail) == (None, port.ENDED_BY_HOST)
    assert (final.end_reason, final.exit_code) == ("lost", None)
    assert 0 < final.running_ns <= final.at_wall_ns - final.started_wall_ns + SECOND
    assert left(daemon) == ([], [])


@pytest.mark.proves("a container that somebody removes by hand ends with that reason and its last signed second")
async def test_a_container_that_is_removed_by_hand_is_said_to_be(world: World, daemon: OwnDocker) -> None:
    create = asked(*OBEDIENT)
    async with world.running():
        await running(world, create)
        daemon.ask("rm", "--force", *daemon.ask("ps", "-q").split())
        ended = await until_seen(world, create, WorkloadPhase.EXITED)
        final = await final_receipt(world, create)
        await deleted(world, create)

    assert (ended.exit_code, ended.detail) == (
        None,
        "the workload was taken away on its host, by hand or by another program",
    )
    assert (final.end_reason, final.final) == ("lost", True)
    assert left(daemon) == ([], [])


@pytest.mark.proves("a container that takes all memory or processes is stopped at its limit, with the reason")
async def test_a_memory_hog_ends_at_its_limit_and_is_told_so(world: World, daemon: OwnDocker) -> None:
    create = asked("busybox", "tail", "/dev/zero", memory_bytes=64 * MIB)
    async with world.running():
        await running(world, create)
        ended = await until_seen(world, create, WorkloadPhase.EXITED)
        await deleted(world, create)

    assert (ended.exit_code, ended.detail) == (137, "the workload ran out of memory at its limit of 64 MiB")
    assert left(daemon) == ([], [])


async def test_a_fork_bomb_stays_below_its_limit_and_ends_with_its_deletion(world: World, daemon: OwnDocker) -> None:
    bomb = "while :; do sleep 600 & done"  # a shell that cannot fork ends, so another one keeps the container
    create = asked("sh", "-c", f"sh -c '{bomb}'; sleep 600")
    async with world.running():
        await running(world, create)
        (container,) = daemon.ask("ps", "-q").split()
        most = await poll_async(lambda: (n := _processes(daemon, container)) >= PROCESSES - 2 and n)
        await deleted(world, create)

    assert most <= PROCESSES
    assert left(daemon) == ([], [])


def _processes(daemon: OwnDocker, container: str) -> int:
    return len(daemon.ask("top", container, "-eo", "pid").splitlines()) - 1


@pytest.mark.proves("an image that needs a newer GPU driver than its host has is refused before it starts, with both")
async def test_an_image_for_another_driver_is_refused_before_it_starts(world: World, daemon: OwnDocker) -> None:
    create = asked("true", image=NEEDY)
    assert create.create is not None
    create = replace(create, create=replace(create.create, slots=(SlotGrant(SlotId("s"), 1, GpuUuid("GPU-1")),)))
    without = asked("true", image=NEEDY)
    async with world.running():
        await world.master.command(create)
        status = await until_done(world, create, CommandPhase.FAILED)
        assert left(daemon) == ([], [])
        await running(world, without)
        await deleted(world, without)

    assert status.error_code == "workload_failed"
    assert "cuda>=12.4, and this host has driver 525.147.05 with CUDA 12.0" in status.error_detail
    assert CommandId(create.command_id) and world.master.receipts(create.create.workload_id) == []  # type: ignore[union-attr]


@pytest.mark.proves(
    "a pull that is denied, or fills the disk, is a stated failure that leaves nothing and costs nothing"
)
@pytest.mark.parametrize(
    ("is_denying", "size_bytes", "said"),
    [(True, 0, "denied"), (False, 256 * MIB, "no space left on device")],
    ids=["denied", "the disk is full"],
)
async def test_a_pull_that_fails_says_why(
    world: World, daemon: OwnDocker, registry: TinyRegistry, is_denying: bool, size_bytes: int, said: str
) -> None:
    registry.hold(size_bytes)
    registry.is_denying = is_denying
    before = _images(daemon)
    create = asked("true", image=f"{registry.address}/zeros:1")
    async with world.running():
        await world.master.command(create)
        status = await until_done(world, create, CommandPhase.FAILED)

    assert status.error_code == "image_unavailable"
    assert said in status.error_detail and "/zeros:1" in status.error_detail
    assert (left(daemon), _images(daemon)) == (([], []), before)
    assert create.create is not None and world.master.receipts(create.create.workload_id) == []


@pytest.fixture
def stalled(registry: TinyRegistry) -> Iterator[TinyRegistry]:
    """A registry that says which layers an image has, and then gives none."""
    registry.hold(MIB, os.urandom(32))  # another image in each test: the daemon has its layers not yet
    registry.is_denying = False
    registry.goes_on.clear()
    try:
        yield registry
    finally:
        registry.goes_on.set()


@pytest.mark.proves("a registry that gives no more ends a creation in time, and a deletion does not wait for it")
async def test_a_pull_that_does_not_go_on_is_given_up(
    world: World, daemon: OwnDocker, stalled: TinyRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "PULL_SILENCE_S", 2)
    create = asked("true", image=f"{stalled.address}/stalled:1")
    async with world.running():
        await world.master.command(create)
        status = await until_done(world, create, CommandPhase.FAILED)

    assert (status.error_code, stalled.waiting > 0) == ("image_unavailable", True)
    assert "no progress" in status.error_detail and "/stalled:1" in status.error_detail
    assert left(daemon) == ([], [])


async def test_what_is_deleted_while_its_image_comes_is_gone_and_does_not_come_back(
    world: World, daemon: OwnDocker, stalled: TinyRegistry
) -> None:
    create = asked("true", image=f"{stalled.address}/slow:1")
    async with world.running():
        await world.master.command(create)
        await poll_async(lambda: stalled.waiting > 0, what="the daemon asks for the image")
        await deleted(world, create)
        ended = await until_done(world, create, CommandPhase.FAILED)
        assert stalled.waiting > 0, "the deletion waited for the image"
        stalled.goes_on.set()
        again = asked(*OBEDIENT, token=2)
        await running(world, again)
        await deleted(world, again)

    assert ended.error_detail and left(daemon) == ([], [])
    assert create.create is not None and world.master.receipts(create.create.workload_id) == []


def _images(daemon: OwnDocker) -> set[str]:
    """By id; two of one second are told in any order."""
    return set(daemon.ask("images", "-aq").split())


async def test_control_the_same_pull_of_a_small_image_comes_in(
    world: World, daemon: OwnDocker, registry: TinyRegistry
) -> None:
    registry.hold(MIB)
    registry.is_denying = False
    create = asked("true", image=f"{registry.address}/small:1")
    async with world.running():
        await world.master.command(create)
        await until_done(world, create, CommandPhase.SUCCEEDED)
        await deleted(world, create)

    daemon.ask("rmi", f"{registry.address}/small:1")
