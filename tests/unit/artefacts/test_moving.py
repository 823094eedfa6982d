"""Checkpoints from one host's folder to another's, with the agent's own code at the other end of the channel."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.master_support import ManualClock, SeededRng
from tests.support.objects import MemoryStore
from windrow_agent.storage import checkpoint_transfer as agent
from windrow_agent.storage.object_cache import Cache
from windrow_master.storage import checkpoints
from windrow_master.storage.s3_store import S3Store
from windrow_master.storage.transfer import CheckpointService
from windrow_proto.checkpoints import FOLDER
from windrow_proto.data_keys import DataKey
from windrow_proto.errors import BadProof, WindrowError
from windrow_proto.ids import AccountId
from windrow_proto.messages import ChannelClose, ChannelData
from windrow_proto.units import MIB

OWNER = "job_1"
FILES = {"model.bin": b"weights " * (3 * MIB // 8), "optim/state": b"o" * 100, "empty": b""}
Serve = Callable[[Path, Cache, agent.Hear, agent.Say], Coroutine[Any, Any, None]]


class Line:
    """One channel, both ends in this process."""

    def __init__(self, heard: list[bytes]) -> None:
        self.heard = heard
        self.down: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue()
        self.up: asyncio.Queue[ChannelData | ChannelClose] = asyncio.Queue()

    async def send(self, data: bytes, stream: int = 0) -> None:
        self.heard.append(data)
        await self.down.put((stream, data))

    async def receive(self) -> ChannelData | ChannelClose:
        return await self.up.get()

    async def close(self, closing: ChannelClose) -> None:
        await self.down.put(None)

    async def say(self, stream: int, data: bytes) -> None:
        for start in range(0, len(data), 65_536):
            await self.up.put(ChannelData(data[start : start + 65_536], stream))


def context_of(host: Path) -> agent.TransferContext:
    """A host whose workload has its folder, and those of its volumes beside it."""

    async def folder_of(volume: str) -> Path:
        return host / "volumes" / volume if volume else host / "work"

    async def settled() -> None:
        (host / "settled").touch()

    return agent.TransferContext(folder_of, settled, lambda: not (host / "settled").exists(), Cache(host / "cache"))


@dataclass
class World:
    """A Master's mover and one host; `cut`: the agent dies after so many words. said, heard: by hosts."""

    objects: Any
    group: asyncio.TaskGroup
    folder: Path
    cut: int | None = None
    said: list[bytes] = field(default_factory=list)
    heard: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        artefacts: Any = SimpleNamespace(objects=self.objects, account_key=lambda _account: DataKey(bytes(32)))
        clusters: Any = None
        self.service = CheckpointService(artefacts, clusters, self, ManualClock(), SeededRng(1))

    async def open(self, host_id: str, opening: Any) -> Line:
        line = Line(self.heard)
        self.group.create_task(self._serve(line, self.folder / opening.workload_id))
        return line

    async def _serve(self, line: Line, host: Path) -> None:
        words = 0

        async def say(stream: int, data: bytes) -> None:
            nonlocal words
            words += 1
            if self.cut is not None and words > self.cut:
                raise WindrowError("killed")
            self.said.append(data)
            await line.say(stream, data)

        try:
            await agent.serve(context_of(host), line.down.get, say)
            await line.up.put(ChannelClose())
        except WindrowError as error:
            await line.up.put(ChannelClose("link_closed" if error.detail == "killed" else error.code, error.detail))

    def host(self, name: str) -> Any:
        (self.folder / name / "work").mkdir(parents=True, exist_ok=True)
        return SimpleNamespace(workload_id=name, host_id="host_" + name)

    def write(self, host: str, step: int, files: dict[str, bytes] = FILES) -> None:
        root = self.folder / host / "work" / FOLDER / f"step-{step}"
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content + b"@%d" % step)

    def content(self, host: str, step: int) -> dict[str, bytes]:
        root = self.folder / host / "work" / FOLDER / f"step-{step}"
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def written(step: int) -> dict[str, bytes]:
    return {name: content + b"@%d" % step for name, content in FILES.items()}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with asyncio.TaskGroup() as group:
        yield World(MemoryStore(), group, tmp_path)


