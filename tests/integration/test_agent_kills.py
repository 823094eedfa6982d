"""An agent that dies by SIGKILL between any two steps of a creation or a deletion, with real processes and containers.

Each step is tried, until the work is done before it comes; with containers, whose steps are slow, every fourth one from
SEED on, and with TORTURE=1 each. After each death another agent takes over the same folder and is given the same
command again, as Masters do.
"""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.services import need
from tests.support.agent_world import World, creation, deletion, final_receipt, until_done
from tests.support.killed_agent import Life, Nursery, nursery, runtime_of
from tests.support.places import HOST
from tests.support.rental import local_image
from tests.waiting import poll_async
from windrow_agent.runtimes import cgroups
from windrow_agent.runtimes.docker import DEFAULT_URL
from windrow_agent.runtimes.port import Runtime
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.ids import WorkloadId
from windrow_proto.link_memory import MemoryNetwork
from windrow_proto.model import Command
from windrow_proto.units import SECOND

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SEED = int(os.environ.get("SEED") or 0)
STEPS_MIN, STEPS_MAX = 12, 200
"""Fewer, and nothing was counted; more, and nothing ends."""
WORK = ("sh", "-c", "trap 'exit 0' TERM; echo begun; while :; do sleep 0.1; done")


@pytest.fixture(scope="module")
def nest() -> Iterator[Nursery]:
    with nursery() as made:
        yield made


@pytest.fixture(params=["process", pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.long])])
def asked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Command]]:
    """A creation of its own each time."""
    if request.param == "process":
        yield lambda: creation(*WORK)
        return
    need("docker")
    with local_image(tmp_path) as image:

        def container() -> Command:
            made = creation(*WORK)
            assert made.create is not None
            return replace(made, create=replace(made.create, runtime="docker", image=image, may_use_local_image=True))

        yield container


@pytest.fixture
async def lives() -> AsyncIterator[list[Life]]:
    """All of a test; what is left of them at its end is removed."""
    made: list[Life] = []
    yield made
    for life in made:
        async with _runtime(life) as runtime:
            for run in await runtime.list():
                await runtime.remove(run.workload_id)


@pytest.mark.proves("an agent killed between any two steps of a creation: it runs once, is billed and goes")
@pytest.mark.long
async def test_a_creation_survives_the_death_of_its_agent_at_each_step(
    nest: Nursery, asked: Callable[[], Command], lives: list[Life], tmp_path: Path
) -> None:
    for step in _steps(asked()):
        create = asked()
        lives.append(life := _life(tmp_path / str(step), step, create))
        if not nest.lived(life):
            break
        begun = await _ended_by_the_next_one(life, again=create)
        assert begun == 1, f"killed at step {step} it has begun {begun} times"
    assert step > STEPS_MIN


@pytest.mark.long
@pytest.mark.proves("an agent killed between any two steps of a deletion: the next one ends it, with one final receipt")
async def test_a_deletion_survives_the_death_of_its_agent_at_each_step(
    nest: Nursery, asked: Callable[[], Command], lives: list[Life], tmp_path: Path
) -> None:
    for step in _steps(asked()):
        create = asked()
        lives.append(life := _life(tmp_path / str(step), step, create, deletion(create, grace_ns=2 * SECOND)))
        if not nest.lived(life):
            break
        await _ended_by_the_next_one(life)
    assert step > STEPS_MIN


def _steps(create: Command) -> range:
    assert create.create is not None
    stride = 4 if create.create.runtime == "docker" and not os.environ.get("TORTURE") else 1
    return range(1 + SEED % stride, STEPS_MAX, stride)


def _life(folder: Path, step: int, *commands: Command) -> Life:
    folder.mkdir()
    create = commands[0].create
    assert create is not None
    return Life(folder, DEFAULT_URL if create.runtime == "docker" else "", HOST, step, commands)


@asynccontextmanager
async def _runtime(life: Life) -> AsyncIterator[Runtime]:
    made = runtime_of(life.folder, life.url, life.host)
    yield made
    await made.close()


async def _ended_by_the_next_one(life: Life, again: Command | None = None) -> int:
    """The next agent is asked for the same and ends it; nothing is left. Returns how often it began."""
    create = life.commands[0]
    assert create.create is not None
    workload_id, begun = create.create.workload_id, 0
    runtime = runtime_of(life.folder, life.url, life.host)
    async with MemoryNetwork(SystemClock(), SystemRng()) as network:
        world = World(life.folder, network, {runtime.name: runtime})
        await world.open()
        async with world.running():
            if again is not None:
                await world.master.command(again)
                await until_done(world, again)
                begun = await _begun(runtime, workload_id)
            delete = life.commands[-1] if again is None else deletion(create, grace_ns=2 * SECOND)
            await world.master.command(delete)
            await until_done(world, delete)
            final = await final_receipt(world, create)
    async with _runtime(life) as after:
        assert (final.end_reason, await after.observe(workload_id)) == ("deleted", None)
    receipts = world.master.receipts(workload_id)
    last = max(one.number for one in receipts)  # told again, it is the same one
    assert {(one.number, one.running_ns) for one in receipts if one.final} == {(last, final.running_ns)}
    assert not (life.folder / runtime.name / workload_id).exists()
    groups = (folder / f"windrow-{workload_id}" for folder in cgroups.find().folders.values())
    assert [group for group in groups if group.exists()] == []
    return begun


async def _begun(runtime: Runtime, workload_id: WorkloadId) -> int:
    async def said() -> bytes:
        return b"".join([piece async for piece in await runtime.logs(workload_id, 0, False)])

    return (await poll_async(said, what="it says that it has begun")).count(b"begun")
