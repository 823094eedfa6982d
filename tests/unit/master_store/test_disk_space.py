"""The Master's disk space: refuses new work on a full disk, gives the ballast away in pieces, and finds space again."""

import errno
from collections.abc import Mapping

import pytest

from tests.master_support import ManualClock
from windrow_master.store.disk_space import DiskSpace
from windrow_proto.ballast import Ballast, ReservedDisk
from windrow_proto.conditions import ConditionCode
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import DiskFull, Unavailable
from windrow_proto.units import KIB

BALLAST, FLOOR, PIECE = 64 * KIB, 16 * KIB, 16 * KIB


def room_on(disk: MemoryDisk) -> DiskSpace:
    return DiskSpace(disk, ["/data"], ManualClock(), ballast_bytes=BALLAST, floor_bytes=FLOOR, piece_bytes=PIECE)


def test_with_room_the_ballast_is_laid_down_and_new_work_admitted() -> None:
    disk = MemoryDisk(BALLAST + FLOOR)
    room = room_on(disk)
    assert room.look()
    room.admit()
    assert disk.size("/data/ballast") == BALLAST
    assert not list(room.conditions())


def test_below_the_floor_new_work_is_refused_with_the_way_out_and_the_ballast_kept() -> None:
    disk = MemoryDisk(BALLAST + FLOOR)
    room = room_on(disk)
    room.look()
    disk.append("/data/log", bytes(KIB))
    assert not room.look()
    with pytest.raises(DiskFull, match=r"The disk of /data is full .* Free \d+ MiB"):
        room.admit()
    assert disk.size("/data/ballast") == BALLAST
    assert [code for code, _, _ in room.conditions()] == [ConditionCode.MASTER_DISK_FULL]


def test_each_write_that_finds_no_room_gets_a_piece_and_the_last_one_nothing() -> None:
    disk = MemoryDisk(BALLAST + FLOOR)
    room = room_on(disk)
    room.look()
    disk.append("/data/log", bytes(FLOOR))
    kept = ReservedDisk(disk, room)
    for left in (3, 2, 1):
        kept.append("/data/rows", bytes(PIECE))
        assert disk.size("/data/ballast") == left * PIECE
    assert not room.has_room()
    kept.append("/data/rows", bytes(PIECE))
    with pytest.raises(OSError) as raised:
        kept.append("/data/rows", b"x")
    assert raised.value.errno == errno.ENOSPC and disk.size("/data/rows") == 4 * PIECE


def test_a_look_gives_a_piece_away_where_there_is_hardly_any_room() -> None:
    disk = MemoryDisk(BALLAST + FLOOR)
    room = room_on(disk)
    room.look()
    disk.append("/data/log", bytes(FLOOR))
    room.look_before_start()
    assert disk.free_bytes("/data") == PIECE
    room.look()
    assert disk.free_bytes("/data") == PIECE


def test_a_full_disk_has_room_again_a_little_above_the_floor_with_a_whole_ballast() -> None:
    disk = MemoryDisk(BALLAST + FLOOR)
    room = room_on(disk)
    room.look()
    disk.append("/data/log", bytes(KIB))
    assert not room.look()
    disk.truncate("/data/log", 0)
    assert not room.look()
    disk.capacity_bytes = BALLAST + FLOOR + FLOOR // 8
    assert room.look()
    room.spend()
    assert not room.has_room()
    assert room.look() and disk.size("/data/ballast") == BALLAST


def test_a_ballast_that_cannot_be_laid_down_takes_no_room() -> None:
    disk = MemoryDisk(BALLAST + FLOOR)
    disk.inject("sync", errno.ENOSPC)
    ballast = Ballast(disk, "/data/ballast", BALLAST, FLOOR, PIECE)
    assert ballast.tend() and ballast.is_spent
    assert disk.list("/data") == ()
    assert not ballast.tend()


def test_what_a_killed_process_left_of_it_is_made_whole() -> None:
    disk = MemoryDisk(BALLAST + FLOOR)
    disk.append("/data/ballast", bytes(PIECE))
    ballast = Ballast(disk, "/data/ballast", BALLAST, FLOOR, PIECE)
    assert not ballast.tend() and disk.size("/data/ballast") == BALLAST


async def test_each_change_is_told_once_it_can_be_written() -> None:
    disk, told = MemoryDisk(BALLAST + FLOOR), []
    room = room_on(disk)
    room.look()

    async def tell(kind: str, text: str, fields: Mapping[str, str]) -> None:
        told.append(kind)
        if len(told) == 1:
            raise Unavailable

    await room.tell(tell)
    disk.append("/data/log", bytes(KIB))
    for _ in range(3):
        room.look()
        await room.tell(tell)
    disk.delete("/data/log")
    disk.capacity_bytes = None
    room.look()
    await room.tell(tell)
    assert told == ["master_disk_full", "master_disk_full", "master_disk_has_room"]


def test_a_disk_that_does_not_answer_counts_as_full() -> None:
    disk = MemoryDisk()
    room = room_on(disk)
    disk.inject("free_bytes", errno.EIO, times=2)
    assert not room.look()
    with pytest.raises(DiskFull, match="no room could be seen"):
        room.admit()
    assert room.look()