async def test_a_checkpoint_moves_from_one_host_to_another_and_lies_sealed_between(world):
    one, two = world.host("one"), world.host("two")
    world.write("one", 7)
    saved = await world.service.save("account_1", OWNER, one)
    again = await world.service.save("account_1", OWNER, one)
    outcome = await world.service.restore("account_1", OWNER, two)

    assert (saved.step, again, outcome.step, outcome.passed) == (7, None, 7, ())
    assert world.content("two", 7) == written(7)
    assert not [held for held in world.objects.held.values() if b"weights" in held]
    assert not list((world.folder / "one" / "cache").glob("*"))


async def test_nothing_new_is_no_checkpoint(world):
    assert await world.service.save("account_1", OWNER, world.host("one")) is None
    assert world.objects.held == {}


async def test_a_host_that_dies_at_any_word_leaves_the_checkpoint_before(world):
    one = world.host("one")
    world.write("one", 1)
    await world.service.save("account_1", OWNER, one)
    words = len(world.said)
    world.write("one", 2)
    for cut in range(words):
        world.cut = cut
        with pytest.raises(WindrowError):
            await world.service.save("account_1", OWNER, one)
        assert await checkpoints.steps(world.objects, OWNER) == (1,)
    world.cut = None

    assert (await world.service.save("account_1", OWNER, one)).step == 2


async def test_a_host_that_dies_while_restoring_leaves_no_torn_checkpoint_to_its_workload(world):
    one, two = world.host("one"), world.host("two")
    world.write("one", 1)
    await world.service.save("account_1", OWNER, one)
    for cut in range(len(FILES)):
        world.cut = cut
        with pytest.raises(WindrowError):
            await world.service.restore("account_1", OWNER, two)
        assert list((world.folder / "two" / "work" / FOLDER).iterdir()) == []
    world.cut = None

    assert (await world.service.restore("account_1", OWNER, two)).step == 1
    assert world.content("two", 1) == written(1)


async def test_a_damaged_object_is_found_by_the_host_and_the_one_before_is_restored(world):
    one, two = world.host("one"), world.host("two")
    for step in (1, 2):
        world.write("one", step)
        await world.service.save("account_1", OWNER, one)
    key = next(key for key in world.objects.held if f"/parts/{2:020d}/" in key)
    held = world.objects.held[key]
    world.objects.held[key] = held[:-1] + bytes([held[-1] ^ 1])

    outcome = await world.service.restore("account_1", OWNER, two)

    assert outcome.step == 1
    assert [one.step for one in outcome.passed] == [2]
    assert world.content("two", 1) == written(1)
    assert sorted(path.name for path in (world.folder / "two" / "work" / FOLDER).iterdir()) == ["step-1"]


async def test_the_key_of_another_account_restores_nothing(world):
    one = world.host("one")
    world.write("one", 1)
    await world.service.save("account_1", OWNER, one)
    world.service._artefacts.account_key = lambda _account: DataKey(bytes(31) + b"\1")

    outcome = await world.service.restore("account_2", OWNER, world.host("two"))

    assert outcome.step is None
    assert [one.step for one in outcome.passed] == [1]


async def test_a_host_that_says_another_hash_than_it_sent_is_refused(world, monkeypatch):
    one = world.host("one")
    world.write("one", 1)
    monkeypatch.setattr(agent, "Moved", lambda size, _digest, _torn: agent_moved(size))
    with pytest.raises(BadProof):
        await world.service.save("account_1", OWNER, one)

    assert await checkpoints.steps(world.objects, OWNER) == ()


def agent_moved(size: int) -> Any:
    from windrow_proto.checkpoints import Moved

    return Moved(size, hashlib.sha256(b"other").hexdigest())


async def test_through_a_store_with_addresses_the_host_gets_calls_and_never_a_key(moto_bucket, tmp_path):
    store = S3Store(moto_bucket)
    async with asyncio.TaskGroup() as group:
        world = World(store, group, tmp_path)
        one, two = world.host("one"), world.host("two")
        world.write("one", 7)
        saved = await world.service.save(AccountId("account_1"), OWNER, one)
        outcome = await world.service.restore(AccountId("account_1"), OWNER, two)

    assert saved is not None
    assert saved.step == outcome.step == 7
    assert world.content("two", 7) == written(7)
    assert not [data for data in world.said if len(data) > 2000], "bytes of objects went to the store, not through us"
    await store.close()
