"""Holds the fleet in memory as it was last read from the store, for lists and for decisions of every second. Pure.

Each host has the version at which it last changed here; a reader that knows a version asks for what is newer.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

from windrow_master.fleet.model import AdminState, Host, Slot
from windrow_proto.ids import HostId

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """One host with its slots, and when (in versions of the view) it was put here."""

    host: Host
    slots: tuple[Slot, ...]
    version: int
    known: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Results already computed from this entry, by function: see once_per_entry."""

    @property
    def is_banned(self) -> bool:
        """True if it must not connect."""
        return self.host.admin_state in (AdminState.QUARANTINED, AdminState.RETIRED)


def once_per_entry(work: Callable[[Entry], T]) -> Callable[[Entry], T]:
    """Let a function work once per entry, which never changes: lists, sums and health ask far more often than hosts
    change."""

    @wraps(work)
    def known(entry: Entry) -> T:
        if work not in entry.known:
            entry.known[work] = work(entry)
        found: T = entry.known[work]
        return found

    return known


class FleetView:
    """Hosts by id, with a version that grows with every change. Used from one thread."""

    def __init__(self) -> None:
        self._entries: dict[HostId, Entry] = {}
        self.version = 0
        self.known: dict[Any, tuple[int, Any]] = {}
        """Results already computed from all hosts, with their version, by function: see once_per_version."""

    def put(self, host: Host, slots: Iterable[Slot]) -> None:
        """Replace one host."""
        self.version += 1
        self._entries[host.host_id] = Entry(host, tuple(slots), self.version)

    def get(self, host_id: HostId) -> Entry | None:
        """One host."""
        return self._entries.get(host_id)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    def since(self, version: int) -> tuple[Entry, ...]:
        """The hosts that changed after a version."""
        return tuple(entry for entry in self._entries.values() if entry.version > version)


def once_per_version(work: Callable[[FleetView], T]) -> Callable[[FleetView], T]:
    """Let a function work once per version of the fleet: health is asked far more often than hosts change."""

    @wraps(work)
    def known(view: FleetView) -> T:
        version, found = view.known.get(work, (-1, None))
        if version != view.version:
            found = work(view)
            view.known[work] = (view.version, found)
        result: T = found
        return result

    return known
