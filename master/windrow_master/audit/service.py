"""The audit log's service: lists entries, verifies the chain, and moves the anchor, a signed head in a file beside the
database.

Whoever can write the database can rewrite the whole chain, or cut its tail. Neither fits the anchor, which needs the
Master's signing key. The anchor only moves over entries that follow from it, so a tampered log stops it, and is a
condition until a person has looked and taken it as it is. An anchor that is gone is not made anew but by a person.
Old entries move into signed files beside the database (sealing.py), and the chain with them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from windrow_master.audit import sealing
from windrow_master.audit.model import Head, Verdict, seal, unseal
from windrow_master.store.executors import Executor
from windrow_master.store.model import CHAIN_START, AuditEntry, AuditQuery
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.keys import DOMAIN_AUDIT, SigningKey, verify_signature
from windrow_proto.ports import Clock, Disk

ANCHOR: Final = "audit.anchor"
ANCHOR_BYTES_MAX: Final = 4_096
"""A sealed head is some 250 bytes."""
PROBLEM_CHARS_MAX: Final = 1_000

log = structlog.get_logger(__name__)


class AuditService:
    """The audit log of one Master. `checkpoint` regularly and before the end."""

    def __init__(
        self, store: Store, directory: Path, disk: Disk, signing: SigningKey, clock: Clock, executor: Executor
    ) -> None:
        self._store = store
        self._directory = str(directory)
        self._old = directory / sealing.FOLDER
        self._path = str(directory / ANCHOR)
        self._disk = disk
        self._signing = signing
        self._clock = clock
        self._executor = executor
        self._problem: str | None = None
        self._problem_since_ns = 0

    def start(self) -> None:
        """Anchor a log that has just begun, before anybody can have changed it; once, before the loop."""
        first, last = self._store.read_now(
            lambda uow: (uow.audit_log.list(limit=1), uow.audit_log.newest(AuditQuery(), None, 1))
        )
        if not first or first[0].number != 1 or first[0].epoch != self._store.epoch:
            return
        try:
            if self._anchor() is None:
                self._write(Head(last[0].number, last[0].chain, self._clock.wall_ns()))
        except InvalidInput as error:
            self._report(error.detail)
        except OSError as error:
            log.warning("audit_anchor_not_written", error=str(error))

    def problem(self) -> str | None:
        """The fault that the last checkpoint found, in words; None: there was none."""
        return self._problem

    def conditions(self) -> Iterator[Stated]:
        """The same for health."""
        if self._problem is not None:
            yield ConditionCode.AUDIT_BROKEN, f"The audit log is not intact. {self._problem}", self._problem_since_ns

    async def list(self, wanted: AuditQuery, before: int | None, limit: int) -> Sequence[AuditEntry]:
        """Entries, the latest first, from below number `before`."""
        return await self._store.read(lambda uow: uow.audit_log.newest(wanted, before, limit))

    async def verify(self, kept: Head | None = None) -> Verdict:
        """Recompute the whole chain and hold it against the anchor and a head that the caller kept."""
        try:
            anchor = await self._executor.read(self._anchor)
        except InvalidInput as error:
            return Verdict(0, None, error.detail, None, None)
        heads = [(name, head) for name, head in (("the anchor", anchor), ("the head you kept", kept)) if head]
        return self._vouched(await self._store.read(lambda uow: self._judge_all(uow, heads, anchor)))

    async def checkpoint(self) -> None:
        """Move the anchor to the newest entry, if everything since follows from it; else remember the problem."""
        try:
            anchor = await self._executor.read(self._anchor)
            verdict = self._vouched(await self._store.read(lambda uow: self._judge_since(uow, anchor)))
            self._report(verdict.problem)
            head = verdict.head
            if verdict.problem is None and anchor is not None and head is not None and anchor.number < head.number:
                await self._executor.read(lambda: self._write(replace(head, at_ns=self._clock.wall_ns())))
        except InvalidInput as error:
            self._report(error.detail)
        except OSError as error:
            log.warning("audit_anchor_not_written", error=str(error))

    async def reanchor(self, actor: str, reason: str) -> Verdict:
        """Take the log as it is, with what is wrong of it written into it, and anchor its end; what is found then."""
        found = await self.verify()

        def note(uow: UnitOfWork) -> Head:
            fields = {"problem": (self._problem or found.problem or "")[:PROBLEM_CHARS_MAX]}
            uow.audit(actor, "audit.reanchor", "audit", reason, fields)
            (last,) = uow.audit_log.newest(AuditQuery(), None, 1)
            return Head(last.number, last.chain, self._clock.wall_ns())

        head = await self._store.write(note, name="audit.reanchor")
        await self._executor.read(lambda: self._write(head))
        log.warning("audit_reanchored", actor=actor, problem=self._problem or found.problem)
        self._report(None)
        return await self.verify()

    async def seal(self, before_ns: int, most: int) -> int:
        """Move a whole part of the log that is older than this into a file, or take entries that are in one out of the
        database, at most so many; returns how many. Nothing is sealed or taken out that does not fit."""
        parts = await self._executor.read(lambda: sealing.files(self._old))
        last = Head(0, CHAIN_START, 0)
        if parts:
            last = (await self._executor.read(lambda: sealing.part(parts[-1][2], self._signing.public)))[1]
        first, same = await self._store.read(lambda uow: (uow.audit_log.list(limit=1), uow.audit_log.get(last.number)))
        if not first:
            return 0
        if first[0].number > last.number:
            return await self._seal_next(last, before_ns)
        if same is None or same.chain != last.chain:
            said = f"Entry {last.number} is not the one that the sealed part {parts[-1][2]} ends with."
            raise InvalidInput(said, subject=ANCHOR)
        return await self._store.write(lambda uow: uow.audit_log.drop(last.number, most), name="audit.drop")

    async def _seal_next(self, last: Head, before_ns: int) -> int:
        found = await self._store.read(lambda uow: uow.audit_log.list(None, last.number, sealing.PART_ENTRIES + 1))
        *entries, after = found
        anchor = await self._executor.read(self._anchor)
        is_due = len(entries) == sealing.PART_ENTRIES and after.at_ns < before_ns
        if not is_due or self._problem is not None or anchor is None or anchor.number < after.number:
            return 0
        if (problem := (await self._executor.read(lambda: judge(found, last.chain, [], None))).problem) is not None:
            raise InvalidInput(f"The audit log is damaged, so nothing of it is sealed. {problem}", subject=ANCHOR)
        path = await self._executor.read(lambda: sealing.write(self._old, entries, self._signing))
        log.info("audit_sealed", path=str(path), entries=len(entries))
        return len(entries)

    def _vouched(self, verdict: Verdict) -> Verdict:
        """The same, with a problem where no anchor vouches for the log's end."""
        if verdict.anchor is not None or verdict.problem is not None:
            return verdict
        return replace(verdict, problem=f"Its anchor {self._path} is gone: its end may have been cut off.")

    def _judge_since(self, uow: UnitOfWork, anchor: Head | None) -> Verdict:
        """Judge only what came after the anchor, which vouches for all before it."""
        entry = None if anchor is None else uow.audit_log.get(anchor.number)
        if anchor is None or entry is None or entry.chain != anchor.chain:
            return self._judge_all(uow, [] if anchor is None else [("the anchor", anchor)], anchor)
        return judge(uow.audit_log.walk(anchor.number), anchor.chain, [], anchor)

    def _judge_all(self, uow: UnitOfWork, heads: Sequence[tuple[str, Head]], anchor: Head | None) -> Verdict:
        try:
            return judge(sealing.whole(uow, self._old, self._signing.public), CHAIN_START, heads, anchor)
        except InvalidInput as error:
            return Verdict(0, None, error.detail, None, anchor)

    def _report(self, problem: str | None) -> None:
        if problem is not None and problem != self._problem:
            log.error("audit_log_tampered", problem=problem)
            self._problem_since_ns = self._clock.wall_ns()
        self._problem = problem

    def _anchor(self) -> Head | None:
        try:
            data = self._disk.read(self._path, 0, ANCHOR_BYTES_MAX)
        except FileNotFoundError:
            return None
        try:
            head, signature = unseal(data)
            verify_signature(self._signing.public, DOMAIN_AUDIT, head.claim, signature)
        except (ValueError, BadProof):
            raise InvalidInput(f"The anchor {self._path} is not one that this Master signed.") from None
        return head

    def _write(self, head: Head) -> None:
        draft = f"{self._path}.new"
        self._disk.make_directory(self._directory)
        self._disk.delete(draft)
        self._disk.append(draft, seal(head, self._signing.sign(DOMAIN_AUDIT, head.claim)))
        self._disk.sync(draft)
        self._disk.release(draft)
        self._disk.rename(draft, self._path)
        self._disk.sync_directory(self._directory)


def judge(
    entries: Iterable[AuditEntry], previous: bytes, heads: Sequence[tuple[str, Head]], anchor: Head | None
) -> Verdict:
    """Return the verdict on these entries, in order, after the chain `previous`; heads: by what each is called."""
    count, last = 0, None
    expected = {head.number: (name, head) for name, head in heads}
    for entry in entries:
        count += 1
        if entry.link(previous) != entry.chain:
            said = (
                f"Entry {entry.number} does not follow from the one before it: it was changed, moved or put in, "
                "or what stood before it is gone."
            )
            return Verdict(count, entry.number, said, None, anchor)
        for name, head in heads:
            if head.number == entry.number and head.chain != entry.chain:
                said = f"Entry {entry.number} is not the one that {name} names: the log was written anew."
                return Verdict(count, entry.number, said, None, anchor)
        expected.pop(entry.number, None)
        previous, last = entry.chain, Head(entry.number, entry.chain, entry.at_ns)
    missing = min(expected.values(), key=lambda found: found[1].number, default=None)
    if missing is not None:
        name, head = missing
        said = f"Entry {head.number}, which {name} names, is not there: the log's end was cut off."
        return Verdict(count, head.number, said, last, anchor)
    return Verdict(count, None, None, last, anchor)
