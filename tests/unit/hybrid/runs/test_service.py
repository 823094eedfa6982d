"""A run's command can write whatever it likes where its helper speaks: nothing of that hurts the market or another."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.master_support import ManualClock, opened_store
from tests.support.memory_backend import MemoryBackend, Planned
from tests.unit.clusters.world import OPERATOR
from tests.unit.hybrid.purchases.world import PLENTY
from tests.unit.hybrid.search.world import World as SearchWorld
from tests.unit.jobs.world import once
from windrow_master.clusters.request import LOG_KEPT_BYTES
from windrow_master.hybrid.backends.port import MachineOffer, Wanted
from windrow_master.hybrid.purchases.service import place_at
from windrow_master.hybrid.purchases.states import State
from windrow_master.hybrid.runs.charges import RunCharges
from windrow_master.hybrid.runs.orders import PUT_S, Orders, out_key
from windrow_master.hybrid.runs.port import Stream
from windrow_master.hybrid.runs.service import NOTED_MAX, RunService
from windrow_master.jobs.files import LOG_KEPT_MAX, JobFiles
from windrow_master.jobs.model import Job, JobState
from windrow_master.storage.folder_store import FolderStore
from windrow_master.storage.model import ObjectKey, Presigned
from windrow_proto.errors import NotFound
from windrow_proto.sealed import SealKey
from windrow_proto.units import SECOND


class Addressed(FolderStore):
    """A folder with addresses. given: what was signed, with its size."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.given = list[tuple[str, int]]()

    def presign_put(self, key: ObjectKey, size_bytes: int, expires_s: int) -> Presigned | None:
        self.given.append((key, size_bytes))
        return Presigned("PUT", f"http://store/{key}")

    def presign_get(self, key: ObjectKey, expires_s: int) -> Presigned | None:
        return Presigned("GET", f"http://store/{key}")


class Plain:
    """Notes what is taken in. laid: how often a checkpoint was laid out."""

    def __init__(self) -> None:
        self.taken, self.laid = list[int](), 0

    async def take_in(self, _account: object, _owner: object, step: int, *_pieces: object) -> bool:
        self.taken.append(step)
        return True

    async def lay_out(self, *_given: object) -> None:
        self.laid += 1


class Said(MemoryBackend):
    """A service whose runs say what a test wrote down, and go on until it is all said."""

    words, log = b"", b""

    async def offers(self, wanted: Wanted) -> Sequence[MachineOffer]:
        return [replace(one, is_run=True) for one in await super().offers(wanted)]

    async def follow(self, run_id: str, stream: Stream) -> AsyncGenerator[bytes]:
        said = self.words if stream is Stream.WORDS else self.log
        for at in range(0, len(said), 1 << 16):
            yield said[at : at + (1 << 16)]


class World(SearchWorld):
    """One job, one run, and whatever that says."""

    def start_again(self) -> None:
        super().start_again()
        self.objects, self.plain = Addressed(self.folder), Plain()
        self.said = Said(self.cloud, self.clock)
        self.backends._open_backend = lambda *_given: self.said
        hosts: Any = self.purchases.controller._hosts
        hosts.start_run = lambda *_given: ""
        files = JobFiles(self.objects, self.inside)
        own: Any = files, self.plain, Orders(self.objects), SealKey.of(self.signing), RunCharges(self.market.market)
        self.service = RunService(self.store, self.clock, self.purchases, self.jobs.runs, *own)
        self.runs = self.service
        self.searches._runs = self.service
        self.service.kinds = frozenset({"service"})

    async def bought_run(self) -> Job:
        """A job whose run is there, and has said nothing."""
        await self.connect("service", "service")
        job = await self.submit(backend="service")
        await self.turn(2)
        (bought,) = await self.bought()
        assert bought.state is State.BOOTING
        return job

    async def hear(self, *words: object, log: bytes = b"") -> None:
        """Attend the run, which says this and nothing more."""
        lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in words]
        self.said.words, self.said.log = b"".join(one + b"\n" for one in lines), log
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            self.service._group = group
            self.service._queue.add((await self.bought())[-1].purchase_id)
            await self.service.turn()


@asynccontextmanager
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = ManualClock()
    with opened_store(tmp_path, clock) as store:
        yield World(store, clock, tmp_path / "objects", PLENTY, Planned(is_stale=False))


HELLO, RUNS = {"say": "hello"}, {"say": "runs"}
ENDED, LEFT = {"say": "ended", "code": 0, "files_bytes": 10}, {"say": "left", "files": True}


def found(step: object, *sizes: object, say: str = "found") -> dict[str, object]:
    return {"say": say, "step": step, "pieces": [[f"w{number}", 0, size] for number, size in enumerate(sizes)]}


