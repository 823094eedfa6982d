"""Adds up the facts of a report: rental lines, the time of slots, and incidents, each by the same dimensions. Pure.

A fact has numbers of names as keys and whole numbers as values; what a line does not say itself follows from what it
says: the model from the tier, the region from the host, the organisation from the project.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from windrow_master.billing.gpu_time import Hosts, model_of
from windrow_master.fleet.states import LinkState
from windrow_master.fleet.view import Entry
from windrow_master.market.occupancy import YES, Change, Fact, spans
from windrow_master.reports.model import Cell, Dimension, Measure, Query, Source, SourceRow, Values, View, summed
from windrow_master.reports.sums import (
    BEGIN,
    BILLED,
    CHARGED,
    FEE,
    SHARE,
    SPAN,
    Lines,
    Names,
    Whole,
    cut,
    grouped,
    part,
)
from windrow_proto.units import SECOND

PER_MILLI: Final = SECOND // 1000
"""Nanoseconds of a GPU in a second of one of its thousandths."""
MILLION: Final = 1_000_000
GPU_FAULT, HOST_LOST = "gpu_fault", "host_lost"


Keys = dict[Dimension, tuple[Whole, Sequence[str]]]
"""Of each dimension its numbers (n,) and their names."""


@dataclass(slots=True)
class Facts:
    """Some facts. values: of each measure (n,); rows: the source row of each fact, an index."""

    keys: Keys
    values: dict[Measure, Whole]
    rows: Whole

    def cells(self, by: Sequence[Dimension]) -> dict[tuple[str, ...], Values]:
        """The sums by these dimensions."""
        keys, sums = grouped([self.keys[one][0] for one in by], list(self.values.values()))
        known = [self.keys[one][1] for one in by]
        texts = [[name[number] for number in column] for name, column in zip(known, keys.tolist(), strict=True)]
        names = zip(*texts, strict=True) if by else [()] * sums.shape[1]
        columns = sums.T.tolist()
        return {key: dict(zip(self.values, row, strict=True)) for key, row in zip(names, columns, strict=True)}

    def by_row(self) -> tuple[Whole, dict[Measure, Whole]]:
        """The sums of each source row: their indexes, growing, and of each measure the sums."""
        (rows,), sums = grouped([self.rows], list(self.values.values()))
        return rows, dict(zip(self.values, sums, strict=True))


@dataclass(frozen=True, slots=True)
class Follows:
    """What follows from what: regions of hosts, organisations of projects."""

    regions: Mapping[str, str] = field(default_factory=dict)
    organisations: Mapping[str, str] = field(default_factory=dict)

    def ways(self) -> dict[Dimension, tuple[Dimension, Callable[[str], str]]]:
        """Of each dimension that follows: from which, and how."""
        return {
            Dimension.MODEL: (Dimension.TIER, lambda tier: model_of(tier) if tier else ""),
            Dimension.REGION: (Dimension.HOST, lambda host: self.regions.get(host, "")),
            Dimension.ORGANISATION: (Dimension.PROJECT, lambda project: self.organisations.get(project, "")),
        }


def of_lines(
    query: Query, lines: Lines, names: Mapping[Dimension, Names], follows: Follows, use: Mapping[str, int] | None
) -> Facts:
    """Rental lines in the days of a query. names: of the lines' keys, in their order; use: of the query's time, by
    workload, in millionths of its GPUs; None: nobody asks for it."""
    keys: Keys = {one: (lines.keys[place], known.texts) for place, (one, known) in enumerate(names.items())}
    keys = _with_following(keys, {*query.by, *query.filters}, follows)
    mask = np.ones(len(lines), dtype=bool)
    for dimension, wanted in query.filters.items():
        mask &= _matches(keys[dimension], {wanted})
    if query.scope.accounts:
        owner = Dimension.PROJECT if query.scope.view is View.PROJECT else Dimension.PROVIDER
        mask &= _matches(keys[owner], set(query.scope.accounts))
    chosen = np.flatnonzero(mask)
    its = lines.where(chosen)
    parts = cut(its, query.days.edges(by_day=Dimension.DAY in query.by))
    found: Keys = {one: (numbers[chosen][parts.line], texts) for one, (numbers, texts) in keys.items()}
    found[Dimension.DAY] = (parts.day, [day.isoformat() for day in query.days.dates])
    figures, span = its.figures, its.figures[SPAN]
    charged, fee = part(figures[CHARGED], span, parts), part(figures[FEE], span, parts)
    milli = part(figures[BILLED], span, parts) * figures[SHARE][parts.line]
    values = {
        Measure.COST: charged,
        Measure.EARNINGS: charged - fee,
        Measure.FEES: fee,
        Measure.HELD: milli * PER_MILLI,
    }
    if use is not None:
        known = np.array([use.get(one.decode(), -1) for one in its.ids.tolist()], np.int64)[parts.line]
        used = np.where(known < 0, 0, milli * np.minimum(known, MILLION))  # a milli-second is a million nanoseconds
        values[Measure.USED] = used
        values[Measure.UNMEASURED] = np.where(known < 0, values[Measure.HELD], 0)
        values[Measure.WASTED] = values[Measure.HELD] - used - values[Measure.UNMEASURED]
    return Facts(found, values, chosen[parts.line])


@dataclass(frozen=True, slots=True)
class Plain:
    """A fact that is no line: its keys as texts, its index of day, its value, and the row that it comes from."""

    keys: Mapping[Dimension, str]
    day: int
    value: int
    id: str
    at_ns: int


def of_plain(query: Query, measure: Measure, found: Sequence[Plain], follows: Follows) -> Facts:
    """Time or incidents, as far as the query asks for them."""
    ways = follows.ways()
    wanted = {*query.by, *query.filters} - {Dimension.DAY}

    def key(one: Plain, dimension: Dimension) -> str:
        if dimension in one.keys:
            return one.keys[dimension]
        source, follow = ways[dimension]
        return follow(one.keys[source])

    kept = [one for one in found if all(key(one, name) == value for name, value in query.filters.items())]
    keys: Keys = {}
    for dimension in wanted:
        names = Names()
        keys[dimension] = np.array([names.number(key(one, dimension)) for one in kept], np.int64), names.texts
    keys[Dimension.DAY] = np.array([one.day for one in kept], np.int64), [day.isoformat() for day in query.days.dates]
    values = {measure: np.array([one.value for one in kept], np.int64)}
    places = {id(one): place for place, one in enumerate(found)}
    return Facts(keys, values, np.array([places[id(one)] for one in kept], np.int64))


def time_of(hosts: Hosts, changes: Mapping[str, Sequence[Change]], query: Query, now_ns: int) -> list[Plain]:
    """The time in which each GPU was there, by slot and day; a part of a GPU counts as its share. Estimated from
    recorded changes, as in billing/gpu_time.py."""
    edges = [edge * SECOND for edge in query.days.edges(by_day=Dimension.DAY in query.by)]
    divided: dict[tuple[tuple[int, int], ...], list[tuple[int, int]]] = {}
    found = []
    for slot, entry in hosts.counted:
        host = entry.host
        facts = {Fact.ADMIN: str(host.admin_state), Fact.LINK: str(host.link_state), Fact.FAULTY: "", Fact.CLOSED: ""}
        its = [*changes.get(host.host_id, ()), *changes.get(slot.slot_id, ())]
        there = spans(facts, its, max(edges[0], host.created_at_ns), min(edges[-1], now_ns))
        key = tuple((one.from_ns, one.to_ns) for one in there)
        if key not in divided:  # most slots of a host have the same
            divided[key] = _divided(key, edges)
        keys = {Dimension.PROVIDER: str(host.owner_account), Dimension.HOST: str(host.host_id)}
        keys[Dimension.TIER] = slot.tier
        found += [
            Plain(keys, day, time_ns * slot.share_milli // 1000, str(slot.slot_id), edges[day])
            for day, time_ns in divided[key]
        ]
    return found


def _divided(times: Sequence[tuple[int, int]], edges: Sequence[int]) -> list[tuple[int, int]]:
    """The nanoseconds of these times in each of the days that have any, by the day's index."""
    sums = [
        (day, sum(max(0, min(end, until) - max(begin, since)) for since, until in times))
        for day, (begin, end) in enumerate(pairwise(edges))
    ]
    return [(day, time_ns) for day, time_ns in sums if time_ns]


