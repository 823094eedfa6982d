"""The spool's promises, on a real disk and on one whose power can be cut."""

import errno

import pytest

from windrow_agent.link.spool import SPOOL_CAP, SPOOL_CORRUPT, Spool, SpoolCaps
from windrow_proto.disk import OsDisk
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import StorageFailed
from windrow_proto.ids import BootId
from windrow_proto.messages import LaneMarks
from windrow_proto.model import Kind, Lane
from windrow_proto.units import KIB, MIB, MINUTE, SECOND
from windrow_proto.windows import RecordKey
from windrow_proto.wire_link import decode_gap

BOOT, NEXT_BOOT = BootId(b"a" * 16), BootId(b"b" * 16)
SMALL = SpoolCaps(
    telemetry_bytes=64 * KIB, evidence_bytes=64 * KIB, ring_bytes=16 * KIB, segment_bytes=8 * KIB, free_bytes_min=0
)


class Wall:
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.now_ns = 1_700_000_000 * SECOND

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture(params=["os", "memory"])
def disk(request, tmp_path):
    return (OsDisk(), str(tmp_path / "spool")) if request.param == "os" else (MemoryDisk(), "/spool")


@pytest.fixture
def wall():
    return Wall()


def _open(disk, wall, boot=BOOT, caps=None):
    return Spool(disk[0], disk[1], boot, wall, caps)


def _gaps(spool: Spool, lane: Lane):
    records = [spool.record(lane, key) for key in spool.waiting(lane)]
    return [decode_gap(record.body) for record in records if record is not None and record.kind is Kind.GAP]


@pytest.mark.parametrize("lane", [Lane.EVIDENCE, Lane.TELEMETRY])
def test_what_was_appended_is_there_after_a_restart_in_order(disk, wall, lane):
    spool = _open(disk, wall)
    keys = spool.append(lane, [(Kind.EVENT, b"one"), (Kind.EVENT, b"two")])
    spool.close()
    again = _open(disk, wall, NEXT_BOOT)
    assert keys == again.waiting(lane) == [RecordKey(BOOT, 1), RecordKey(BOOT, 2)]
    assert [again.record(lane, key).body for key in keys] == [b"one", b"two"]
    assert again.append(lane, [(Kind.EVENT, b"three")]) == [RecordKey(NEXT_BOOT, 1)]


def test_the_same_boot_never_uses_a_sequence_twice(disk, wall):
    spool = _open(disk, wall)
    spool.append(Lane.EVIDENCE, [(Kind.EVENT, b"one")])
    spool.close()
    assert _open(disk, wall).append(Lane.EVIDENCE, [(Kind.EVENT, b"two")]) == [RecordKey(BOOT, 2)]


def test_acknowledged_evidence_goes_and_its_space_with_it(disk, wall):
    spool = _open(disk, wall, caps=SMALL)
    keys = [spool.append(Lane.EVIDENCE, [(Kind.RECEIPT, b"x" * KIB)])[0] for _ in range(30)]
    before = spool.size_bytes
    spool.acknowledged(Lane.EVIDENCE, keys[:25])
    assert spool.waiting(Lane.EVIDENCE) == keys[25:]
    assert spool.size_bytes < before // 2
    assert spool.record(Lane.EVIDENCE, keys[0]) is None
    spool.acknowledged(Lane.EVIDENCE, keys)
    assert spool.waiting(Lane.EVIDENCE) == []


def test_acknowledged_telemetry_can_be_asked_for_again_within_ten_minutes(disk, wall):
    spool = _open(disk, wall)
    key = spool.append(Lane.TELEMETRY, [(Kind.TELEMETRY, b"batch")])[0]
    spool.acknowledged(Lane.TELEMETRY, [key])
    assert spool.waiting(Lane.TELEMETRY) == []
    missing = (LaneMarks(Lane.TELEMETRY, BOOT, ((1, 1),)),)
    assert spool.asked_again(missing) == [key]
    assert spool.record(Lane.TELEMETRY, key).body == b"batch"
    spool.acknowledged(Lane.TELEMETRY, [key])
    wall.now_ns += 11 * MINUTE
    other = spool.append(Lane.TELEMETRY, [(Kind.TELEMETRY, b"later")])
    spool.acknowledged(Lane.TELEMETRY, other)
    (gap_key,) = spool.asked_again(missing)
    assert decode_gap(spool.record(Lane.TELEMETRY, gap_key).body).ranges == ((1, 1),)


def test_the_ring_is_bounded_in_bytes(disk, wall):
    spool = _open(disk, wall, caps=SMALL)
    for _ in range(200):
        spool.acknowledged(Lane.TELEMETRY, spool.append(Lane.TELEMETRY, [(Kind.TELEMETRY, b"x" * KIB)]))
    assert spool.size_bytes <= SMALL.ring_bytes + 3 * SMALL.segment_bytes


