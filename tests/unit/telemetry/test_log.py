"""Nothing is acknowledged before it is durable, nothing acknowledged is lost, and nothing is stored twice."""

import asyncio
import errno
from typing import Any

import pytest

from tests.unit.telemetry.world import BOOT, HOST, SECOND, Telemetry, batch, record
from windrow_master.telemetry import record as records
from windrow_master.telemetry.marks import MarkBook
from windrow_master.telemetry.model import LogPosition
from windrow_master.telemetry.segment_log import CHECKPOINT_EVERY_NS, KEEP_NS, Forced, Retention
from windrow_proto.errors import Fenced, InvalidInput, StorageFailed
from windrow_proto.messages import Gap
from windrow_proto.model import Kind, Lane
from windrow_proto.segments import read_log
from windrow_proto.wire_link import decode_gap, encode_gap


@pytest.fixture
def t(tmp_path):
    return Telemetry(tmp_path)


def body(t, value=1):
    return batch(t.clock.wall_ns(), {("", 101): value})


async def test_what_was_answered_survives_a_power_cut(t):
    await t.send(1, body(t))
    t.disk.crash()
    t.reopen()
    assert t.have() == ((1, 1),)


async def test_control_what_was_appended_without_fsync_does_not(t):
    t.service.log._log.append(b"written, never synced")
    t.disk.crash()
    assert list(read_log(t.disk, f"{t.directory}/log/000000000001")) == []


async def test_a_failed_fsync_answers_nobody_and_the_next_write_begins_a_new_segment(t):
    await t.send(1, body(t))
    t.disk.inject("sync", errno.EIO)
    with pytest.raises(StorageFailed):
        await t.send(2, body(t))
    assert t.have() == ((1, 1),)
    assert t.service.log.problem
    await t.send(3, body(t))
    assert not t.service.log.problem
    t.disk.crash()
    t.reopen()
    assert t.have() == ((1, 1), (3, 3))
    assert [at.segment for at, _ in read_log(t.disk, f"{t.directory}/log/000000000001")] == [1, 2]


async def test_a_number_of_a_segment_that_was_taken_back_is_not_used_again(t):
    t.disk.inject("sync", errno.EIO)
    with pytest.raises(StorageFailed):
        await t.send(1, body(t))
    await t.send(2, body(t))
    assert [at.segment for at, _ in read_log(t.disk, f"{t.directory}/log/000000000001")] == [2]


async def test_what_fails_goes_on_failing_until_the_disk_works_again(t):
    t.disk.inject("sync", errno.EIO)
    with pytest.raises(StorageFailed):
        await t.send(1, body(t))
    t.disk.inject("append", errno.EIO)
    with pytest.raises(StorageFailed):
        await t.send(2, body(t))
    await t.send(3, body(t))
    assert t.have() == ((3, 3),)
    assert t.service.log.figures.failed_fsyncs == 1


async def test_a_full_disk_refuses_and_the_log_goes_on_when_there_is_room(t):
    await t.send(1, body(t))
    t.disk.inject("append", errno.ENOSPC)
    with pytest.raises(StorageFailed):
        await t.send(2, body(t))
    await t.send(3, body(t))
    t.disk.crash()
    t.reopen()
    assert t.have() == ((1, 1), (3, 3))


async def test_marks_cover_all_terms(t):
    await t.send(1, body(t))
    t.reopen()
    await t.send(2, body(t))
    t.reopen()
    assert t.have() == ((1, 2),)
    assert t.service.log.epochs() == (1, 2, 3)


async def test_a_gap_counts_as_had_also_after_a_restart(t):
    gap = encode_gap(Gap(Lane.TELEMETRY, BOOT, ((1, 4),), "spool_cap"))
    await t.send(5, gap, kind=Kind.GAP)
    assert t.have() == ((1, 5),)
    t.disk.crash()
    t.reopen()
    assert t.have() == ((1, 5),)


