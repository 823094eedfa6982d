"""The bus: wake-ups and counts that the API processes of one market share, and nothing whose loss is an error.

Three things only: wake-ups ("look again", never the news itself: that is in SQL), who is there, and how often somebody
asked. Two implementations keep one contract: `MemoryBus` here, in one process, and `bus_redis.RedisBus`. When the
server behind a bus is gone, wake-ups and counts go on inside this process, and `health` says so.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import urlsplit

import structlog

from windrow_proto.errors import InvalidInput
from windrow_proto.ports import Clock
from windrow_proto.units import SECOND

KEYS_MAX: Final = 20_000
"""Counters one process keeps by itself; beyond it the one asked for longest ago is forgotten, and starts full again."""
SCHEMES: Final = ("redis", "rediss", "unix")
PEERS_MAX: Final = 64
TEXT_MAX: Final = 500
PRESENT_NS: Final = 15 * SECOND
"""How long a process counts as there after its last beat: three beats, so that one lost beat says nothing."""
BEAT_NS: Final = 5 * SECOND

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limit:
    """So many at once, and from then on one each `refill_ns`. `name` is what headers and metrics call it."""

    name: str
    burst: int
    refill_ns: int


@dataclass(frozen=True, slots=True)
class Taken:
    """The answer to one asking. retry_after_ns: until one more is allowed. reset_ns: until all are."""

    is_allowed: bool
    remaining: int
    retry_after_ns: int
    reset_ns: int


@dataclass(frozen=True, slots=True)
class Peer:
    """One process of the market; `facts` is what it says of itself (role, URL, epoch, pid), short and never secret."""

    id: str
    facts: Mapping[str, str]


@dataclass(slots=True)
class BusHealth:
    """The health of the bus. problem: why it reaches this process only, with since_ns (wall); None while all is
    well."""

    kind: str
    problem: str | None = None
    since_ns: int | None = None
    sent: int = 0
    heard: int = 0
    dropped: int = 0
    connections: int = 0
    local_counts: int = 0


Listener = Callable[[str, str], None]
"""Called on the loop with a subject and a text. An empty subject: something may have been missed, look at all."""


class Bus(Protocol):
    """Interface: the bus as the API uses it. Nothing here raises because of the server behind it, and nothing waits
    long for it."""

    @property
    def health(self) -> BusHealth:
        """How it fares, with its counters."""

    def publish(self, kind: str, subject: str, text: str = "") -> None:
        """Wake everybody who listens to this kind, here and elsewhere. Never waits. Wake-ups of the same subject that
        are not yet sent become one with the latest text."""

    def listen(self, kind: str, listener: Listener) -> None:
        """Be woken from now on, by this process' own publishing too."""

    async def take(self, key: str, limit: Limit, cost: int = 1) -> Taken:
        """Count `cost` against the limit of this key, if it allows that. A cost of 0 only looks whether there is."""

    def announce(self, facts: Mapping[str, str]) -> None:
        """Say from now on what this process is; it goes on being said while `run` runs."""

    async def peers(self) -> tuple[Peer, ...]:
        """Return the processes that are there, by id; this process always, others as far as the bus can see."""

    async def run(self) -> None:
        """Keep up whatever the bus needs until cancelled."""


def step(full_at: int, now: int, refill: int, burst: int, cost: int) -> tuple[bool, int]:
    """One asking against one bucket: (allowed, when the bucket will be full again). Any unit of time, one for all.

    A bucket is one number, the moment at which it will be full: nothing to refill, nothing to lose by rounding.
    """
    full_at = max(full_at, now)
    if full_at - now + max(cost, 1) * refill > burst * refill:
        return False, full_at
    return True, full_at + cost * refill


