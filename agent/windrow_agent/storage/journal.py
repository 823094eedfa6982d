"""The journal of this host: commands, workloads, tokens, leases, deletes and the epoch, kept through a power cut.

One record is one fact as it now is, so that reading any of them twice changes nothing. A write returns when it is on
the disk. Compaction writes every fact still wanted into a fresh segment, syncs it and only then drops the older ones;
a crash anywhere in between leaves either both or the old. Blocking: it has a thread of its own.
"""

import asyncio
import base64
import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from windrow_agent.core import command as commands
from windrow_agent.core import lease as leases
from windrow_agent.core.command import CommandState
from windrow_agent.core.lease import Lease, LeaseBook, SlotMark
from windrow_agent.core.workload import WorkloadState
from windrow_agent.threads import Runner
from windrow_proto.errors import StorageFailed, WindrowError
from windrow_proto.ids import ClusterId, CommandId, GpuUuid, SlotId, WorkloadId
from windrow_proto.model import Command, Isolation, SlotGrant, WorkloadPhase
from windrow_proto.ports import Disk
from windrow_proto.segments import Damage, SegmentLog
from windrow_proto.units import DAY, MIB
from windrow_proto.wire_command import decode_command, encode_command

SEGMENT_BYTES: Final = 1 * MIB
COMPACT_BYTES: Final = 4 * MIB
"""Above this, and above twice what it was last rewritten to, the journal is rewritten: read in a second at start."""
RESULT_KEPT_NS: Final = 7 * DAY
"""How long a finished command can still be answered for."""
TOMBSTONE_KEPT_NS: Final = 30 * DAY
"""How long a create that comes after its delete is recognised; no relay keeps a message that long."""
RESULTS_KEPT: Final = 1_000
TOMBSTONES_KEPT: Final = 5_000
"""So many of the newest stay whatever the clock says: a wall clock that jumps years must not bring anything back."""
COMMANDS_MAX: Final = 20_000
TOMBSTONES_MAX: Final = 50_000
"""Beyond this they are forgotten at compaction, oldest first, whatever the clock says."""

Fact = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command, how far it got, and when that was last written; command None: it was never whole (refused)."""

    command: Command | None
    state: CommandState
    at_wall_ns: int


@dataclass(frozen=True, slots=True)
class WorkloadEntry:
    """A workload and whether its final receipt has reached the spool."""

    state: WorkloadState
    is_final_spooled: bool = False


# --- facts to write -----------------------------------------------------------------------------------------------


def command_fact(state: CommandState, command: Command | None, at_wall_ns: int) -> Fact:
    """The progress of a command; the command itself, without what no disk may hold, is needed with the first fact only.
    Its environment stays sealed, and goes once the command is done."""
    if command is not None and command.create is not None:
        create = replace(command.create, registry_login=b"")
        done = replace(create, env={}, sealed_env=b"")
        command = replace(command, create=done if state.phase in commands.FINAL else create)
    body = base64.b64encode(encode_command(command)).decode() if command is not None else None
    return ("command", state.command_id, body, state.phase.name, _status(state), at_wall_ns)


def _flat(value: Any) -> dict[str, Any]:
    """Its fields as they are: `asdict` copies each of them deeply, which costs more than writing it down."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def workload_fact(state: WorkloadState, is_final_spooled: bool) -> Fact:
    """A workload as it is now."""
    fact = _flat(state) | {"slots": [_flat(slot) for slot in state.slots], "phase": state.phase.name}
    return ("workload", fact, is_final_spooled)


def workload_gone(workload_id: WorkloadId) -> Fact:
    """A workload nobody will ask about any more; its tombstone stays."""
    return ("workload_gone", workload_id)


def slot_facts(book: LeaseBook, slots: Iterable[SlotGrant]) -> list[Fact]:
    """The highest tokens of these slots."""
    marks = [(slot.slot_id, book.marks[slot.slot_id]) for slot in slots if slot.slot_id in book.marks]
    return [("slot", slot_id, mark.token, mark.workload_id) for slot_id, mark in marks]


def lease_fact(lease: Lease, kernel_boot: str) -> Fact:
    """A lease's deadlines, with the boot of the kernel whose monotonic clock they are on."""
    return ("lease", lease.workload_id, lease.token, lease.lease_until_ns, lease.paid_until_ns, kernel_boot)


def lease_gone(workload_id: WorkloadId) -> Fact:
    """A lease that ended."""
    return ("lease_gone", workload_id)


def tombstone(workload_id: WorkloadId, at_wall_ns: int) -> Fact:
    """A workload that was deleted, whether it was ever here or not."""
    return ("tombstone", workload_id, at_wall_ns)


def epoch_fact(epoch: int) -> Fact:
    """The highest Master epoch admitted."""
    return ("epoch", epoch)


