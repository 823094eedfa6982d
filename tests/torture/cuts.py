"""Power cuts while records are written, and judges of what must be there afterwards: the spool, the journal, the
Master's log.

A scenario runs once by its seed; at calls chosen by luck an image of the disk is taken, together with what had been
promised by then. Each image is opened by the shipped code and judged.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tests.master_support import START_NS, ManualClock
from tests.torture.platter import Platter
from windrow_agent.core.command import CommandState, Phase
from windrow_agent.core.lease import Lease, LeaseBook, SlotMark
from windrow_agent.core.workload import WorkloadState
from windrow_agent.link.spool import EXPENDABLE, Spool, SpoolCaps
from windrow_agent.storage import journal as facts
from windrow_agent.storage.journal import Journal
from windrow_master.telemetry import record as log_records
from windrow_master.telemetry.model import LogRecord
from windrow_master.telemetry.segment_log import TelemetryLog
from windrow_proto.errors import StorageFailed
from windrow_proto.ids import BootId, ClusterId, CommandId, GpuUuid, HostId, SlotId, WorkloadId
from windrow_proto.intervals import Intervals
from windrow_proto.model import Command, CommandKind, Kind, Lane, SlotGrant, WorkloadPhase
from windrow_proto.segments import read_log
from windrow_proto.units import SECOND
from windrow_proto.windows import RecordKey
from windrow_proto.wire_link import decode_gap

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Cut(Generic[P]):
    """A disk as a power cut left it, what was promised when it came, and where."""

    disk: Platter
    promise: P
    operation: str


@dataclass
class Cutter(Generic[P]):
    """Takes images of a disk while a scenario runs on it. promise: what holds at this moment."""

    disk: Platter
    luck: random.Random
    promise: Callable[[], P]
    share: float
    cuts: list[Cut[P]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.disk.before_change = self._look

    def _look(self, operation: str) -> None:
        if self.luck.random() < self.share:
            self.cuts.append(Cut(self.disk.image(self.luck), self.promise(), operation))


# --- the spool --------------------------------------------------------------------------------------------------------

SPOOL_CAPS = SpoolCaps(7_000, 6_000, 2_000, 10**15, 2_048, 0)
EVIDENCE = (Kind.RECEIPT, Kind.COMMAND_STATUS, Kind.OBSERVED, Kind.EVENT)


@dataclass(frozen=True, slots=True)
class SpoolPromise:
    """held: what must be there, or be told as lost where a cap may force it out; written: all that was ever given."""

    held: frozenset[tuple[Lane, RecordKey]]
    written: dict[tuple[Lane, RecordKey], tuple[Kind, bytes]]


class SpoolScenario:
    """Appends, acknowledges, overflows, starts again."""

    def __init__(self, seed: int, share: float, disk: Platter | None = None) -> None:
        self.luck = random.Random(seed)
        self.disk = disk or Platter()
        self.written: dict[tuple[Lane, RecordKey], tuple[Kind, bytes]] = {}
        self.held: frozenset[tuple[Lane, RecordKey]] = frozenset()
        self.cutter = Cutter(self.disk, random.Random(seed + 1), lambda: SpoolPromise(self.held, self.written), share)
        self.now_ns = START_NS
        self.boots = self.refused = 0

    def run(self, steps: int = 60) -> list[Cut[SpoolPromise]]:
        """All of it; returns what was cut."""
        spool = self._open()
        for _ in range(steps):
            self.now_ns += SECOND
            choice = self.luck.random()
            if choice < 0.7:
                self._append(spool)
            elif choice < 0.93:
                self._acknowledge(spool)
            else:
                spool.close()
                spool = self._open()
        return self.cutter.cuts

    def _open(self) -> Spool:
        self.boots += 1
        boot = BootId(self.boots.to_bytes(16, "big"))
        return Spool(self.disk, "/spool", boot, lambda: self.now_ns, SPOOL_CAPS)

    def _append(self, spool: Spool) -> None:
        lane = self.luck.choice((Lane.EVIDENCE, Lane.TELEMETRY))
        kinds = EVIDENCE if lane is Lane.EVIDENCE else (Kind.TELEMETRY,)
        count = self.luck.randint(1, 3)
        messages = [
            (self.luck.choice(kinds), self.luck.randbytes(self.luck.randint(1, 900 if lane is Lane.TELEMETRY else 200)))
            for _ in range(count)
        ]
        try:
            keys = spool.append(lane, messages)
        except StorageFailed:  # full of receipts and results, which nothing may force out
            self.refused += 1
            self._acknowledge(spool)
            return
        mine = [key for key in keys if (record := spool.record(lane, key)) is not None and record.kind is not Kind.GAP]
        for key, message in zip(mine, messages, strict=True):
            self.written[lane, key] = message
        self.held = self._now_held(spool)

    def _acknowledge(self, spool: Spool) -> None:
        lane = self.luck.choice((Lane.EVIDENCE, Lane.TELEMETRY))
        waiting = spool.waiting(lane)
        taken = waiting[: self.luck.randint(0, len(waiting))]
        self.held -= {(lane, key) for key in taken}
        spool.acknowledged(lane, taken)

    def _now_held(self, spool: Spool) -> frozenset[tuple[Lane, RecordKey]]:
        keys = {(lane, key) for lane in (Lane.EVIDENCE, Lane.TELEMETRY) for key in spool.waiting(lane)}
        return frozenset(keys & self.written.keys())


def judge_spool(cut: Cut[SpoolPromise]) -> list[str]:
    """Returns the faults of the spool that the next start finds."""
    spool = Spool(cut.disk, "/spool", BootId(b"\xff" * 16), lambda: START_NS, SPOOL_CAPS)
    faults: list[str] = []
    found: set[tuple[Lane, RecordKey]] = set()
    told: dict[tuple[Lane, BootId], Intervals] = {}
    for lane in (Lane.EVIDENCE, Lane.TELEMETRY):
        for key in spool.waiting(lane):
            record = spool.record(lane, key)
            if record is None:
                faults.append(f"{lane.name} {key} is named and cannot be read")
                continue
            if record.kind is Kind.GAP:
                gap = decode_gap(record.body)
                place = gap.lane, gap.origin_boot
                told[place] = told.get(place, Intervals()).union(Intervals(gap.ranges))
                continue
            found.add((lane, key))
            given = cut.promise.written.get((lane, key))
            if given is not None and given != (record.kind, record.body):
                faults.append(f"{lane.name} {key} is not what was written")
    for lane, key in cut.promise.held - found:
        kind = cut.promise.written[lane, key][0]
        is_told = told.get((lane, key.origin_boot), Intervals()).contains(key.origin_sequence)
        if not (is_told and (lane is Lane.TELEMETRY or kind in EXPENDABLE)):
            faults.append(f"{lane.name} {kind.name} {key} is lost")
    spool.append(Lane.EVIDENCE, [(Kind.RECEIPT, b"after the cut")])
    return faults


# --- the journal ------------------------------------------------------------------------------------------------------

Facts = dict[tuple[str, str], object]


@dataclass(frozen=True, slots=True)
class JournalPromise:
    """The facts as the last finished write left them, and as the write under way will leave them."""

    before: Facts
    after: Facts


class JournalScenario:
    """Commands, workloads, tokens, leases, deletes and epochs, with compactions."""

    def __init__(self, seed: int, share: float, disk: Platter | None = None) -> None:
        self.luck = random.Random(seed)
        self.disk = disk or Platter()
        self.now = JournalPromise({}, {})
        self.cutter = Cutter(self.disk, random.Random(seed + 1), lambda: self.now, share)

    def run(self, steps: int = 60) -> list[Cut[JournalPromise]]:
        """All of it; returns what was cut."""
        journal = open_journal(self.disk)
        for number in range(steps):
            stored = self._facts(number, journal)
            twin = Journal(Platter(), "/twin", lambda: START_NS, "boot")
            assert facts_of(journal) == self.now.before, "memory and what was written differ"
            twin.commands, twin.workloads = dict(journal.commands), dict(journal.workloads)
            twin.tombstones, twin.book, twin.epoch = dict(journal.tombstones), journal.book, journal.epoch
            twin.apply(stored)
            self.now = JournalPromise(self.now.before, facts_of(twin))
            journal.write(stored)
            self.now = JournalPromise(self.now.after, self.now.after)
            if self.luck.random() < 0.05:
                journal.close()
                journal = open_journal(self.disk)
        return self.cutter.cuts

    def _facts(self, number: int, journal: Journal) -> list[facts.Fact]:
        workload = WorkloadId(f"work_{self.luck.randint(1, 12)}")
        token = number + 1
        slots = (SlotGrant(SlotId(f"cpu/{self.luck.randint(0, 3)}"), token, GpuUuid("")),)
        command_id = CommandId(f"cmd_{self.luck.randint(1, 15)}")
        match self.luck.randint(0, 5):
            case 0:
                command = Command(command_id, CommandKind.BENCHMARK)
                phase = self.luck.choice((Phase.RECEIVED, Phase.RUNNING, Phase.SUCCEEDED))
                return [facts.command_fact(CommandState(command_id, phase, step="x"), command, START_NS)]
            case 1:
                book = LeaseBook(marks={slots[0].slot_id: SlotMark(token, workload)})
                lease = Lease(workload, token, self.luck.randint(1, 99), 99)
                state = WorkloadState(workload, ClusterId("cluster_1"), slots, "process")
                return [
                    *facts.slot_facts(book, slots),
                    facts.lease_fact(lease, "boot"),
                    facts.workload_fact(state, False),
                ]
            case 2:
                phase_now = self.luck.choice((WorkloadPhase.RUNNING, WorkloadPhase.GONE))
                state = WorkloadState(workload, ClusterId("cluster_1"), slots, "process", phase=phase_now, running_ns=7)
                return [facts.workload_fact(state, self.luck.random() < 0.5)]
            case 3:
                return [facts.tombstone(workload, START_NS), facts.lease_gone(workload)]
            case 4:
                return [facts.epoch_fact(journal.epoch + self.luck.randint(0, 2))]
            case _:
                return [facts.workload_gone(workload)]


def open_journal(disk: Platter) -> Journal:
    """The journal as an agent opens it; compacted often."""
    return Journal(disk, "/journal", lambda: START_NS, "boot", compact_bytes=4_000)


def facts_of(journal: Journal) -> Facts:
    """All that a journal knows."""
    found: Facts = {("epoch", ""): journal.epoch}
    found |= {("command", key): (entry.command, entry.state) for key, entry in journal.commands.items()}
    found |= {("workload", key): entry for key, entry in journal.workloads.items()}
    found |= {("tombstone", key): at for key, at in journal.tombstones.items()}
    found |= {("slot", key): mark for key, mark in journal.book.marks.items()}
    found |= {("lease", key): lease for key, lease in journal.book.leases.items()}
    return {key: value for key, value in found.items() if value != 0}


def judge_journal(cut: Cut[JournalPromise]) -> list[str]:
    """Returns the faults of the journal that the next start finds: a fact is as before or as after the last write."""
    journal = open_journal(cut.disk)
    found = facts_of(journal)
    keys = found.keys() | cut.promise.before.keys() | cut.promise.after.keys()
    faults = [
        f"{key} is {found.get(key)}, was {cut.promise.before.get(key)}"
        for key in keys
        if found.get(key) not in (cut.promise.before.get(key), cut.promise.after.get(key))
    ]
    journal.write([facts.epoch_fact(journal.epoch + 1)])
    return faults + (["facts were unreadable"] if journal.unreadable else [])


# --- the Master's log -------------------------------------------------------------------------------------------------


class Now:
    """An executor that does it at once: the log without a loop between."""

    def write(self, work: Callable[[], None], done: Callable[[], None]) -> None:
        """Do it."""
        work()
        done()

    async def read(self, work: Callable[[], P]) -> P:
        """Do it."""
        return work()

    def close(self) -> None:
        """Nothing is held."""


Stored = dict[tuple[str, bytes, int], bytes]


@dataclass(frozen=True, slots=True)
class LogPromise:
    """acked: what was answered as stored; given: all that was ever handed over."""

    acked: frozenset[tuple[str, bytes, int]]
    given: Stored
    epoch: int


class LogScenario:
    """Appends of many hosts, checkpoints, new terms."""

    def __init__(self, seed: int, share: float, disk: Platter | None = None) -> None:
        self.luck = random.Random(seed)
        self.disk = disk or Platter()
        self.clock = ManualClock()
        self.given: Stored = {}
        self.acked: frozenset[tuple[str, bytes, int]] = frozenset()
        self.epoch = 0
        self.cutter = Cutter(self.disk, random.Random(seed + 1), self._promise, share)

    def _promise(self) -> LogPromise:
        return LogPromise(self.acked, self.given, self.epoch)

    def _open(self) -> TelemetryLog:
        self.epoch += 1
        return open_log(self.disk, self.epoch, self.clock)

    async def run(self, steps: int = 40) -> list[Cut[LogPromise]]:
        """All of it; returns what was cut."""
        log = self._open()
        following: dict[tuple[str, bytes], int] = {}
        for _ in range(steps):
            host, boot = f"host_{self.luck.randint(1, 4)}", bytes([self.luck.randint(1, 2)]) * 16
            batch = []
            for _ in range(self.luck.randint(1, 4)):
                following[host, boot] = following.get((host, boot), 0) + 1
                body = self.luck.randbytes(self.luck.randint(1, 1_500))
                self.given[host, boot, following[host, boot]] = body
                number = following[host, boot]
                batch.append(LogRecord(HostId(host), BootId(boot), number, Kind.TELEMETRY, self.clock.wall_ns(), body))
            await log.append(batch)
            self.acked |= {(one.host_id, one.origin_boot, one.origin_sequence) for one in batch}
            self.clock.advance(30 * SECOND)
            log.run_retention()
            if self.luck.random() < 0.05:
                log.close()
                log = self._open()
        return self.cutter.cuts


def open_log(disk: Platter, epoch: int, clock: ManualClock) -> TelemetryLog:
    """The log of a term."""
    return TelemetryLog(disk, "/data/log", epoch, clock, Now())


def judge_log(cut: Cut[LogPromise]) -> list[str]:
    """Returns the faults of the log that the next term finds."""
    log = open_log(cut.disk, cut.promise.epoch + 1, ManualClock())
    stored: Stored = {}
    faults: list[str] = []
    for epoch in range(1, cut.promise.epoch + 1):
        for _, payload in read_log(cut.disk, f"/data/log/{epoch:012d}"):
            one = log_records.decode(payload)
            stored[one.host_id, one.origin_boot, one.origin_sequence] = one.body
    faults += [f"{key} is not what was given" for key, body in stored.items() if cut.promise.given.get(key) != body]
    for host, boot, number in cut.promise.acked:
        if (host, boot, number) not in stored:
            faults.append(f"{host} {number} was acknowledged and is lost")
        if not log.marks.have(HostId(host), BootId(boot)).contains(number):
            faults.append(f"{host} {number} was acknowledged and is asked for again")
    for host, boot in {(host, boot) for host, boot, _ in cut.promise.given}:
        have = log.marks.have(HostId(host), BootId(boot))
        false = [n for first, last in have.ranges for n in range(first, last + 1) if (host, boot, n) not in stored]
        faults += [f"{host} {n} counts as had and is not there" for n in false]
    return faults


@contextmanager
def without(patched: type, name: str) -> Iterator[None]:
    """While it lasts, a method does nothing: a protection that was removed."""
    kept = getattr(patched, name)
    setattr(patched, name, lambda self, *arguments: None)
    try:
        yield
    finally:
        setattr(patched, name, kept)