def incidents_of(entries: Sequence[Entry], changes: Mapping[str, Sequence[Change]], query: Query) -> list[Plain]:
    """Each fault of a GPU and each loss of a host in the days of a query; the parts of a GPU that fail at once are one
    fault."""
    edges = [edge * SECOND for edge in query.days.edges(by_day=Dimension.DAY in query.by)]
    subjects = [(entry.host, str(entry.host.host_id), str(entry.host.host_id), "") for entry in entries]
    subjects += [
        (entry.host, str(slot.slot_id), str(slot.card or slot.slot_id), slot.tier)
        for entry in entries
        for slot in entry.slots
    ]
    found: dict[tuple[str, int], Plain] = {}
    for host, subject, what, tier in subjects:
        keys = {Dimension.PROVIDER: str(host.owner_account), Dimension.HOST: str(host.host_id), Dimension.TIER: tier}
        for one in changes.get(subject, ()):
            is_fault = one.fact is Fact.FAULTY and one.after == YES != one.before
            is_lost = one.fact is Fact.LINK and one.after == LinkState.LOST != one.before
            if (is_fault or is_lost) and edges[0] <= one.at_ns < edges[-1]:
                day = bisect_right(edges, one.at_ns) - 1
                its_keys = {**keys, Dimension.KIND: GPU_FAULT if is_fault else HOST_LOST}
                found.setdefault((what, one.at_ns), Plain(its_keys, day, 1, subject, one.at_ns))
    return list(found.values())


