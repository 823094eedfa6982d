"""The journal after every crash."""

import asyncio
import errno
from dataclasses import replace
from unittest import mock

import pytest

from windrow_agent.core import command as c
from windrow_agent.core import lease, workload
from windrow_agent.storage import journal as j
from windrow_agent.storage.journal import Journal
from windrow_agent.threads import InlineRunner
from windrow_proto.clock import SystemClock
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import StorageFailed
from windrow_proto.ids import ClusterId, CommandId, SlotId, WorkloadId
from windrow_proto.model import Command, CommandKind, SlotGrant, WorkloadPhase, WorkloadSpec
from windrow_proto.units import DAY, KIB, MINUTE

WORK = WorkloadId("work_" + "1" * 32)
SPEC = WorkloadSpec(
    WORK, ClusterId("cluster_" + "2" * 32), (SlotGrant(SlotId("GPU-1"), 7),), "process", lease_ns=MINUTE
)
COMMAND = Command(CommandId("cmd_" + "3" * 32), CommandKind.CREATE, create=SPEC)


def _open(disk, now=lambda: 0, kernel="boot-1", compact_bytes=j.COMPACT_BYTES):
    return Journal(disk, "/journal", now, kernel, compact_bytes)


def _received(book=None):
    book = lease.grant(lease.mark(book or lease.LeaseBook(), WORK, SPEC.slots), SPEC, 0)
    state = c.CommandState(COMMAND.command_id, c.Phase.RECEIVED)
    return [
        j.command_fact(state, COMMAND, 0),
        *j.slot_facts(book, SPEC.slots),
        j.lease_fact(book.leases[WORK], "boot-1"),
        j.workload_fact(workload.begin(SPEC), False),
    ]


def test_everything_written_is_there_after_a_power_cut():
    disk = MemoryDisk()
    journal = _open(disk)
    journal.write([*_received(), j.tombstone(WorkloadId("work_gone"), 5), j.epoch_fact(9)])
    disk.crash()
    again = _open(disk)
    entry = again.commands[COMMAND.command_id]
    assert (entry.command, entry.state.phase) == (COMMAND, c.Phase.RECEIVED)
    assert again.workloads[WORK].state == workload.begin(SPEC)
    assert again.book.marks == {SlotId("GPU-1"): lease.SlotMark(7, WORK)}
    assert again.book.leases[WORK].lease_until_ns == MINUTE
    assert (again.tombstones, again.epoch) == ({WorkloadId("work_gone"): 5}, 9)
    assert again == again and again.unreadable == 0


async def test_who_waits_for_a_lease_goes_on_with_the_write_that_brings_one():
    writer = j.JournalWriter(_open(MemoryDisk()), InlineRunner(SystemClock()))
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(writer.wait_leased())
        await writer.write([j.epoch_fact(9)])
        await asyncio.sleep(0)
        assert not waiting.done()
        await writer.write(_received())
    await writer.wait_leased()  # there is one: at once


def test_a_write_that_failed_promises_nothing_and_memory_agrees():
    disk = MemoryDisk()
    journal = _open(disk)
    disk.inject("sync", errno.EIO)
    try:
        journal.write(_received())
    except StorageFailed:
        pass
    assert journal.commands == {}


def test_a_result_never_changes_whatever_is_written_after_it():
    disk = MemoryDisk()
    journal = _open(disk)
    journal.write(_received())
    done = c.CommandState(COMMAND.command_id, c.Phase.SUCCEEDED, result={"pid": "1"})
    journal.write([j.command_fact(done, None, 1)])
    journal.write([j.command_fact(replace(done, phase=c.Phase.FAILED), None, 2)])
    assert _open(disk).commands[COMMAND.command_id].state == done


def test_the_highest_token_stays_through_restarts_and_compaction():
    disk = MemoryDisk()
    journal = _open(disk)
    journal.write([("slot", "GPU-1", 7, WORK), ("slot", "GPU-1", 3, "work_old")])
    journal.compact()
    assert _open(disk).book.marks == {SlotId("GPU-1"): lease.SlotMark(7, WORK)}


def test_a_lease_of_an_earlier_kernel_is_over():
    disk = MemoryDisk()
    _open(disk).write(_received())
    book = _open(disk, kernel="boot-2").book
    assert [lapse.workload_id for lapse in lease.lapsed(book, 1)] == [WORK]