def test_a_master_that_lost_what_it_had_acknowledged_gets_it_again(disk, wall):
    spool = _open(disk, wall)
    keys = spool.append(Lane.TELEMETRY, [(Kind.TELEMETRY, b"1"), (Kind.TELEMETRY, b"2")])
    spool.acknowledged(Lane.TELEMETRY, keys)
    named = spool.marks()
    assert named == (LaneMarks(Lane.TELEMETRY, BOOT, ((1, 2),)),)
    spool.reconcile(named, (LaneMarks(Lane.TELEMETRY, BOOT, ((1, 1),)),))
    assert spool.waiting(Lane.TELEMETRY) == keys[1:]


def test_a_welcome_drops_what_the_master_already_has(disk, wall):
    spool = _open(disk, wall)
    keys = spool.append(Lane.EVIDENCE, [(Kind.EVENT, b"1"), (Kind.EVENT, b"2")])
    spool.close()
    again = _open(disk, wall, NEXT_BOOT)
    again.reconcile(again.marks(), (LaneMarks(Lane.EVIDENCE, BOOT, ((1, 1),)),))
    assert again.waiting(Lane.EVIDENCE) == keys[1:]


def test_over_its_cap_telemetry_loses_the_oldest_and_says_exactly_which(disk, wall):
    spool = _open(disk, wall, caps=SMALL)
    for _ in range(150):
        spool.append(Lane.TELEMETRY, [(Kind.TELEMETRY, b"x" * KIB)])
    assert spool.size_bytes <= SMALL.telemetry_bytes + SMALL.segment_bytes
    gaps = _gaps(spool, Lane.TELEMETRY)
    lost = {n for gap in gaps for first, last in gap.ranges for n in range(first, last + 1)}
    held = {key.origin_sequence for key in spool.waiting(Lane.TELEMETRY)}
    assert {gap.reason for gap in gaps} == {SPOOL_CAP}
    assert lost.isdisjoint(held)
    assert lost | held == set(range(1, max(held) + 1)), "every sequence is either here or told as lost"


def test_over_its_cap_evidence_loses_what_is_superseded_and_never_a_receipt(disk, wall):
    spool = _open(disk, wall, caps=SMALL)
    receipts = []
    for _ in range(20):
        receipts.append(spool.append(Lane.EVIDENCE, [(Kind.RECEIPT, b"r" * KIB)])[-1])
        spool.append(Lane.EVIDENCE, [(Kind.OBSERVED, b"o" * (3 * KIB))])
    assert set(receipts) <= set(spool.waiting(Lane.EVIDENCE))
    assert all(spool.record(Lane.EVIDENCE, key).kind is Kind.RECEIPT for key in receipts)
    assert _gaps(spool, Lane.EVIDENCE)
    with pytest.raises(StorageFailed):
        for _ in range(80):
            receipts.append(spool.append(Lane.EVIDENCE, [(Kind.RECEIPT, b"r" * KIB)])[-1])
    assert set(receipts) <= set(spool.waiting(Lane.EVIDENCE))


def test_what_is_missing_and_never_was_here_is_not_invented(disk, wall):
    spool = _open(disk, wall)
    spool.append(Lane.EVIDENCE, [(Kind.EVENT, b"1")])
    assert spool.asked_again((LaneMarks(Lane.EVIDENCE, BOOT, ((1, 9),)),)) == []


def test_a_gap_is_told_once(disk, wall):
    spool = _open(disk, wall, NEXT_BOOT)
    missing = (LaneMarks(Lane.TELEMETRY, BOOT, ((3, 5),)),)
    assert len(spool.asked_again(missing)) == 1
    assert spool.asked_again(missing) == []
    assert [(g.ranges, g.reason, g.origin_boot) for g in _gaps(spool, Lane.TELEMETRY)] == [
        (((3, 5),), SPOOL_CORRUPT, BOOT)
    ]


# --- the disk fails ------------------------------------------------------------------------------------------------