async def test_a_checkpoint_keeps_the_marks_of_segments_that_were_dropped(t):
    await t.send(1, body(t))
    t.service.log._log.roll()
    t.clock.advance(KEEP_NS + CHECKPOINT_EVERY_NS)
    await t.send(2, body(t))
    t.service.log.run_retention()
    await t.send(3, body(t))
    assert t.service.log.figures.dropped_segments == 0, "the segment after it began only now"
    t.clock.advance(KEEP_NS + CHECKPOINT_EVERY_NS)
    t.service.log.run_retention()
    await t.send(4, body(t))
    assert t.service.log.figures.dropped_segments == 1
    t.disk.crash()
    t.reopen()
    assert t.have() == ((1, 4),)


async def test_a_segment_that_the_view_has_not_passed_is_kept(t):
    await t.send(1, body(t))
    t.service.log._log.roll()
    await t.send(2, body(t))
    t.clock.advance(KEEP_NS + CHECKPOINT_EVERY_NS)
    t.service.log.run_retention([LogPosition(1, 1, 20)])
    await t.send(3, body(t))
    assert t.service.log.figures.dropped_segments == 0


async def test_many_appends_share_one_fsync(t):
    before = t.service.log.figures.fsyncs
    await asyncio.gather(*(t.send(n, body(t)) for n in range(1, 51)))
    assert t.service.log.figures.fsyncs == before + 1
    assert t.have() == ((1, 50),)


async def test_what_comes_twice_over_a_dying_connection_and_the_next_is_stored_once(t):
    await asyncio.gather(t.send(1, body(t)), t.send(1, body(t)), t.send(2, body(t)))
    await t.send(1, body(t))
    assert t.have() == ((1, 2),)
    assert len(list(read_log(t.disk, f"{t.directory}/log/000000000001"))) == 2


async def test_who_brings_again_what_is_being_written_hears_that_it_could_not_be(t):
    t.disk.inject("sync", errno.EIO)
    said = await asyncio.gather(t.send(1, body(t)), t.send(1, body(t)), return_exceptions=True)
    assert [type(one) for one in said] == [StorageFailed, StorageFailed]
    await t.send(1, body(t))
    assert t.have() == ((1, 1),)


def test_a_damaged_checkpoint_is_said_and_the_log_read_instead(tmp_path):
    t = Telemetry(tmp_path)
    t.disk.append(f"{tmp_path}/log/marks.json", b"{broken")
    t.reopen()
    assert t.have() == ()
    with pytest.raises(InvalidInput):
        MarkBook.from_checkpoint(b'{"version": 9}')


def test_a_checkpoint_reads_back_as_it_was():
    book = MarkBook()
    for n in (1, 2, 5):
        book.add(HOST, BOOT, n, 7)
    again, through = MarkBook.from_checkpoint(book.to_checkpoint(LogPosition(3, 4, 5)))
    assert again.have(HOST, BOOT).ranges == ((1, 2), (5, 5))
    assert through == LogPosition(3, 4, 5)
    assert again.forget_before(8) == 1


async def test_a_leader_that_was_overtaken_while_records_waited_writes_nothing_and_no_checkpoint(t, monkeypatch):
    await t.send(1, body(t))
    log = f"{t.directory}/log"

    def files():
        return {name: t.disk.size(f"{log}/{name}") for name in t.disk.list(log) if "." in name}

    def over():
        raise Fenced("another may lead")

    segment = f"{log}/{t.epoch:012d}/000000000001.seg"
    before = files(), t.disk.size(segment)
    monkeypatch.setattr(t.service.log, "_check_term", over)
    with pytest.raises(Fenced):
        await t.send(2, body(t))
    t.service.log.close()

    assert (files(), t.disk.size(segment)) == before
    assert t.have() == ((1, 1),)


async def test_what_was_stored_when_the_lead_was_lost_is_not_acknowledged_and_not_stored_again(t, monkeypatch):
    asked: list[None] = []

    def over_after_the_write():
        asked.append(None)
        if len(asked) == 2:
            raise Fenced("another may lead")

    monkeypatch.setattr(t.service.log, "_check_term", over_after_the_write)
    with pytest.raises(Fenced):
        await t.send(1, body(t))
    records = t.service.log.figures.records
    await t.send(1, body(t))

    assert (records, t.service.log.figures.records) == (1, 1)
    assert t.have() == ((1, 1),)


