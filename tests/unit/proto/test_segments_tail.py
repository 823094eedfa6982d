"""A follower that comes back to a log reads on from where it was, and reads the same as one who reads it whole."""

from hypothesis import given
from hypothesis import strategies as st

from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.segments import SegmentLog, created_wall_ns, read_log, read_tail


@given(st.lists(st.binary(min_size=1, max_size=60), max_size=40), st.integers(1, 200))
def test_following_in_steps_gives_every_record_once_and_in_order(payloads, bytes_max):
    disk = MemoryDisk()
    log = SegmentLog(disk, "log", segment_bytes=256)
    start, followed = None, []
    for payload in payloads:
        log.append(payload)
        records, start = read_tail(disk, "log", start, bytes_max)
        followed += records
    while True:
        records, start = read_tail(disk, "log", start, bytes_max)
        if not records:
            break
        followed += records
    assert followed == list(read_log(disk, "log"))
    assert [payload for _, payload in followed] == payloads


def test_damage_in_a_finished_segment_is_stepped_over():
    disk = MemoryDisk()
    log = SegmentLog(disk, "log", segment_bytes=256)
    positions = [log.append(bytes([n]) * 50) for n in range(12)]
    first = [p for p in positions if p.segment == 1]
    disk.corrupt("log/000000000001.seg", first[1].offset + 8)
    start, followed = None, []
    for _ in range(20):
        records, start = read_tail(disk, "log", start, 1 << 20)
        followed += [payload[0] for _, payload in records]
    assert followed == [n for n in range(12) if n != 1]


def test_a_segment_says_when_it_was_begun():
    disk = MemoryDisk()
    SegmentLog(disk, "log", wall_ns=lambda: 7).append(b"x")
    assert created_wall_ns(disk, "log", 1) == 7
    assert created_wall_ns(disk, "log", 2) is None