def test_nothing_that_was_handed_out_is_lost_in_a_power_cut_at_any_moment(wall):
    for cut in range(60):
        disk = MemoryDisk()
        spool = _open((disk, "/spool"), wall, caps=SMALL)
        disk.inject("sync", errno.EIO, skip=cut, times=1000)
        disk.inject("append", errno.EIO, skip=cut, times=1000)
        promised = []
        try:
            for number in range(40):
                promised += spool.append(Lane.EVIDENCE, [(Kind.RECEIPT, b"%d" % number * 400)])
        except StorageFailed:
            pass
        disk.crash(keep_unsynced=lambda path, count: count // 2)
        again = _open((disk, "/spool"), wall, NEXT_BOOT, SMALL)
        assert set(promised) <= set(again.waiting(Lane.EVIDENCE)), f"cut after {cut} calls"
        assert again.append(Lane.EVIDENCE, [(Kind.RECEIPT, b"after")])


def test_a_torn_tail_is_cut_and_is_no_damage(wall):
    disk = MemoryDisk()
    spool = _open((disk, "/spool"), wall)
    spool.append(Lane.EVIDENCE, [(Kind.EVENT, b"whole")])
    disk.append(f"/spool/evidence/{1:012d}.seg", b"\x10\0\0\0torn")
    disk.crash(keep_unsynced=lambda path, count: count)
    again = _open((disk, "/spool"), wall, NEXT_BOOT)
    assert len(again.waiting(Lane.EVIDENCE)) == 1
    assert again.lost_bytes == 0


def test_a_flipped_bit_costs_its_record_only_and_is_told_as_a_gap_when_asked(wall):
    disk = MemoryDisk()
    spool = _open((disk, "/spool"), wall, caps=SMALL)
    for _ in range(20):
        spool.append(Lane.EVIDENCE, [(Kind.RECEIPT, b"x" * KIB)])
    disk.corrupt(f"/spool/evidence/{1:012d}.seg", 3000)
    again = _open((disk, "/spool"), wall, NEXT_BOOT, SMALL)
    held = {key.origin_sequence for key in again.waiting(Lane.EVIDENCE)}
    assert len(held) == 19
    assert again.lost_bytes > 0
    (lost,) = set(range(1, 21)) - held
    again.asked_again((LaneMarks(Lane.EVIDENCE, BOOT, ((lost, lost),)),))
    assert [(g.ranges, g.reason) for g in _gaps(again, Lane.EVIDENCE)] == [(((lost, lost),), SPOOL_CORRUPT)]


def test_on_a_full_disk_telemetry_makes_room_for_a_result(wall):
    disk = MemoryDisk(capacity_bytes=MIB)
    caps = SpoolCaps(segment_bytes=64 * KIB, free_bytes_min=0)
    spool = _open((disk, "/spool"), wall, caps=caps)
    with pytest.raises(StorageFailed):
        for _ in range(1000):
            spool.append(Lane.EVIDENCE, [(Kind.RECEIPT, b"r" * KIB)])
            spool.append(Lane.TELEMETRY, [(Kind.TELEMETRY, b"t" * 3 * KIB)])
    results = len(spool.waiting(Lane.EVIDENCE))
    assert results * KIB > MIB // 2, "results filled most of the disk because telemetry made room"


@pytest.mark.parametrize("has_room_for_gaps", [True, False])
def test_what_a_full_disk_took_of_an_earlier_boot_is_told(wall, monkeypatch, has_room_for_gaps):
    disk = MemoryDisk()
    caps = SpoolCaps(segment_bytes=64 * KIB, free_bytes_min=0)
    before = _open((disk, "/spool"), wall, caps=caps)
    before.append(Lane.TELEMETRY, [(Kind.TELEMETRY, b"t" * KIB)] * 3)
    disk.capacity_bytes = disk.size("/spool/telemetry/000000000001.seg")
    spool = _open((disk, "/spool"), wall, NEXT_BOOT, caps)
    if not has_room_for_gaps:
        monkeypatch.setattr(spool, "_tell_gap", _refused)

    spool.append(Lane.EVIDENCE, [(Kind.RECEIPT, b"r" * KIB)])

    monkeypatch.undo()
    killed = _open((disk, "/spool"), wall, NEXT_BOOT, caps)
    assert len(_gaps(killed, Lane.TELEMETRY)) == has_room_for_gaps, "told before anything else can happen"
    keys = spool.append(Lane.TELEMETRY, [(Kind.TELEMETRY, b"t" * 100)])
    again = spool.append(Lane.TELEMETRY, [(Kind.TELEMETRY, b"t" * 100)])
    told = [(gap.origin_boot, gap.ranges, gap.reason) for gap in _gaps(spool, Lane.TELEMETRY)]
    assert told == [(BOOT, ((1, 3),), SPOOL_CAP)]
    assert [len(keys), len(again)] == [2, 1], "the gap is offered with the telemetry that comes next, and once"
    assert spool.record(Lane.TELEMETRY, keys[-1]).kind is Kind.TELEMETRY


def _refused(*_):
    raise StorageFailed("No room for a gap, either.")


def test_telemetry_leaves_room_on_the_disk_for_others(wall):
    disk = MemoryDisk(capacity_bytes=MIB)
    caps = SpoolCaps(segment_bytes=64 * KIB, free_bytes_min=256 * KIB)
    spool = _open((disk, "/spool"), wall, caps=caps)
    for _ in range(600):
        spool.append(Lane.TELEMETRY, [(Kind.TELEMETRY, b"t" * 3 * KIB)])
    assert disk.free_bytes("/spool") >= 128 * KIB


def test_a_clock_that_jumps_by_years_costs_no_telemetry(wall):
    disk = MemoryDisk()
    spool = _open((disk, "/spool"), wall)
    keys = spool.append(Lane.TELEMETRY, [(Kind.TELEMETRY, b"old")])
    wall.now_ns += 20 * 366 * 24 * 60 * MINUTE
    keys += spool.append(Lane.TELEMETRY, [(Kind.TELEMETRY, b"new")])
    assert _gaps(spool, Lane.TELEMETRY) == []
    assert spool.waiting(Lane.TELEMETRY) == keys
