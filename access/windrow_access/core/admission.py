"""Admission of streams: who may open one, how fast, and how long to wait otherwise. Pure: time comes in as a value.

A token bucket for the whole process keeps a reconnect storm from starving agents that are already connected; a bucket
per peer address keeps one machine from using it up.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from windrow_proto.units import MILLISECOND, SECOND

MASTERLESS_NS_MIN: Final = SECOND // 2
MASTERLESS_NS_MAX: Final = 15 * SECOND
MASTERLESS_NS_EACH: Final = 5 * MILLISECOND
"""For each agent: two hundred a second, beside the handshakes of others."""


TOLD_NS_MAX: Final = 15 * SECOND


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket. rate_per_s: tokens per second; burst: at most this many; tokens are counted in thousandths.
    told_ns: the latest moment that anybody was told to come again at."""

    rate_per_s: int
    burst: int
    milli: int
    at_ns: int
    told_ns: int = 0

    def take(self, now_ns: int) -> tuple["Bucket", int]:
        """Take one token; returns the bucket and 0, or the wait in nanoseconds until there is one (nothing taken).

        Each is told a moment of his own, up to TOLD_NS_MAX: a crowd that is told the next token's would come for that
        one together, and each try costs a handshake.
        """
        grown = (now_ns - self.at_ns) * self.rate_per_s // MILLISECOND if now_ns > self.at_ns else 0
        milli = min(self.burst * 1000, self.milli + grown)
        at_ns = max(now_ns, self.at_ns) if grown or milli == self.burst * 1000 else self.at_ns
        if milli >= 1000:
            return replace(self, milli=milli - 1000, at_ns=at_ns), 0
        token_ns = now_ns - (milli - 1000) * MILLISECOND // self.rate_per_s
        told_ns = min(max(token_ns, self.told_ns + SECOND // self.rate_per_s), max(token_ns, now_ns + TOLD_NS_MAX))
        return replace(self, milli=milli, at_ns=at_ns, told_ns=told_ns), told_ns - now_ns


@dataclass(frozen=True, slots=True)
class Limits:
    """handshakes_*: above what the listener lets in (600 a second at most), since who is refused here has cost a
    handshake. greetings_max: of streams whose Master has not answered yet; it greets hundreds a second, and an agent
    waits for ten seconds."""

    handshakes_per_s: int = 600
    handshakes_burst: int = 600
    greetings_max: int = 1_000
    per_peer_per_s: int = 50
    per_peer_burst: int = 400
    routes_max: int = 12_000
    warm_max: int = 6_000
    """Connections of hosts that another Access serves, kept for its death; each takes as much memory as a stream."""
    peers_max: int = 20_000
    calls_per_s: int = 5
    calls_burst: int = 100
    """Of one host, streams, pings and measurements: an agent that looks for an Access makes five, and backs off."""
    calls_at_once: int = 8
    """Of one host: its stream, the one it replaces, a measurement, a ping, and as many again."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """Come in."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now. retry_after_ns: earliest sensible next try; the agent adds its own jitter."""

    code: str
    retry_after_ns: int


class Admission:
    """The admission of one Access process."""

    def __init__(self, limits: Limits, now_ns: int) -> None:
        self._limits = limits
        self._all = Bucket(limits.handshakes_per_s, limits.handshakes_burst, limits.handshakes_burst * 1000, now_ns)
        self._peers: dict[str, Bucket] = {}

    def ask(self, peer: str, routes_open: int, now_ns: int) -> Admitted | Wait:
        """May this address open one more stream now?"""
        limits = self._limits
        if routes_open >= limits.routes_max:
            return Wait("too_many", 5 * SECOND)
        if len(self._peers) >= limits.peers_max:
            self._peers.clear()  # a bounded memory: everybody starts with a full bucket again
        bucket = self._peers.get(peer) or Bucket(
            limits.per_peer_per_s, limits.per_peer_burst, limits.per_peer_burst * 1000, now_ns
        )
        bucket, wait_ns = bucket.take(now_ns)
        self._peers[peer] = bucket
        if wait_ns:
            return Wait("too_many", wait_ns)
        self._all, wait_ns = self._all.take(now_ns)
        return Wait("too_many", wait_ns) if wait_ns else Admitted()


class Greetings:
    """Streams that wait for their Master's first word. Who has waited for too long is counted no more: it is the
    Master's affair, or nobody's, and keeps nobody out."""

    def __init__(self, patience_ns: int) -> None:
        self._patience_ns = patience_ns
        self._since_ns: dict[int, int] = {}  # the longest first

    def begin(self, route: int, now_ns: int) -> None:
        """This stream was let in."""
        self._since_ns[route] = now_ns

    def end(self, route: int) -> None:
        """It was answered, or has gone."""
        self._since_ns.pop(route, None)

    def waiting(self, now_ns: int) -> int:
        """How many wait."""
        while self._since_ns and now_ns - self._since_ns[first := next(iter(self._since_ns))] > self._patience_ns:
            del self._since_ns[first]
        return len(self._since_ns)


class Callers:
    """How often each host calls, whatever connections it comes on: streams opened and reset by the thousand cost a
    handler each, and gRPC bounds only those open at once on one connection."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._buckets: dict[str, Bucket] = {}
        self._running: Counter[str] = Counter()

    def enter(self, host_id: str, now_ns: int) -> Admitted | Wait:
        """May this host make one more call now? If so, `leave` when it has ended."""
        limits = self._limits
        if self._running[host_id] >= limits.calls_at_once:
            return Wait("too_many", SECOND)
        if len(self._buckets) >= limits.peers_max:
            self._buckets.clear()
        bucket = self._buckets.get(host_id) or Bucket(
            limits.calls_per_s, limits.calls_burst, limits.calls_burst * 1000, now_ns
        )
        self._buckets[host_id], wait_ns = bucket.take(now_ns)
        if wait_ns:
            return Wait("too_many", wait_ns)
        self._running[host_id] += 1
        return Admitted()

    def leave(self, host_id: str) -> None:
        """A call that was admitted has ended."""
        self._running[host_id] -= 1
        if not self._running[host_id]:
            del self._running[host_id]


def masterless_ns(away_ns: int, agents: int) -> int:
    """When an agent should come again that an Access without a Master sends away.

    Soon after the Master went, which may be starting anew, then more seldom; and no more at once than a worker greets.
    away_ns: since the Master went; agents: that were here then.
    """
    return min(MASTERLESS_NS_MAX, max(MASTERLESS_NS_MIN, away_ns // 4, agents * MASTERLESS_NS_EACH))
