"""Reads and writes each host's reliability record, and finds the events that count against a host."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import bindparam, func, select

from windrow_master.fleet.model import HostRecord, Mishap, Record
from windrow_master.fleet.tables import host_reliability as table
from windrow_master.store.prepared import Found, Upsert
from windrow_master.store.repository import Repository
from windrow_master.store.tables import event_subjects, events
from windrow_proto.ids import HostId

MISHAPS_MAX: Final = 10_000
"""Events looked at in one go; those after them are never counted."""

_PUT: Final = Upsert(table, ["host_id"], [column.name for column in table.c if column.name != "host_id"])
_OF_HOST: Final = Found(select(table).where(table.c.host_id == bindparam("wanted")), lambda row: _held(row))


class ReliabilityRepository(Repository):
    """One row a host."""

    def all(self) -> dict[HostId, HostRecord]:
        """Of every host that was ever counted."""
        return {one.host_id: one for one in map(_held, self._connection.execute(select(table)).mappings())}

    def get(self, host_id: HostId) -> HostRecord | None:
        """Of one host; None where none was counted."""
        return _OF_HOST.one(self._connection, {"wanted": host_id})

    def put(self, held: HostRecord) -> None:
        """Write it down in place of what was there."""
        record = held.record
        values = {"since_ns": held.since_ns, "figure": held.figure, "event_number": held.event_number}
        values |= {"at_ns": record.at_ns, "good": record.good, "bad": record.bad}
        values |= {"faults": record.faults, "aborts": record.aborts}
        _PUT.run(self._connection, values | {"host_id": held.host_id})

    def last_event(self) -> int:
        """The number of the newest event; 0 before the first."""
        return self._connection.execute(select(func.max(events.c.number))).scalar() or 0

    def mishaps(self, after: int, kinds: Collection[str]) -> Sequence[Mishap]:
        """Of the events after this number those of these kinds, in their order, once for each of their subjects."""
        query = (
            select(events.c.kind, events.c.actor, events.c.fields, event_subjects.c.subject)
            .join(event_subjects, event_subjects.c.event_number == events.c.number)
            .where(events.c.number > after, events.c.kind.in_(kinds))
            .order_by(events.c.number)
            .limit(MISHAPS_MAX)
        )
        found = self._connection.execute(query).all()
        return [Mishap(HostId(subject), kind, actor, dict(fields)) for kind, actor, fields, subject in found]


def _held(row: Mapping[Any, Any]) -> HostRecord:
    record = Record(row["at_ns"], row["good"], row["bad"], row["faults"], row["aborts"])
    return HostRecord(row["host_id"], row["since_ns"], record, row["figure"], row["event_number"])
