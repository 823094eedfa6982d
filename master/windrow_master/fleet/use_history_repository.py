"""Keeps the number of GPUs in each state over time: spans of five minutes for two days, of an hour for 31 days.

A look adds its counts to the span of each length that it falls in; a span's value is the mean of its looks. A span in
which no Master looked has no row.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import delete, select

from windrow_master.fleet.availability import Availability, gpus_shown
from windrow_master.fleet.model import AdminState, LinkState
from windrow_master.fleet.tables import fleet_counts as table
from windrow_master.fleet.view import Entry
from windrow_master.store.prepared import Upsert
from windrow_master.store.repository import Repository
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

LOOK_EVERY_NS: Final = MINUTE
SHORT_NS: Final = 5 * MINUTE
KEPT_NS: Final = {SHORT_NS: 2 * DAY, HOUR: 31 * DAY}
"""How long a span of each length is kept: 576 rows and 744."""

_STATES: Final = tuple(state.value for state in Availability)
_PUT: Final = Upsert(table, ["span_s", "at_ns"], ["looks", *_STATES])


@dataclass(frozen=True, slots=True)
class Point:
    """One span: its beginning, and the mean number of GPUs in each state."""

    at_ns: int
    counts: Mapping[Availability, float]


def counted(entries: Iterable[Entry]) -> dict[Availability, int] | None:
    """Return the number of GPUs in each state now; None where there are none, or where a host is still to be heard
    after this Master's start."""
    counts = dict.fromkeys(Availability, 0)
    for entry in entries:
        if entry.host.admin_state is AdminState.RETIRED:
            continue
        if entry.host.link_state is LinkState.UNKNOWN:
            return None
        for shown in gpus_shown(entry).values():
            counts[shown.state] += 1
    return counts if any(counts.values()) else None


class UseHistoryRepository(Repository):
    """One row a span."""

    def add(self, counts: Mapping[Availability, int], now_ns: int) -> None:
        """Add a look to its spans, and remove those that are kept no longer."""
        for length_ns, kept_ns in KEPT_NS.items():
            key = {"span_s": length_ns // SECOND, "at_ns": now_ns // length_ns * length_ns}
            query = select(table).where(table.c.span_s == key["span_s"], table.c.at_ns == key["at_ns"])
            before = self._connection.execute(query).mappings().first()
            values = {"looks": 1, **{state.value: count for state, count in counts.items()}}
            if before is not None:
                values = {name: before[name] + value for name, value in values.items()}
            _PUT.run(self._connection, key | values)
            old = (table.c.span_s == key["span_s"]) & (table.c.at_ns < now_ns - kept_ns)
            self._connection.execute(delete(table).where(old))

    def since(self, length_ns: int, from_ns: int) -> Sequence[Point]:
        """The spans of this length that began then or later, oldest first."""
        query = select(table).where(table.c.span_s == length_ns // SECOND, table.c.at_ns >= from_ns)
        rows = self._connection.execute(query.order_by(table.c.at_ns)).mappings()
        return [Point(row["at_ns"], {state: row[state.value] / row["looks"] for state in Availability}) for row in rows]
