"""Programs that share a card by MPS: a real daemon process for each card, from the first lease to the last."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.build import fake_nvml as fake_nvml
from tests.services import need
from tests.support import truth
from tests.support.agent_world import HOST
from tests.support.fake_mps import installed
from tests.support.health_world import watched_host
from tests.waiting import poll_async
from windrow_agent.core.sharing import Share, parse_shares
from windrow_agent.runtimes import mps
from windrow_agent.runtimes.mps import NvidiaMps
from windrow_agent.runtimes.port import RunState
from windrow_agent.runtimes.process_mps import MpsProcessRuntime
from windrow_master.fleet.repository import SlotRepository
from windrow_proto.errors import Conflict, RuntimeUnavailable
from windrow_proto.ids import ClusterId, GpuUuid, SlotId, WorkloadId
from windrow_proto.model import GpuFacts, GpuSlice, Isolation, SlotGrant, WorkloadSpec
from windrow_proto.units import MIB

pytestmark = pytest.mark.proves("a card shared by MPS, with a program in the place of NVIDIA's control daemon")

CARD, OTHER = GpuUuid("GPU-1"), GpuUuid("GPU-2")
PARTS = {
    "MPS-1-1": Share(CARD, 50, 1000 * MIB),
    "MPS-1-2": Share(CARD, 25, 500 * MIB),
    "MPS-2-1": Share(OTHER, 100, 800 * MIB),
}


CARDS = tuple(
    GpuFacts(
        *(card, index, "nvidia", "NVIDIA H100"),
        device_minor=index,
        slices=tuple(
            GpuSlice(GpuUuid(name), f"mps.{one.percent}", Isolation.MPS, one.memory_bytes, one.percent)
            for name, one in PARTS.items()
            if one.card == card
        ),
    )
    for index, card in enumerate((CARD, OTHER))
)
CLIENT = """
import os, socket
with socket.socket(socket.AF_UNIX) as daemon:
    os.chdir(os.environ["CUDA_MPS_PIPE_DIRECTORY"])
    daemon.connect("control")
    daemon.sendall(b"connect")
    print(daemon.recv(99).decode(), flush=True)
"""


class Host:
    def __init__(self, folder: Path, *, has_sandbox: bool = False) -> None:
        self.folder, self.program, self.has_sandbox = folder, installed(folder / "program"), has_sandbox
        self.runtime = self.again()

    def again(self) -> MpsProcessRuntime:
        """The runtime of a restarted agent over the same folders."""
        return MpsProcessRuntime(
            *(self.folder / "process", self.folder, HOST, self.has_sandbox, (), lambda: CARDS),
            share_of=PARTS.get,
            control=NvidiaMps(str(self.program)),
        )

    async def start(self, name: str, part: str, *argv: str) -> WorkloadId:
        slots = (SlotGrant(SlotId(part), 1, GpuUuid(part), Isolation.MPS),)
        work = WorkloadId(name)
        env = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100"}  # what a tenant would rather have
        spec = WorkloadSpec(work, ClusterId("cluster_1"), slots, "process", argv=argv or ("sleep", "600"), env=env)
        await self.runtime.prepare(spec, lambda *_, **__: None)
        await self.runtime.start(work)
        return work

    def daemon(self, card: str = CARD) -> int:
        """The pid of a card's daemon; 0: there is none."""
        if not self.runtime.daemons.is_alive(card):
            return 0
        return int(json.loads((self.runtime.daemons.folders(card).root / mps.NOTE).read_bytes())["pid"])


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Host]:
    monkeypatch.setattr(mps, "AGAIN_S", 0.0)
    made = Host(tmp_path)
    yield made
    for run in await made.runtime.list():
        await made.runtime.remove(run.workload_id)