def answer(limit: Limit, is_allowed: bool, full_in_ns: int, cost: int) -> Taken:
    """Return the tokens left in a bucket that is full again in so long."""
    room_ns = limit.burst * limit.refill_ns - full_in_ns
    wait_ns = 0 if is_allowed else max(0, max(cost, 1) * limit.refill_ns - room_ns)
    return Taken(is_allowed, max(0, room_ns // limit.refill_ns), wait_ns, max(0, full_in_ns))


def check_url(url: str) -> str:
    """The URL, if a bus can be opened with it; raises InvalidInput, which does not repeat it."""
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.path) if parts.scheme == "unix" else bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole or parts.scheme not in SCHEMES:
        raise InvalidInput(
            "WINDROW_REDIS_URL must name a Redis or Valkey: redis://host:port/number, rediss://... (TLS) or unix:///path."
        )
    return url


class Buckets:
    """Counters of this process alone, bounded."""

    def __init__(self, keys_max: int = KEYS_MAX) -> None:
        self._full_at_ns: OrderedDict[str, int] = OrderedDict()
        self._keys_max = keys_max

    def take(self, key: str, limit: Limit, cost: int, now_ns: int) -> Taken:
        """Count once; `now_ns` is monotonic."""
        full_at_ns = self._full_at_ns.pop(key, now_ns)
        is_allowed, full_at_ns = step(full_at_ns, now_ns, limit.refill_ns, limit.burst, cost)
        self._full_at_ns[key] = full_at_ns
        while len(self._full_at_ns) > self._keys_max:
            self._full_at_ns.popitem(last=False)
        return answer(limit, is_allowed, full_at_ns - now_ns, cost)


class Listeners:
    """The listeners in this process; a listener that fails wakes the others all the same."""

    def __init__(self) -> None:
        self._by_kind: dict[str, list[Listener]] = {}

    def add(self, kind: str, listener: Listener) -> None:
        """One more."""
        self._by_kind.setdefault(kind, []).append(listener)

    def wake(self, kind: str, subject: str, text: str) -> None:
        """Tell everybody of one kind."""
        for listener in self._by_kind.get(kind, ()):
            try:
                listener(subject, text)
            except Exception:
                log.exception("wake_up_failed", kind=kind)

    def wake_all(self) -> None:
        """Tell everybody that something may have been missed."""
        for kind in self._by_kind:
            self.wake(kind, "", "")


@dataclass(slots=True)
class Exchange:
    """The state that the memory buses of one process share; tests put several buses on one, as if they were several
    processes."""

    buses: list["MemoryBus"] = field(default_factory=list)
    buckets: Buckets = field(default_factory=Buckets)


class MemoryBus:
    """The bus of one process: what it tells arrives at once, and there is nothing behind it that could fail."""

    def __init__(self, name: str, clock: Clock, exchange: Exchange | None = None) -> None:
        self._name = name
        self._clock = clock
        self._exchange = exchange or Exchange()
        self._exchange.buses.append(self)
        self._listeners = Listeners()
        self._facts: dict[str, str] | None = None
        self._health = BusHealth("memory")

    @property
    def health(self) -> BusHealth:
        """Always well."""
        return self._health

    def publish(self, kind: str, subject: str, text: str = "") -> None:
        """Wake everybody on the exchange."""
        self._health.sent += 1
        for bus in self._exchange.buses:
            bus._health.heard += bus is not self
            bus._listeners.wake(kind, subject, text[:TEXT_MAX])

    def listen(self, kind: str, listener: Listener) -> None:
        """Be woken from now on."""
        self._listeners.add(kind, listener)

    async def take(self, key: str, limit: Limit, cost: int = 1) -> Taken:
        """Count once."""
        return self._exchange.buckets.take(f"{limit.name}/{key}", limit, cost, self._clock.monotonic_ns())

    def announce(self, facts: Mapping[str, str]) -> None:
        """Say what this process is."""
        self._facts = dict(facts)

    async def peers(self) -> tuple[Peer, ...]:
        """Everybody on the exchange who has said what it is."""
        there = [Peer(bus._name, dict(bus._facts)) for bus in self._exchange.buses if bus._facts is not None]
        return tuple(sorted(there, key=lambda peer: peer.id))[:PEERS_MAX]

    async def run(self) -> None:
        """Nothing to keep up; on its end this process is there no more."""
        try:
            while True:
                await self._clock.sleep_ns(BEAT_NS)
        finally:
            self._facts = None
