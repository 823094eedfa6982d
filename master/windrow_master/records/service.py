"""Deletes old records in a loop: each rule when it is due and in a boundary of its own, a few rows at a time.

look ─▶ audit: a whole part that is old ─▶ a sealed file ─▶ its rows, some at a time
     ─▶ each rule: rows that are old (asked beside the writer) ─▶ let go, some at a time ─▶ due again in 6 hours
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import structlog

from windrow_master.audit.service import AuditService
from windrow_master.loops import again, ends_alone
from windrow_master.records.repository import RecordRepository
from windrow_master.records.rules import (
    EVENTS_MAX,
    EVERY_NS,
    LOOK_NS,
    ROWS_MAX,
    STEPS_MAX,
    Record,
    RecordRetention,
    Rule,
    rules,
)
from windrow_master.store.store import Store
from windrow_proto.ports import Clock
from windrow_proto.units import DAY

AUDIT: Final = "audit"

log = structlog.get_logger(__name__)


class RecordService:
    """Keeps the database as large as it has to be."""

    def __init__(self, store: Store, audit: AuditService, clock: Clock, retention: RecordRetention) -> None:
        self._store, self._audit, self._clock = store, audit, clock
        self._audit_ns = retention.audit_days * DAY
        self._steps: dict[str, Callable[[], Awaitable[int]]] = {
            AUDIT: self._seal,
            **{rule.what.value: partial(self._let_go, rule) for rule in rules(retention)},
        }
        self._due_ns = dict.fromkeys(self._steps, 0)

    async def run(self) -> None:
        """Look, now and every minute, until cancelled."""
        await again(self.look, LOOK_NS, self._clock, "records")

    async def look(self) -> None:
        """Let go of what is due."""
        for what, step in self._steps.items():
            now_ns = self._clock.wall_ns()
            if now_ns < self._due_ns[what]:
                continue
            self._due_ns[what] = now_ns + EVERY_NS
            with ends_alone("record_rule", records=what):
                if not await self._all(what, step):
                    self._due_ns[what] = now_ns

    async def _all(self, what: str, step: Callable[[], Awaitable[int]]) -> bool:
        """Take steps until nothing is left, which is told, or until others should have their turn."""
        count = 0
        for _ in range(STEPS_MAX):
            went = await step()
            count += went
            if not went:
                break
        if count:
            log.info("records_let_go", records=what, count=count)
        return not went

    async def _let_go(self, rule: Rule) -> int:
        before_ns = self._clock.wall_ns() - rule.kept_ns
        keep = EVENTS_MAX if rule.what is Record.EVENTS else 0
        found = await self._store.read(lambda uow: uow[RecordRepository].past(rule.what, before_ns, ROWS_MAX, keep))
        if found:
            await self._store.write(lambda uow: uow[RecordRepository].let_go(rule.what, found), name="records.let_go")
        return len(found)

    async def _seal(self) -> int:
        return await self._audit.seal(self._clock.wall_ns() - self._audit_ns, ROWS_MAX)