@pytest.mark.parametrize(
    "word",
    [
        b'{"say": "found", "step": 1e999, "pieces": []}',
        b'{"say": "saved", "step": 1, "pieces": [["w", 1e999, 1]]}',
        b'{"say": "found", "step": ' + b"9" * 5000 + b', "pieces": []}',
        b'{"say": "found", "step": 1, "pieces": [["\\ud800", 0, 1]]}',
        b'{"say": "found", "step": 1, "pieces": {"a": 1}}',
        b'{"say": "broken", "why": "\\ud800\\u0000\\u202e"}',
        b'{"say": "unsaved", "why": {"a": [1e999]}}',
        b'{"say": ["hello"]}',
        b'[1, 2]',
        b"[" * 1_000_000,
        b"\0\xff\xfe",
    ],
)  # fmt: skip
async def test_whatever_is_said_in_between_a_run_ends_as_its_command_did(tmp_path: Path, word: bytes) -> None:
    async with world(tmp_path) as w:
        job = await w.bought_run()
        await w.hear(HELLO, RUNS, word, ENDED, LEFT, log=b"done\n")
        now = await w.get(job)
        assert (now.state, now.attempts[-1].exit_code, now.attempts[-1].files_bytes) == (JobState.SUCCEEDED, 0, 10)


async def test_a_run_that_is_lost_says_why_in_words_that_can_be_kept(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        job = await w.bought_run()
        await w.hear(HELLO, {"say": "broken", "why": "no \ud800\0 folder"})
        now = await w.get(job)
        assert (now.state, now.reason) == (JobState.LOST, "its helper at the service said: broken: no  folder")


async def test_what_is_said_again_has_no_further_effect(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        job = await w.bought_run()
        large = {**ENDED, "files_bytes": 20 << 30}
        await w.hear(*[HELLO] * 50, *[RUNS] * 50, ENDED, large, {**large, "code": 7}, LEFT)
        now = await w.get(job)
        assert (now.attempts[-1].exit_code, now.attempts[-1].files_bytes) == (0, 10)
        assert w.plain.laid == 1
        assert [size for _, size in w.objects.given] == [10], "no call stores more than what is counted"


async def test_a_run_has_calls_for_so_many_bytes_that_have_not_come_in_and_no_more(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.bought_run()
        piece = 32 << 30
        await w.hear(HELLO, RUNS, *(found(step, piece) for step in range(1, 50)), found(99, 1, say="saved"))
        assert sum(size for _, size in w.objects.given) == 4 * piece
        assert w.plain.taken == [], "what had no calls is not sealed"


async def test_checkpoints_that_come_in_make_room_for_the_next(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.bought_run()
        steps = range(1, 50)
        said = [one for step in steps for one in (found(step, 32 << 30), found(step, 32 << 30, say="saved"))]
        await w.hear(HELLO, RUNS, *said)
        assert w.plain.taken == list(steps)


async def test_a_flood_of_nonsense_is_noted_a_few_times_and_ends_the_run_when_it_is_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow_master.hybrid.runs.service.WORDS_MAX", 200)
    async with world(tmp_path) as w:
        job = await w.bought_run()
        with capture_logs() as noted:
            await w.hear(HELLO, RUNS, *[b"no word"] * 500)
        assert [one["event"] for one in noted].count("helper_said") == NOTED_MAX
        assert (await w.get(job)).reason == "its helper at the service said too much"


async def test_a_gigantic_log_is_kept_in_order_up_to_its_limit_and_counts_as_what_is_kept(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        job = await w.bought_run()
        log = b"".join(b"%015d\n" % number for number in range(3_000_000 // 2))
        await w.hear(HELLO, RUNS, ENDED, LEFT, log=log)
        kept = b"".join([piece async for piece in JobFiles(w.objects, w.inside).log(job.job_id, 1)])
        assert log.startswith(kept[:LOG_KEPT_BYTES])
        last = (await w.get(job)).attempts[-1]
        assert last.log_truncated
        assert last.log_bytes is not None
        assert last.log_bytes <= LOG_KEPT_MAX


async def test_a_run_that_was_over_before_this_master_attended_it_ends_its_job(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        job = await w.bought_run()
        (bought,) = await w.bought()
        place = place_at("service", bought.offer, 0, run_id=bought.purchase_id)
        assert await w.jobs.runs.begin(job.job_id, place, lambda _uow, _job: None)
        await w.purchases.end(OPERATOR, bought.purchase_id, "its service ended it")
        await w.turn(12)
        assert (await w.bought())[-1].state is State.GONE
        assert (await w.get(job)).state is JobState.STARTING
        await w.hear()
        assert (await w.get(job)).state is JobState.LOST


async def test_what_is_stored_by_calls_of_a_run_after_its_end_is_deleted(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.bought_run()
        (bought,) = await w.bought()
        await w.purchases.end(OPERATOR, bought.purchase_id, "by hand")
        await w.turn(12)
        await w.hear()
        key = out_key(bought.purchase_id, 1, 0)
        await w.objects.put(key, once(b"x"), 1)
        w.clock.advance(PUT_S * SECOND)
        await w.service.turn()
        with pytest.raises(NotFound):
            await w.objects.get(key)