async def test_a_program_is_told_its_limits_and_nothing_it_sets_itself_raises_them(host: Host):
    work = await host.start("work_a", "MPS-1-1", "sh", "-c", "env; sleep 600")
    log = host.folder / "process" / work / "log"

    async def told() -> bool:
        return b"CUDA_MPS_PINNED" in log.read_bytes()

    await poll_async(told, what="the environment")
    told_of = dict(line.split("=", 1) for line in log.read_text().splitlines() if line.startswith("CUDA_"))
    assert told_of["CUDA_VISIBLE_DEVICES"] == CARD
    assert told_of["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "50"
    assert told_of["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=1000M"
    assert told_of["CUDA_MPS_PIPE_DIRECTORY"] == str(host.runtime.daemons.folders(CARD).pipe)
    started = json.loads((host.runtime.daemons.folders(CARD).log / "started.json").read_text())
    assert started["CUDA_VISIBLE_DEVICES"] == CARD, "the daemon serves this card and no other"
    assert "HOME" not in started, "and inherits nothing of the agent's"


@pytest.mark.parametrize("has_sandbox", [False, True])
async def test_a_server_that_is_its_clients_user_finds_the_daemon(tmp_path: Path, has_sandbox: bool):
    if has_sandbox:
        need("bubblewrap")
    (tmp_path / "agent").mkdir(mode=0o700)  # as the agent's data directory is
    host = Host(tmp_path / "agent", has_sandbox=has_sandbox)
    work = await host.start("work_a", "MPS-1-1", "python3", "-c", CLIENT)
    log = host.folder / "process" / work / "log"
    try:
        await poll_async(lambda: log.read_text() == "served\n\n", what="a server's answer")
        met = host.runtime.daemons.folders(CARD).root
    finally:
        await host.runtime.remove(work)
    assert not met.exists() and not met.parent.exists(), "nothing is left"


async def test_parts_of_one_card_have_one_daemon_and_it_ends_with_the_last_lease(host: Host):
    first = await host.start("work_a", "MPS-1-1")
    pid = host.daemon()
    second = await host.start("work_b", "MPS-1-2")
    third = await host.start("work_c", "MPS-2-1")
    assert pid and host.daemon() == pid != host.daemon(OTHER) != 0
    await host.runtime.remove(first)
    assert host.daemon() == pid
    await host.runtime.remove(second)
    assert (host.daemon(), host.runtime.daemons.folders(CARD).root.exists()) == (0, False)
    assert host.daemon(OTHER)
    await host.runtime.remove(third)
    assert not host.daemon(OTHER)


async def test_a_daemon_that_died_is_started_again_while_its_card_is_leased(host: Host):
    work = await host.start("work_a", "MPS-1-1")
    pid = host.daemon()
    os.killpg(pid, signal.SIGKILL)

    async def is_back() -> bool:
        run = await host.runtime.observe(work)
        assert run is not None
        assert run.state is RunState.RUNNING
        return host.daemon() not in (0, pid)

    await poll_async(is_back, what="another daemon")


async def test_a_daemon_that_does_not_start_starts_no_program_and_says_why(host: Host):
    (host.program / "broken").touch()
    with pytest.raises(RuntimeUnavailable, match=r"cannot be shared by MPS.*Cannot find MPS control daemon"):
        await host.start("work_a", "MPS-1-1")
    assert not (host.folder / "process" / "work_a" / "start.json").exists()
    (host.program / "nvidia-cuda-mps-control").unlink()
    with pytest.raises(RuntimeUnavailable, match="no nvidia-cuda-mps-control on this host"):
        await host.start("work_b", "MPS-1-1")


async def test_a_restarted_agent_finds_the_daemon_and_ends_one_that_nobody_needs(host: Host):
    work = await host.start("work_a", "MPS-1-1")
    pid = host.daemon()
    host.runtime = host.again()
    assert host.daemon() == pid
    await host.start("work_b", "MPS-1-2")
    assert host.daemon() == pid
    # As an agent that died between the last lease's end and the daemon's leaves it.
    for name in (work, "work_b"):
        await super(MpsProcessRuntime, host.runtime).remove(WorkloadId(name))
    assert host.daemon() == pid
    host.runtime = host.again()
    await host.runtime.list()
    assert not host.daemon()


async def test_a_daemon_that_ignores_the_word_is_killed(host: Host, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mps, "END_S", 0.2)
    (host.program / "deaf").touch()
    work = await host.start("work_a", "MPS-1-1")
    pid = host.daemon()
    await host.runtime.remove(work)
    assert not host.daemon()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_two_programs_that_start_together_share_one_daemon(host: Host):
    async with asyncio.TaskGroup() as starts:
        starts.create_task(host.start("work_a", "MPS-1-1"))
        starts.create_task(host.start("work_b", "MPS-1-2"))
    folder = host.runtime.daemons.folders(CARD).root.parent
    assert len(list(folder.iterdir())) == 1
    assert host.daemon()


async def test_a_part_that_its_owner_has_taken_away_starts_nothing(host: Host):
    with pytest.raises(Conflict, match="no such part"):
        await host.start("work_a", "MPS-1-9")


async def test_a_shared_card_is_rented_in_parts_beside_one_another_and_shows_no_foreign_use(
    fake_nvml: FakeNvml, tmp_path: Path
):
    control = NvidiaMps(str(installed(tmp_path / "program")))
    async with watched_host(fake_nvml, tmp_path, None, parse_shares(["2=50,25"]), control) as world:
        slots = await world.master.store.read(lambda uow: uow[SlotRepository].of_host(HOST))
        parts = {slot.profile: slot for slot in slots if slot.profile}
        assert {slot.isolation for slot in parts.values()} == {Isolation.MPS}
        assert {slot.card for slot in parts.values()} == {world.uuid(2)}
        with pytest.raises(Conflict, match="shared in parts by MPS"):
            await world.rent(2)
        works = [await world.rent(2, parts[profile].slot_id) for profile in ("mps.50", "mps.25")]
        assert set(world.agent.workloads.leased_gpus().values()) == set(works)
        fake_nvml.state.gpu(2).memory_used = 8 << 30
        await world.agent.parts.sampler.wait_sample()
        await world.agent.parts.sampler.wait_sample()
        assert not (await world.look()).conditions
        await world.agent.workloads.end_all()
        await poll_async(lambda: not truth.naming(str(tmp_path / "program")), what="the daemon ends with the last part")
