"""The segment log: what was synced survives a cut at any byte, damage is reported, a failing disk never lies."""

import errno

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow_proto.disk import OsDisk
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import StorageFailed, TooLarge
from windrow_proto.segments import HEADER_BYTES, TORN_TAIL, Position, SegmentLog, read_log, segment_path

HOME = "/log"


def _payloads(log: SegmentLog) -> list[bytes]:
    return [payload for _, payload in log.read()]


def test_records_come_back_in_order_across_segments_and_openings():
    disk = MemoryDisk()
    log = SegmentLog(disk, HOME, segment_bytes=100)
    written = [bytes([n]) * (n + 1) for n in range(20)]
    positions = [log.append(payload) for payload in written]
    log.close()

    again = SegmentLog(disk, HOME, segment_bytes=100)
    positions.append(again.append(b"more"))

    assert _payloads(again) == [*written, b"more"]
    assert positions == sorted(positions)
    assert len(again.segments) > 3
    assert all(size <= 100 for _, size in again.segments)
    assert again.damaged == ()


def test_reading_can_begin_at_any_record_and_just_after_the_last():
    disk = MemoryDisk()
    log = SegmentLog(disk, HOME, segment_bytes=64)
    positions = [log.append(bytes([n])) for n in range(1, 12)]

    assert [p for p, _ in log.read(positions[7])] == positions[7:]
    assert list(log.read(positions[-1].after(b"x"))) == []
    cursor = positions[-1].after(b"x")
    last = log.append(b"new")
    assert [p for p, _ in read_log(disk, HOME, cursor)] == [last]


def test_a_real_directory_works_like_the_one_in_memory(tmp_path):
    log = SegmentLog(OsDisk(), str(tmp_path / "log"), segment_bytes=100, wall_ns=lambda: 5)
    for n in range(1, 30):
        log.append(bytes([n]) * 10)
    log.close()

    again = SegmentLog(OsDisk(), str(tmp_path / "log"), segment_bytes=100)

    assert _payloads(again) == [bytes([n]) * 10 for n in range(1, 30)]
    assert again.drop_before(again.end.segment) > 0
    assert len(again.segments) == 1
    again.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.binary(min_size=1, max_size=30), st.booleans()), max_size=25), st.randoms())
def test_a_power_cut_at_any_moment_loses_nothing_that_was_synced(steps, random):
    disk = MemoryDisk()
    log = SegmentLog(disk, HOME, segment_bytes=120)
    written: list[bytes] = []
    promised = 0
    for payload, sync in steps:
        log.append(payload)
        written.append(payload)
        if sync:
            log.sync()
            promised = len(written)

    disk.crash(lambda path, count: random.randint(0, count))
    again = SegmentLog(disk, HOME, segment_bytes=120)
    found = _payloads(again)

    assert found == written[: len(found)]
    assert len(found) >= promised
    assert all(damage.reason == TORN_TAIL for damage in again.damaged)
    again.append(b"next")
    assert _payloads(again) == [*found, b"next"]


def test_a_tail_cut_at_every_byte_is_cut_off_and_the_log_goes_on():
    whole = MemoryDisk()
    log = SegmentLog(whole, HOME)
    log.append_all([b"first", b"second"])
    log.sync()
    data = whole.read(segment_path(HOME, 1), 0, 999)

    for size in range(len(data)):
        disk = MemoryDisk()
        disk.append(segment_path(HOME, 1), data[:size])
        again = SegmentLog(disk, HOME)
        found = _payloads(again)
        assert found == [b"first", b"second"][: len(found)]
        again.append(b"third")
        assert _payloads(again) == [*found, b"third"]


def test_zeros_after_a_power_cut_are_not_records():
    disk = MemoryDisk()
    log = SegmentLog(disk, HOME)
    log.append(b"real")
    disk.append(segment_path(HOME, 1), bytes(64))

    again = SegmentLog(disk, HOME)

    assert _payloads(again) == [b"real"]
    assert [d.reason for d in again.damaged] == [TORN_TAIL]