def test_compaction_keeps_every_fact_and_the_journal_small():
    disk = MemoryDisk()
    journal = _open(disk, compact_bytes=64 * KIB)
    journal.write(_received())
    for number in range(3000):
        state = replace(workload.begin(SPEC), receipts=number, phase=WorkloadPhase.RUNNING)
        journal.write([j.workload_fact(state, False)])
    again = _open(disk)
    assert again.workloads[WORK].state.receipts == 2999
    assert again.commands[COMMAND.command_id].command == COMMAND
    assert sum(disk.size(f"/journal/{name}") for name in disk.list("/journal")) < 128 * KIB


def test_a_power_cut_anywhere_in_compaction_loses_nothing():
    for operation in ("append", "sync", "sync_directory", "delete"):
        for skip in range(4):
            disk = MemoryDisk()
            journal = _open(disk)
            journal.write([*_received(), j.epoch_fact(4)])
            disk.inject(operation, errno.EIO, skip=skip, times=100)
            try:
                journal.compact()
            except StorageFailed:
                pass
            disk.crash(keep_unsynced=lambda path, count: count // 2)
            again = _open(disk)
            assert (again.epoch, again.commands[COMMAND.command_id].state.phase) == (4, c.Phase.RECEIVED)


def test_beyond_the_newest_old_results_and_tombstones_are_forgotten_in_their_time(monkeypatch):
    monkeypatch.setattr(j, "RESULTS_KEPT", 0)
    monkeypatch.setattr(j, "TOMBSTONES_KEPT", 0)
    disk, now = MemoryDisk(), [0]
    journal = _open(disk, now=lambda: now[0])
    journal.write([*_received(), j.tombstone(WORK, 0)])
    journal.write([j.command_fact(c.CommandState(COMMAND.command_id, c.Phase.FAILED), None, 0)])
    now[0] = 8 * DAY
    journal.compact()
    assert (list(journal.commands), list(journal.tombstones)) == ([], [WORK])
    now[0] = 31 * DAY
    journal.compact()
    assert list(_open(disk).tombstones) == []


@pytest.mark.parametrize("jump_ns", [10 * 365 * DAY, -10 * 365 * DAY])
def test_a_wall_clock_that_jumps_ten_years_brings_nothing_back(jump_ns):
    disk, now = MemoryDisk(), [50 * 365 * DAY]
    journal = _open(disk, now=lambda: now[0])
    done = c.CommandState(COMMAND.command_id, c.Phase.SUCCEEDED)
    journal.write([*_received(), j.tombstone(WORK, now[0]), j.command_fact(done, None, now[0])])
    before = journal.book
    now[0] += jump_ns
    journal.compact()
    again = _open(disk, now=lambda: now[0])
    assert (list(again.tombstones), again.commands[COMMAND.command_id].state) == ([WORK], done)
    assert again.book == before, "deadlines are on the monotonic clock of this boot"


def test_the_number_of_tombstones_is_bounded_and_the_oldest_go_first(monkeypatch):
    monkeypatch.setattr(j, "TOMBSTONES_MAX", 3)
    disk = MemoryDisk()
    journal = _open(disk)
    journal.write([j.tombstone(WorkloadId(f"work_{n}"), -n) for n in range(5)])
    journal.compact()
    assert list(_open(disk).tombstones) == ["work_2", "work_3", "work_4"]


def test_a_journal_whose_facts_alone_are_large_is_not_rewritten_at_every_write():
    disk = MemoryDisk()
    journal = _open(disk, compact_bytes=8 * KIB)
    journal.write([j.tombstone(WorkloadId(f"work_{n:032d}"), n) for n in range(500)])
    with mock.patch.object(journal, "rewrite", wraps=journal.rewrite) as rewrite:
        for number in range(200):
            journal.write([j.epoch_fact(number)])
    assert rewrite.call_count <= 1


def test_a_command_that_is_not_finished_is_never_forgotten():
    disk, now = MemoryDisk(), [0]
    journal = _open(disk, now=lambda: now[0])
    journal.write(_received())
    now[0] = 90 * DAY
    journal.compact()
    assert COMMAND.command_id in _open(disk).commands


def test_a_fact_that_cannot_be_read_is_counted_and_the_rest_stands():
    disk = MemoryDisk()
    journal = _open(disk)
    journal.write(_received())
    journal._log.append(b'["future", 1]')
    journal._log.sync()
    again = _open(disk)
    assert again.unreadable == 1
    assert COMMAND.command_id in again.commands
