"""Audit's shell: lists entries, verifies the chain, and moves the anchor: a signed head in a file beside the database.

Whoever can write the database can rewrite the whole chain, or cut its tail. Neither fits the anchor, which needs the
Master's signing key. The anchor only moves over entries that follow from it, so a tampered log stops it, and is a
condition until a person has looked and taken it as it is. An anchor that is gone is not made anew but by a person.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from windrow_master.audit.judge import judge
from windrow_master.audit.model import Head, Verdict, Wanted, seal, unseal
from windrow_master.audit.sealed import FOLDER, joined, sealed
from windrow_master.store.executors import Executor
from windrow_master.store.model import CHAIN_START, AuditEntry
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.keys import DOMAIN_AUDIT, SigningKey, verify_signature
from windrow_proto.ports import Clock, Disk

ANCHOR: Final = "audit.anchor"
ANCHOR_BYTES_MAX: Final = 4_096
"""A sealed head is some 250 bytes."""
BROKEN: Final = "audit.broken"
PROBLEM_CHARS_MAX: Final = 1_000
REPAIR: Final = (
    "Find out who wrote it. Then take the log as it is with `windrow audit reanchor --reason WHY`, or bring a backup "
    "back with `windrow-master restore`."
)

log = structlog.get_logger(__name__)


class AuditService:
    """The audit log of one Master. `checkpoint` regularly and before the end."""

    def __init__(
        self, store: Store, directory: Path, disk: Disk, signing: SigningKey, clock: Clock, executor: Executor
    ) -> None:
        self._store = store
        self._directory = str(directory)
        self._old = directory / FOLDER
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
            lambda uow: (uow.audit_log.list(limit=1), uow.audit_log.newest(Wanted(), None, 1))
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
        """What the last checkpoint found wrong."""
        return self._problem

    def conditions(self) -> Iterator[tuple[str, str, int]]:
        """The same for health, with the way out."""
        if self._problem is not None:
            yield BROKEN, f"The audit log is not intact. {self._problem} {REPAIR}", self._problem_since_ns

    async def list(self, wanted: Wanted, before: int | None, limit: int) -> Sequence[AuditEntry]:
        """Entries, the latest first, from below number `before`."""
        return await self._store.read(lambda uow: uow.audit_log.newest(wanted, before, limit))

    async def verify(self, kept: Head | None = None) -> Verdict:
        """Recompute the whole chain and hold it against the anchor and a head that the caller kept."""
        try:
            anchor = await self._executor.read(self._anchor)
        except InvalidInput as error:
            return Verdict(0, None, error.detail, None, None)
        heads = [(name, head) for name, head in (("the anchor", anchor), ("the head you kept", kept)) if head]
        return await self._store.read(lambda uow: _judge_all(uow, self._old, heads, anchor))

    async def checkpoint(self) -> None:
        """Move the anchor to the newest entry, if everything since follows from it; else remember the problem."""
        try:
            anchor = await self._executor.read(self._anchor)
            verdict = await self._store.read(lambda uow: _judge_since(uow, self._old, anchor))
            if anchor is None and verdict.problem is None:
                verdict = replace(verdict, problem=f"Its anchor {self._path} is gone: its end may have been cut off.")
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
            (last,) = uow.audit_log.newest(Wanted(), None, 1)
            return Head(last.number, last.chain, self._clock.wall_ns())

        head = await self._store.write(note, name="audit.reanchor")
        await self._executor.read(lambda: self._write(head))
        log.warning("audit_reanchored", actor=actor, problem=self._problem or found.problem)
        self._report(None)
        return await self.verify()

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


def _judge_since(uow: UnitOfWork, directory: Path, anchor: Head | None) -> Verdict:
    """Judge only what came after the anchor, which vouches for all before it."""
    entry = None if anchor is None else uow.audit_log.get(anchor.number)
    if anchor is None or entry is None or entry.chain != anchor.chain:
        return _judge_all(uow, directory, [] if anchor is None else [("the anchor", anchor)], anchor)
    return judge(uow.audit_log.walk(anchor.number), anchor.chain, [], anchor)


def _judge_all(uow: UnitOfWork, directory: Path, heads: Sequence[tuple[str, Head]], anchor: Head | None) -> Verdict:
    return judge(joined(sealed(directory), uow.audit_log.walk()), CHAIN_START, heads, anchor)