def test_a_bad_record_in_the_middle_is_reported_and_its_neighbours_stay():
    disk = MemoryDisk()
    log = SegmentLog(disk, HOME)
    positions = log.append_all([b"aaaa", b"bbbb", b"cccc"])
    log.sync()
    disk.corrupt(segment_path(HOME, 1), positions[1].offset + 8)

    again = SegmentLog(disk, HOME)
    after = again.append(b"dddd")

    assert _payloads(again) == [b"aaaa", b"cccc", b"dddd"]
    assert [(d.segment, d.offset, d.lost_bytes, d.reason) for d in again.damaged] == [
        (1, positions[1].offset, 12, "record")
    ]
    assert after == Position(2, HEADER_BYTES)
    assert SegmentLog(disk, HOME).damaged == again.damaged
    again.drop_before(2)
    assert again.damaged == ()


def test_a_damaged_header_loses_no_record():
    disk = MemoryDisk()
    SegmentLog(disk, HOME).append(b"kept")
    disk.corrupt(segment_path(HOME, 1), 3)

    again = SegmentLog(disk, HOME)

    assert _payloads(again) == [b"kept"]
    assert [d.reason for d in again.damaged] == ["header"]


def test_after_a_failed_fsync_nothing_is_accepted_any_more():
    disk = MemoryDisk()
    log = SegmentLog(disk, HOME)
    log.append(b"a")
    disk.inject("sync")

    with pytest.raises(StorageFailed):
        log.sync()
    for call in (log.sync, lambda: log.append(b"b")):
        with pytest.raises(StorageFailed, match="refuses writes"):
            call()
    log.close()


def test_a_full_disk_takes_nothing_of_a_record_and_the_log_lives_on_when_there_is_room():
    disk = MemoryDisk(capacity_bytes=HEADER_BYTES + 40)
    log = SegmentLog(disk, HOME)
    log.append(b"x" * 20)

    with pytest.raises(StorageFailed):
        log.append(b"y" * 20)
    assert _payloads(log) == [b"x" * 20]
    disk.capacity_bytes = None
    log.append(b"z")

    assert _payloads(log) == [b"x" * 20, b"z"]


def test_a_full_disk_when_a_segment_begins_leaves_no_half_segment():
    disk = MemoryDisk(capacity_bytes=10)
    log = SegmentLog(disk, HOME)

    with pytest.raises(StorageFailed):
        log.append(b"x")

    assert disk.list(HOME) == ()
    disk.capacity_bytes = None
    assert log.append(b"x") == Position(1, HEADER_BYTES)


@pytest.mark.parametrize(
    "operation", ["append", "sync", "sync_directory", "truncate", "delete", "size", "read", "list"]
)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("skip", range(6))
def test_whatever_call_of_the_disk_fails_nothing_promised_is_lost(operation, number, skip):
    disk = MemoryDisk()
    disk.inject(operation, number, skip)
    promised: list[bytes] = []
    try:
        log = SegmentLog(disk, HOME, segment_bytes=60)
        for n in range(1, 12):
            log.append(bytes([n]) * 9)
            log.sync()
            promised.append(bytes([n]) * 9)
        log.drop_before(1)
    except StorageFailed:
        pass
    disk.crash()

    found = _payloads(SegmentLog(disk, HOME, segment_bytes=60))

    assert found[: len(promised)] == promised


def test_a_record_that_is_empty_or_too_large_is_refused():
    log = SegmentLog(MemoryDisk(), HOME)
    for payload in (b"", bytes((4 << 20) + 1)):
        with pytest.raises(TooLarge):
            log.append(payload)


def test_a_segment_that_is_dropped_is_gone_for_good_and_the_one_being_written_stays():
    disk = MemoryDisk()
    log = SegmentLog(disk, HOME, segment_bytes=60)
    for n in range(1, 10):
        log.append(bytes([n]) * 9)
        log.sync()
    freed = log.drop_before(999)
    disk.crash()

    again = SegmentLog(disk, HOME, segment_bytes=60)

    assert freed > 0
    assert len(again.segments) == 1
    assert _payloads(again)[-1] == bytes([9]) * 9
