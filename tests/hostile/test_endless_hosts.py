"""Endless output that a host sends of its work: the Master keeps little of it, looks through it once, and goes on."""

import tarfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.master_support import ManualClock, SeededRng
from tests.support.objects import MemoryStore
from tests.unit.clusters.conftest import site as site
from tests.unit.clusters.test_results import brought_in, ended, names, said, tar
from windrow_master.network.tar import BLOCK, TarSieve
from windrow_master.storage.folder_store import FolderStore
from windrow_master.storage.model import object_key
from windrow_master.storage.transfer import CheckpointService
from windrow_proto.checkpoints import Found, Lines, Piece, Settled, encode
from windrow_proto.data_keys import DataKey
from windrow_proto.errors import DiskFull, InvalidInput
from windrow_proto.ids import AccountId
from windrow_proto.messages import ChannelData
from windrow_proto.units import KIB, MIB

pytestmark = pytest.mark.row("F16")


def head(name: str, size: int, kind: bytes = b"0") -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("kind", [b"x", b"L", b"K"])
def test_headers_before_a_file_that_never_comes_are_not_kept(kind: bytes) -> None:
    sieve, one = TarSieve(1 << 40), head("h", 32 * KIB, kind) + b"9 a=bbbb\n" * 3640 + bytes(8)
    with pytest.raises(InvalidInput, match="64 KiB"):
        for _ in range(1_000):
            sieve.feed(one)
    assert len(sieve._before) < 80 * KIB


def test_a_header_of_many_records_is_looked_through_once() -> None:
    sieve = TarSieve(1 << 40)
    many, began = head("h", 60 * KIB, b"x") + b"2 " * (30 * KIB) + head("f", 0), time.process_time()
    for _ in range(20):
        sieve.feed(many)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("piece", [bytes(64 * BLOCK), (bytes(BLOCK) + head("f", 0)) * 32], ids=["zeros", "mixed"])
def test_an_archive_that_goes_on_behind_its_end_or_beyond_its_room_is_not_kept(piece: bytes) -> None:
    sieve = TarSieve(0)
    assert sum(len(sieve.feed(piece)) for _ in range(1_000)) <= 40 * BLOCK


async def test_results_without_an_end_leave_what_came_before_it(site: Any) -> None:
    archive = tar(out=b"result")
    cluster_id, _ = await ended(site, said(b"log"), said(archive, *[bytes(64 * KIB)] * 100))
    kept = await brought_in(site, cluster_id)
    assert kept["log_bytes"] == 3 and kept["files_bytes"] <= len(archive) + 40 * BLOCK
    assert names((await site.client.get(f"/api/v1/clusters/{cluster_id}/files")).content) == ["out"]


async def test_results_whose_headers_have_no_end_are_said_and_the_log_is_kept(site: Any) -> None:
    cluster_id, _ = await ended(site, said(b"log"), said(*[head("h", 512, b"x") + b"9 a=bbbb\n" * 56 + bytes(8)] * 500))
    kept = await brought_in(site, cluster_id)
    assert kept["log_bytes"] == 3 and "64 KiB" in kept["problem"]


def test_a_line_that_comes_byte_by_byte_is_not_copied_each_time() -> None:
    lines, began = Lines(), time.process_time()
    lines.feed(b"x" * (12 * MIB))
    for _ in range(2_000):
        assert lines.feed(b"x") == []
    assert time.process_time() - began < 2
    assert [len(one) for one in lines.feed(b"\n\ny\nz")] == [12 * MIB + 2_000, 0, 1]
    assert lines.feed(b"\n") == [b"z"]


class Talker:
    """A host that is asked for the bytes of a checkpoint, and goes on saying words instead."""

    def __init__(self) -> None:
        piece = Piece("model", 0, MIB)
        self.words, self.count = encode(Found(1, (piece,))), 0

    async def open(self, *_: Any) -> "Talker":
        return self

    async def send(self, data: bytes, stream: int = 0) -> None:
        """It does not listen."""

    async def receive(self) -> ChannelData:
        self.count += 1
        words, self.words = self.words, encode(Settled()) * 10
        return ChannelData(words)

    async def close(self, closing: Any) -> None:
        """It does not listen."""


async def test_words_that_nobody_asked_for_are_not_kept() -> None:
    artefacts: Any = SimpleNamespace(objects=MemoryStore(), account_key=lambda _account: DataKey(bytes(32)))
    talker: Any = Talker()
    workload: Any = SimpleNamespace(workload_id="w", host_id="h")
    mover = CheckpointService(artefacts, talker, talker, ManualClock(), SeededRng(1))
    with pytest.raises(InvalidInput, match="more than anybody asked for"):
        await mover.save(AccountId("account_1"), "job_1", workload)
    assert talker.count < 5


@pytest.mark.row("F14", "F15")
async def test_what_hosts_send_stops_before_the_disk_is_full_and_what_is_small_has_its_place(tmp_path: Path) -> None:
    def admit(more_bytes: int) -> None:
        raise DiskFull("too little is left")

    async def pieces(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield bytes(64 * KIB)

    store = FolderStore(tmp_path, admit)
    await store.put(object_key("jobs/a/log"), pieces(15), 1 << 40)
    with pytest.raises(DiskFull):
        await store.put(object_key("jobs/a/files"), pieces(1_000), 1 << 40)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) == 15 * 64 * KIB