class JournalWriter:
    """The journal as the loop uses it: one write at a time, the disk's half on its thread, memory changed here only."""

    def __init__(self, journal: "Journal", runner: Runner) -> None:
        self.journal, self._runner = journal, runner
        self._turn = asyncio.Lock()
        self._leased = asyncio.Event()

    async def write(self, facts: list[Fact]) -> None:
        """Journal.write, awaited."""
        if not facts:
            return
        async with self._turn:
            await self._runner.call(lambda: self.journal.store(facts))
            self.journal.apply(facts)
            if self.journal.book.leases:
                self._leased.set()
            if self.journal.is_large:
                snapshot = self.journal.snapshot()
                with contextlib.suppress(StorageFailed):  # the facts are stored; compaction is tried with the next
                    await self._runner.call(lambda: self.journal.rewrite(snapshot))

    async def wait_leased(self) -> None:
        """Until there is a lease, or at once where there is one: without any none can lapse."""
        if not self.journal.book.leases:
            self._leased.clear()
            await self._leased.wait()

    async def close(self) -> None:
        """Let go of the files."""
        async with self._turn:
            await self._runner.call(self.journal.close)


class Journal:
    """Reads everything at start; afterwards memory and disk say the same."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        wall_ns: Callable[[], int],
        kernel_boot: str,
        compact_bytes: int = COMPACT_BYTES,
    ) -> None:
        self.commands: dict[CommandId, CommandEntry] = {}
        self.workloads: dict[WorkloadId, WorkloadEntry] = {}
        self.tombstones: dict[WorkloadId, int] = {}
        self.book = LeaseBook()
        self.epoch = 0
        self.unreadable = 0
        self._wall_ns, self._kernel_boot, self._compact_bytes = wall_ns, kernel_boot, compact_bytes
        self._log = SegmentLog(disk, directory, SEGMENT_BYTES, wall_ns)
        self._rewritten_bytes = 0
        for _, payload in self._log.read():
            self._apply_payload(payload)

    @property
    def damaged(self) -> tuple[Damage, ...]:
        """Damage that was found at opening."""
        return self._log.damaged

    def write(self, facts: Iterable[Fact]) -> None:
        """Store facts, all together, and return when they would survive a power cut. Raises StorageFailed."""
        stored = list(facts)
        self.store(stored)
        self.apply(stored)
        if self.is_large:
            with contextlib.suppress(StorageFailed):  # the facts are stored; compaction is tried with the next
                self.compact()

    def store(self, facts: list[Fact]) -> None:
        """The disk's half of `write`; raises StorageFailed, and then nothing may be applied."""
        if facts:
            if self._log.is_broken:
                self._log.begin_anew()  # what was appended since its last fsync was never applied
            self._log.append_all([_encode(fact) for fact in facts])
            self._log.sync()

    def apply(self, facts: list[Fact]) -> None:
        """The memory's half of `write`."""
        for fact in facts:
            self._apply(json.loads(_encode(fact)))

    @property
    def is_large(self) -> bool:
        """True if the journal should be compacted: it is above its size, and mostly of facts that are no longer
        wanted."""
        return self._log.size_bytes > max(self._compact_bytes, 2 * self._rewritten_bytes)

    def compact(self) -> None:
        """Write what is still wanted anew and drop the rest. Raises StorageFailed; then nothing was dropped."""
        self.rewrite(self.snapshot())

    def snapshot(self) -> list[bytes]:
        """Every fact still wanted, as it is stored."""
        self._prune()
        return [_encode(fact) for fact in self._facts()]

    def rewrite(self, snapshot: list[bytes]) -> None:
        """The disk's half of `compact`."""
        self._log.roll()
        first: int | None = None
        for start in range(0, len(snapshot), 256):
            first = self._append(snapshot[start : start + 256], first)
        self._log.sync()
        if first is not None:
            self._log.drop_before(first)
        self._rewritten_bytes = self._log.size_bytes

    def close(self) -> None:
        """Let go of the files."""
        self._log.close()

    def _append(self, batch: list[bytes], first: int | None) -> int | None:
        positions = self._log.append_all(batch)
        return first if first is not None or not positions else positions[0].segment

    def _prune(self) -> None:
        """Forget what is old. Age is by the wall clock, which may jump: order and number have the last word."""
        now_ns = self._wall_ns()
        tombstones = list(self.tombstones.items())
        for place, (workload_id, at_wall_ns) in enumerate(reversed(tombstones)):
            is_old = place >= TOMBSTONES_KEPT and now_ns - at_wall_ns >= TOMBSTONE_KEPT_NS
            if is_old or place >= TOMBSTONES_MAX:
                del self.tombstones[workload_id]
        done = [(entry.at_wall_ns, key) for key, entry in self.commands.items() if entry.state.phase in commands.FINAL]
        for place, (at_wall_ns, key) in enumerate(reversed(done)):
            is_old = place >= RESULTS_KEPT and now_ns - at_wall_ns >= RESULT_KEPT_NS
            if is_old or place >= COMMANDS_MAX:
                del self.commands[key]

    def owes_final(self, workload_id: WorkloadId) -> bool:
        """True if this workload's final receipt is due and has not reached the spool."""
        entry = self.workloads.get(workload_id)
        return entry is not None and entry.state.is_final_sent and not entry.is_final_spooled

    def _facts(self) -> Iterable[Fact]:
        yield epoch_fact(self.epoch)
        for slot_id, mark in self.book.marks.items():
            yield ("slot", slot_id, mark.token, mark.workload_id)
        for lease in self.book.leases.values():
            yield lease_fact(lease, self._kernel_boot)
        for workload_id, at_wall_ns in self.tombstones.items():
            yield tombstone(workload_id, at_wall_ns)
        for work in self.workloads.values():
            yield workload_fact(work.state, work.is_final_spooled)
        for entry in self.commands.values():
            yield command_fact(entry.state, entry.command, entry.at_wall_ns)

    def _apply_payload(self, payload: bytes) -> None:
        try:
            self._apply(json.loads(payload))
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError, WindrowError):
            self.unreadable += 1  # written by a newer agent, or damage that its checksum missed

    def _apply(self, fact: list[Any]) -> None:
        match fact[0]:
            case "command":
                self._apply_command(fact)
            case "workload":
                state = _workload(fact[1])
                self.workloads[state.workload_id] = WorkloadEntry(state, bool(fact[2]))
            case "workload_gone":
                self.workloads.pop(WorkloadId(fact[1]), None)
            case "slot":
                self._apply_slot(SlotId(fact[1]), int(fact[2]), WorkloadId(fact[3]))
            case "lease":
                self._apply_lease(fact)
            case "lease_gone":
                self.book = leases.release(self.book, WorkloadId(fact[1]))
            case "tombstone":
                self.tombstones.setdefault(WorkloadId(fact[1]), int(fact[2]))
            case "epoch":
                self.epoch = max(self.epoch, int(fact[1]))
            case other:
                raise ValueError(f"unknown fact {other!r}")

    def _apply_command(self, fact: list[Any]) -> None:
        command_id = CommandId(fact[1])
        before = self.commands.get(command_id)
        command = decode_command(base64.b64decode(fact[2])) if fact[2] else before.command if before else None
        state = CommandState(command_id, commands.Phase[fact[3]], **fact[4])
        if before is not None and before.state.phase in commands.FINAL:
            state = before.state  # a result never changes, whatever was written after it
        self.commands[command_id] = CommandEntry(command, state, int(fact[5]))

    def _apply_slot(self, slot_id: SlotId, token: int, workload_id: WorkloadId) -> None:
        known = self.book.marks.get(slot_id)
        if known is None or token >= known.token:
            self.book = replace(self.book, marks={**self.book.marks, slot_id: SlotMark(token, workload_id)})

    def _apply_lease(self, fact: list[Any]) -> None:
        _, workload_id, token, lease_until_ns, paid_until_ns, kernel_boot = fact
        if kernel_boot != self._kernel_boot:
            # Another boot: its clock is gone and so is whatever ran. What survived has nobody's word for its time.
            lease_until_ns = paid_until_ns = 0
        lease = Lease(WorkloadId(workload_id), int(token), lease_until_ns, paid_until_ns)
        self.book = replace(self.book, leases={**self.book.leases, lease.workload_id: lease})


def _encode(fact: Fact) -> bytes:
    return json.dumps(fact, separators=(",", ":")).encode()


def _status(state: CommandState) -> Mapping[str, Any]:
    return {
        "step": state.step,
        "progress_permille": state.progress_permille,
        "error_code": state.error_code,
        "error_detail": state.error_detail,
        "result": dict(state.result),
    }


def _workload(record: Mapping[str, Any]) -> WorkloadState:
    fields = {
        **record,
        "workload_id": WorkloadId(record["workload_id"]),
        "cluster_id": ClusterId(record["cluster_id"]),
        "slots": tuple(_grant(slot) for slot in record["slots"]),
        "phase": WorkloadPhase[record["phase"]],
    }
    return WorkloadState(**fields)


def _grant(record: Mapping[str, Any]) -> SlotGrant:
    isolation = Isolation(record.get("isolation", 0))  # older agents did not write it
    return SlotGrant(SlotId(record["slot_id"]), int(record["token"]), GpuUuid(record["gpu_uuid"]), isolation)
