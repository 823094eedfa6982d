"""Keeps rental lines in memory as columns: those of closed rentals are read once, those of open ones for each report.

A closed rental's charge never changes. What is kept begins with the earliest day that was asked for; it is let go of
after an hour without a report.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from windrow_master.market.prices import CPU
from windrow_master.reports.model import Dimension, Limits
from windrow_master.reports.repository import LineRow, ReportRepository
from windrow_master.reports.sums import FIGURES, Lines, Names, joined
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import InvalidInput
from windrow_proto.ports import Clock
from windrow_proto.units import HOUR, SECOND

KEYS: Final = (Dimension.PROJECT, Dimension.PROVIDER, Dimension.HOST, Dimension.TIER, Dimension.KIND)
"""The dimensions that a line itself has, in the order of its keys."""
DEADLINE_NS: Final = 12 * SECOND
"""For all reads of one report: people and the console wait for 20 s."""
KEPT_NS: Final = HOUR

AllNames = dict[Dimension, Names]


@dataclass(slots=True)
class _Kept:
    """What was read. begin_ns: of the earliest day; last: the newest rental; open: those that may still be charged;
    shares: thousandths of a GPU by class of tier."""

    begin_ns: int
    last: str
    open: set[str]
    shares: dict[str, int]
    names: AllNames = field(default_factory=lambda: {one: Names() for one in KEYS})
    closed: list[Lines] = field(default_factory=list)

    def columns(self, rows: Iterable[LineRow]) -> Lines:
        """These lines as columns."""
        found = list(rows)
        numbers = [self.names[one].number for one in KEYS]
        figures = [
            (one.begin_s, max(1, one.billed_s + one.silent_s), one.billed_s, one.charged, one.fee, self._share(one))
            for one in found
        ]
        texts = zip(*((one.project, one.provider, one.host, one.tier, one.kind) for one in found), strict=True)
        keys = [[number(text) for text in column] for number, column in zip(numbers, texts, strict=False)]
        return Lines(
            np.array([one.workload_id.encode() for one in found], dtype="S64"),
            np.array(figures, np.int64).reshape(len(found), FIGURES).T,
            np.array(keys, np.int64).reshape(len(KEYS), len(found)),
        )

    def _share(self, row: LineRow) -> int:
        """The GPUs of a line in thousandths; none of processors."""
        return 0 if row.tier.startswith(f"{CPU}/") else row.slots * self.shares.get(row.tier.partition("/")[0], 1000)


class LineReader:
    """All rental lines since some day, as they are now."""

    def __init__(self, store: Store, clock: Clock, limits: Limits) -> None:
        self._store, self._clock, self._limits = store, clock, limits
        self._one_at_a_time = asyncio.Lock()
        self._kept: _Kept | None = None
        self._asked_ns = clock.monotonic_ns()
        self._refused_ns: int | None = None
        """The latest begin whose lines were too many; asked again they are refused at once."""

    async def read(self, begin_ns: int) -> tuple[Lines, AllNames]:
        """The lines that may have billed time from then on, and the names of their keys. Raises InvalidInput."""
        async with self._one_at_a_time:
            if self._clock.monotonic_ns() - self._asked_ns > KEPT_NS:
                self._kept = self._refused_ns = None
            self._asked_ns = self._clock.monotonic_ns()
            kept = self._kept
            if kept is None or begin_ns < kept.begin_ns:
                if self._refused_ns is not None and begin_ns <= self._refused_ns:
                    raise _too_many()
                kept = self._kept = await self._filled(begin_ns)
            still_open = await self._refresh(kept)
            return joined([*kept.closed, still_open]), kept.names

    async def _filled(self, begin_ns: int) -> _Kept:
        """Read the lines of all rentals that are closed, a page at a time. Raises InvalidInput."""

        def begin(uow: UnitOfWork) -> _Kept:
            found = uow[ReportRepository]
            shares = {tier.partition("/")[0]: share for tier, share in found.shares().items()}
            return _Kept(begin_ns, found.last_rental(), found.open_rentals(), shares)

        def page(uow: UnitOfWork) -> tuple[Lines, str]:
            rows = uow[ReportRepository].lines(after, begin_ns, size)
            # A rental that is open now is left to `_refresh`, also where it closes meanwhile.
            closed = (one for one in rows if one.rental_id <= kept.last and one.rental_id not in kept.open)
            return kept.columns(closed), rows[-1].workload_id if len(rows) == size else ""

        size = self._limits.page
        until_ns = self._clock.monotonic_ns() + DEADLINE_NS
        kept = await self._store.read(begin)
        pages, after, count = list[Lines](), "", 0
        while True:
            lines, after = await self._store.read(page)
            pages.append(lines)
            count += len(lines)
            if not after:
                break
            if count > self._limits.lines or self._clock.monotonic_ns() > until_ns:
                self._refused_ns = begin_ns
                raise _too_many()
        kept.closed = [joined(pages)]
        return kept

    async def _refresh(self, kept: _Kept) -> Lines:
        """The lines of rentals that are open; those that closed since the last look are kept."""

        def read(uow: UnitOfWork) -> tuple[Lines, Lines]:
            found = uow[ReportRepository]
            is_open, last = found.open_rentals(), found.last_rental()
            rows = found.lines_since(kept.last, kept.open | is_open)
            kept.last, kept.open = last, is_open
            parts: tuple[list[LineRow], list[LineRow]] = ([], [])
            for one in rows:
                parts[one.rental_id in is_open].append(one)
            return kept.columns(parts[0]), kept.columns(parts[1])

        closed, still_open = await self._store.read(read)
        if len(closed):
            kept.closed = [joined([*kept.closed, closed])]
        return still_open


def _too_many() -> InvalidInput:
    words = "from: This period has more rentals than one report reads. Ask for a shorter one."
    return InvalidInput(words, subject="from")
