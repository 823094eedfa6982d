"""Counts, every five minutes, whether each host was there, and its recorded faults and broken leases.

What is held of a host is one row; an event is counted once, since the row says up to which one it was looked at. Slots
in which this Master was not up and settled, or in which many fell silent at once (it is us, not them), are not counted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from windrow_master.fleet import mishaps, reliability
from windrow_master.fleet.hosts import HostRegistry
from windrow_master.fleet.model import AdminState, HostRecord, LinkState, Mishap
from windrow_master.fleet.reliability import SLOT_NS, Record
from windrow_master.fleet.reliability_repository import ReliabilityRepository
from windrow_master.fleet.view import Entry
from windrow_master.loops import Boundary
from windrow_master.store.unit import DATABASE_FAULTS, UnitOfWork
from windrow_proto.ids import HostId

LOOKS_FIRST: Final = 2
"""Of a Master after its start: one begins the first slot, in which hosts find it again; the next begins what counts."""


class ReliabilityCounts:
    """Keeps the record of each host."""

    def __init__(self, hosts: HostRegistry) -> None:
        self._hosts = hosts
        self._faults = Boundary("reliability", DATABASE_FAULTS)
        self._looks = 0
        self._from_ns = 0

    def record(self, uow: UnitOfWork, host_id: HostId) -> HostRecord | None:
        """The reliability counters of a host; None until its first slot has ended."""
        return uow[ReliabilityRepository].get(host_id)

    def figures(self, uow: UnitOfWork) -> Mapping[HostId, float]:
        """The reliability of each host of which enough was seen, from 0 to 1."""
        known = uow[ReliabilityRepository].all()
        return {host_id: held.figure for host_id, held in known.items() if held.figure is not None}

    def ended(self, entries: Sequence[Entry], now_ns: int, is_frozen: bool) -> Callable[[UnitOfWork], None]:
        """A slot ends at this wall time: what to write of it. is_frozen: many fell silent at once, and nothing is held
        against anybody."""
        from_ns, self._from_ns = self._from_ns, now_ns
        self._looks += 1
        is_watched = self._looks > LOOKS_FIRST and not is_frozen and 0 < now_ns - from_ns < 2 * SLOT_NS
        return partial(self._count, entries=entries, from_ns=from_ns if is_watched else None, now_ns=now_ns)

    def _count(self, uow: UnitOfWork, *, entries: Sequence[Entry], from_ns: int | None, now_ns: int) -> None:
        known, last = uow[ReliabilityRepository].all(), uow[ReliabilityRepository].last_event()
        looked = max((one.event_number for one in known.values()), default=last)
        found: dict[HostId, list[Mishap]] = {}
        for mishap in uow[ReliabilityRepository].mishaps(looked, mishaps.KINDS):
            found.setdefault(mishap.host_id, []).append(mishap)
        for entry in entries:
            host_id = entry.host.host_id
            with self._faults.around(host_id), uow.attempt():
                before = known.get(host_id) or HostRecord(host_id, now_ns, Record(now_ns), None, last)
                after = _counted(before, found.get(host_id, ()), entry, from_ns if host_id in known else None, now_ns)
                after = replace(after, event_number=last)
                if after != before or host_id not in known:
                    uow[ReliabilityRepository].put(after)
                if after.figure != before.figure:
                    self._hosts.grade(uow, self._hosts.load(uow, host_id))


def _counted(
    before: HostRecord, mishaps_of: Sequence[Mishap], entry: Entry, from_ns: int | None, now_ns: int
) -> HostRecord:
    """The record with its mishaps and, where from_ns says since when it was watched, with the slot that ends."""
    record = mishaps.after_mishaps(before.record, mishaps_of, now_ns)
    if from_ns is not None and (is_good := _was_there(entry, from_ns)) is not None:
        is_leased = any(slot.holder is not None for slot in entry.slots)
        record = reliability.with_slot(record, now_ns, is_good=is_good, is_leased=is_leased)
    return replace(before, record=record, figure=reliability.shown(before.figure, reliability.known(record, now_ns)))


_NEVER_HEARD: Final = (LinkState.UNSEEN, LinkState.UNKNOWN)
"""Since it joined, or since this Master started: its silence is the Master's own."""


def _was_there(entry: Entry, from_ns: int) -> bool | None:
    """Return whether every heartbeat due since came; None where none was due: a host on leave, or never seen."""
    host = entry.host
    if host.admin_state is not AdminState.ACTIVE or host.link_state in _NEVER_HEARD:
        return None
    since_ns = host.online_since_ns
    return host.link_state is LinkState.ONLINE and since_ns is not None and since_ns <= from_ns


def words(held: HostRecord | None, now_ns: int) -> str:
    """For people, with what it is made of."""
    return reliability.words(held.record if held is not None else Record(now_ns), now_ns)


def evidence(held: HostRecord | None, now_ns: int) -> Mapping[str, float]:
    """The weights now."""
    record = reliability.decayed(held.record if held is not None else Record(now_ns), now_ns)
    return {"good": record.good, "bad": record.bad, "faults": record.faults, "aborts": record.aborts}
