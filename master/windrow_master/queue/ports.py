"""Ports of the queue's service: those who put entries into it and start them, and who reads the fleet for it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from windrow_master.queue.backfill import Host
from windrow_master.queue.model import Amounts, Entry, Need
from windrow_master.queue.shares import Node
from windrow_proto.errors import NoCapacity, WindrowError


@dataclass(frozen=True, slots=True)
class Started:
    """An entry has its place: on these hosts. entry: with the cost and need of what it got."""

    entry: Entry
    hosts: tuple[str, ...]


NOT_OPEN: Final = "No host that is open to this has what it asks for."


@dataclass(frozen=True, slots=True)
class Refused:
    """There is no place for an entry now. said: why, for whoever asked for it. is_full: for want of hosts with room, so
    that what waits may have them reserved; False: of a quota, of money, of a host that is not there: it may not start
    wherever there is room."""

    said: str
    is_full: bool = True

    @classmethod
    def by(cls, error: WindrowError, closed: frozenset[str]) -> "Refused":
        """What an attempt to place it has met, on none of the closed hosts, which might have had a place."""
        said = error.detail or error.code
        if not isinstance(error, NoCapacity) or not closed:
            return cls(said, isinstance(error, NoCapacity) and error.retryable)
        are = "host is" if len(closed) == 1 else "hosts are"
        kept = f"{len(closed)} {are} kept for work that comes first, or for maintenance."
        # What was said of the others is no word about these.
        return cls(f"{said if error.retryable else NOT_OPEN} Besides, {kept}")


@dataclass(frozen=True, slots=True)
class Gone:
    """An entry waits no more: it was cancelled meanwhile, or can never run, which its source has written down."""


class Source(Protocol):
    """One who puts entries, and starts them when it is their turn."""

    async def place(self, entry: Entry, closed: frozenset[str]) -> Started | Refused | Gone:
        """Start it now if it fits, on none of the closed hosts."""
        ...

    async def place_copies(self, entries: Sequence[Entry], closed: frozenset[str]) -> Sequence[Started]:
        """Start copies of one request together as `place` would one after another. Returns those that have started,
        from the first one on; of the others nothing is changed, and `place` says why."""
        ...

    async def tell(self, entry_ids: Sequence[str], said: str) -> None:
        """Let those know why they wait."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """An entry that holds a part of a host since then. cards: numbers of its cards there."""

    entry: Entry
    cards: tuple[int, ...]
    started_ns: int


@dataclass(frozen=True, slots=True)
class HostNews:
    """A host as it is now, and all that runs there. closes_ns: when maintenance begins; None: none is planned."""

    host: Host
    runs: tuple[Run, ...] = ()
    closes_ns: int | None = None


@dataclass(frozen=True, slots=True)
class News:
    """All that is new of the fleet. gone: hosts that take no work any more. capacity: of all hosts, in the amounts that
    shares count. nodes: of the tree of shares for all leaves of these runs, parents first. has_new_pools: what waits
    may fit other pools than `need` said before."""

    hosts: Sequence[HostNews]
    gone: Sequence[str]
    capacity: Amounts
    nodes: Sequence[Node]
    has_new_pools: bool = False


@dataclass(frozen=True, slots=True)
class Charge:
    """A leaf held this in the past."""

    leaf: str
    cost: Amounts
    from_ns: int
    to_ns: int


class Feed(Protocol):
    """Reads rows for the queue."""

    async def news(self) -> News | None:
        """All that has changed since the last call, the whole fleet at the first; None: nothing."""
        ...

    def due_ns(self) -> int:
        """When to ask again although no row is known to have changed, monotonic."""
        ...

    def need(self, entry: Entry) -> Need:
        """The needs of an entry with the pools and hosts that suit it."""
        ...

    def touched(self) -> frozenset[str]:
        """Hosts that have changed since the last news was read."""
        ...

    def read_again(self, host_ids: Iterable[str]) -> None:
        """What is known of these hosts may be wrong: the next news has them."""
        ...

    async def past(self, since_ns: int) -> Sequence[Charge]:
        """All that was held and was given back since then."""
        ...

    async def nodes(self, leaves: Sequence[str]) -> Sequence[Node]:
        """The nodes of the tree of shares for these leaves, parents first; none for a project that is deleted."""
        ...

    def tier_costs(self) -> Mapping[str, int]:
        """The cost of a card by tier, in permille of the tier that counts as one."""
        ...