async def test_the_live_view_shows_the_last_instant_and_the_network_as_a_rate(t):
    at = t.clock.wall_ns()
    await t.send(1, batch(at, {("", 104): 1000, ("GPU-1", 1): 10}, {("", 104): 1500, ("GPU-1", 1): None}))
    reading = t.service.live.get(HOST)
    assert reading.get("", 104) == 1500 * 1024
    assert reading.get("GPU-1", 1) is None
    assert reading.rates == {"rx_bps": 500 * 1024 * 8}
    version = t.service.live.version
    await t.service.append(HOST, [record(1, batch(at, {("", 104): 9}))])
    assert t.service.live.version == version, "an older batch does not go back in time"
    assert t.service.live.since(version) == ()


async def test_a_rate_needs_two_instants_and_the_one_before_counts_although_nobody_looked_at_it(t):
    at = t.clock.wall_ns()
    await t.send(1, batch(at, {("", 104): 1000}))
    await t.send(2, batch(at + 2 * SECOND, {("", 104): 1500}))
    assert t.service.live.get(HOST).rates == {"rx_bps": 250 * 1024 * 8}
    await t.send(3, batch(at + 3 * SECOND, {("", 104): 1600}))
    assert t.service.live.get(HOST).rates == {"rx_bps": 100 * 1024 * 8}


async def test_an_unreadable_batch_is_stored_and_counted_and_hides_nothing(t):
    await t.send(1, batch(t.clock.wall_ns(), {("", 101): 5}))
    assert t.service.live.get(HOST).get("", 101) == 0.005
    await t.send(2, b"\xff\xff\xff")
    assert t.service.live.get(HOST).get("", 101) == 0.005
    assert t.service.live.bad_batches == 1


async def test_a_view_that_does_not_know_its_place_yet_keeps_every_segment(t):
    await t.send(1, body(t))
    t.service.log._log.roll()
    await t.send(2, body(t))
    t.clock.advance(KEEP_NS + CHECKPOINT_EVERY_NS)
    t.service.log.run_retention([LogPosition(1, 9, 20), None])
    await t.send(3, body(t))
    assert t.service.log.figures.dropped_segments == 0


async def test_the_disk_budget_takes_the_oldest_first_and_tells_what_nobody_had_read(t):
    forced: list[Any] = []
    t.service.log._retention = Retention(bytes_max=1)
    t.service.log.on_forced(forced.append)
    for n in (1, 2, 3):
        await t.send(n, body(t))
        t.service.log._log.roll()
    await t.send(4, body(t))
    t.clock.advance(CHECKPOINT_EVERY_NS)
    t.service.log.run_retention([LogPosition(1, 3, 20)])
    await t.send(5, body(t))
    assert forced == [Forced(1, (1, 2, 3), (3,))]
    assert (t.service.log.figures.forced_segments, t.service.log.figures.unread_segments) == (3, 1)
    await t.send(6, body(t))
    told = [records.decode(payload) for _, payload in read_log(t.disk, f"{t.directory}/log/000000000001")]
    gaps = [decode_gap(one.body) for one in told if one.kind is Kind.GAP]
    assert [(gap.reason, gap.ranges) for gap in gaps] == [("log_budget", ((3, 3),))]
    t.disk.crash()
    t.reopen()
    assert t.have() == ((1, 6),), "the checkpoint remembers what the budget took"


async def test_the_disk_budget_never_takes_the_segment_that_is_written(t):
    t.service.log._retention = Retention(bytes_max=0)
    await t.send(1, body(t))
    t.clock.advance(CHECKPOINT_EVERY_NS)
    t.service.log.run_retention()
    await t.send(2, body(t))
    assert t.service.log.figures.forced_segments == 0