Sums = dict[tuple[str, ...], Values]


def merged(query: Query, sources: Sequence[Facts]) -> Sums:
    """The sums of all sources together by the keys of the query; what is nothing in all of them is left out."""
    sums: Sums = {}
    for facts in sources:
        for key, values in facts.cells(query.by).items():
            mine = sums.setdefault(key, {})
            for measure, value in values.items():
                mine[measure] = mine.get(measure, 0) + value
    wanted = summed(query.measures)
    found = {key: {one: values.get(one, 0) for one in wanted} for key, values in sums.items()}
    return {key: values for key, values in found.items() if any(values.values())}


def cells_of(query: Query, sums: Sums, names: Mapping[Dimension, Mapping[str, str]]) -> list[Cell]:
    """The cells in the order of a report. names: of keys, where they have any."""
    known = [names.get(one, {}) for one in query.by]
    cells = [
        Cell(key, tuple(name.get(text) or text for name, text in zip(known, key, strict=True)), values)
        for key, values in sums.items()
    ]
    first = summed(query.measures)[0]

    def order(cell: Cell) -> tuple[str, int, tuple[str, ...]]:
        day = cell.keys[0] if query.by[:1] == (Dimension.DAY,) else ""
        return day, -cell.values[first], cell.keys

    return sorted(cells, key=order)


@dataclass(slots=True)
class Traced:
    """The facts of one source with the rows that they come from: lines, or others. key_names: of the lines' keys."""

    source: Source
    facts: Facts
    lines: Lines | None = None
    key_names: Mapping[Dimension, Names] = field(default_factory=dict)
    plain: Sequence[Plain] = ()

    def rows(self, measures: Sequence[Measure], begin: int, end: int) -> tuple[int, list[SourceRow]]:
        """The number of rows that are something, and some of them, the greatest of the first measure that they have
        first."""
        indexes, values = self.facts.by_row()
        mine = {one: values[one] for one in measures if one in values}
        there = np.flatnonzero(np.any(list(mine.values()), axis=0)) if len(indexes) else indexes
        order = there[np.argsort(-next(iter(mine.values()))[there], kind="stable")] if len(there) else there
        found = [
            self._row(int(indexes[one]), {name: int(column[one]) for name, column in mine.items()})
            for one in order[begin:end].tolist()
        ]
        return len(there), found

    def _row(self, index: int, values: Values) -> SourceRow:
        if self.lines is None:
            one = self.plain[index]
            return SourceRow(self.source, one.id, "", one.keys, one.at_ns, values)
        its = zip(self.key_names.items(), self.lines.keys[:, index].tolist(), strict=True)
        keys = {dimension: names.texts[number] for (dimension, names), number in its}
        at_ns = int(self.lines.figures[BEGIN, index]) * SECOND
        return SourceRow(self.source, "", "", keys, at_ns, values, self.lines.ids[index].decode())


def _with_following(keys: Keys, wanted: set[Dimension], follows: Follows) -> Keys:
    for dimension, (source, follow) in follows.ways().items():
        if dimension in wanted:
            numbers, texts = keys[source]
            names = Names()
            lead = np.array([names.number(follow(text)) for text in texts] or [0], np.int64)
            keys[dimension] = lead[numbers], names.texts or [""]
    return keys


def _matches(key: tuple[Whole, Sequence[str]], wanted: set[str]) -> NDArray[np.bool_]:
    numbers, texts = key
    return np.isin(numbers, [place for place, text in enumerate(texts) if text in wanted])
