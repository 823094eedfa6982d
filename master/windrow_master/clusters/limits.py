"""The limits that a cluster was asked for with: how long, for how much, how long with nobody in it. Pure, but for
`Uses`, which knows who is in one now."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from windrow_master.clusters.model import Cluster, ClusterKind, ClusterPhase, ClusterRequest
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import ClusterId
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND, Microcents, money_text

DURATION_MAX_NS: Final = 365 * DAY
IDLE_MIN_NS: Final = MINUTE
IDLE_MAX_NS: Final = 30 * DAY
BUDGET_MARGIN_NS: Final = 60 * SECOND
"""Before its budget is used up work is ended: 30 s for its files, 10 s of grace, 20 s for a host that is slow."""
_RUNS: Final = frozenset({ClusterPhase.RUNNING, ClusterPhase.DEGRADED})


def check(request: ClusterRequest) -> None:
    """Raises InvalidInput naming the field."""
    duration, idle = request.max_duration_ns, request.idle_ns
    _check("max_duration_seconds", duration is None or SECOND <= duration <= DURATION_MAX_NS, "from 1 s to 365 days")
    _check("budget", request.budget is None or request.budget > 0, "above 0")
    _check("idle_seconds", idle is None or IDLE_MIN_NS <= idle <= IDLE_MAX_NS, "from 60 s to 30 days")
    ends_itself = bool(request.argv) and request.kind is not ClusterKind.SERVICE
    _check("idle_seconds", idle is None or not ends_itself, "left out where a command runs: its end is the cluster's")


def reached(cluster: Cluster, charged: Microcents, idle_ns: int, now_ns: int) -> str:
    """Which limit a cluster has come to, in words; empty: none. charged: so far; idle_ns: of `Uses`."""
    asked = cluster.request
    if cluster.phase not in _RUNS or cluster.started_at_ns is None:
        return ""
    running_ns = max(0, now_ns - cluster.started_at_ns)
    if asked.max_duration_ns is not None and running_ns >= asked.max_duration_ns:
        return ran_out(asked.max_duration_ns)
    if asked.budget is not None and owed_soon(cluster.price_per_hour, running_ns, charged) > asked.budget:
        return used_up(asked.budget)
    if asked.idle_ns is not None and idle_ns >= asked.idle_ns:
        return f"nobody was in it for {asked.idle_ns // SECOND} s"
    return ""


def ends_at_ns(cluster: Cluster) -> int | None:
    """When its duration or its budget ends it if it goes on as it does, in wall time; None: neither does."""
    asked, began_ns, price = cluster.request, cluster.started_at_ns, cluster.price_per_hour
    if cluster.phase not in _RUNS or began_ns is None:
        return None
    spans_ns = [] if asked.max_duration_ns is None else [asked.max_duration_ns]
    if asked.budget is not None and price:
        spans_ns.append(max(0, asked.budget * HOUR // price - BUDGET_MARGIN_NS))
    return began_ns + min(spans_ns) if spans_ns else None


def owed_soon(price_per_hour: int, running_ns: int, charged: int) -> int:
    """At most what it will have cost by the time it can be ended, in microcents, rounded up.

    Receipts come every 10 s and later where a link is down, so running time by our own clock counts where it is more.
    """
    by_clock = -(-price_per_hour * running_ns // HOUR)
    return max(charged, by_clock) - (-price_per_hour * BUDGET_MARGIN_NS // HOUR)


def ran_out(duration_ns: int) -> str:
    """Why something ended that ran for as long as it may."""
    return f"it ran for the {duration_ns // SECOND} s that it may"


def used_up(budget: Microcents) -> str:
    """Why something ended before it cost more than it may."""
    return f"its budget of {money_text(budget)} would be passed"


class Uses:
    """Who is in which cluster now: commands, files and tunnels, also those of a service's visitors; readers of logs are
    not. In the memory of one Master: with another an idle time begins anew."""

    def __init__(self) -> None:
        self._inside: Counter[ClusterId] = Counter()
        self._idle_since_ns: dict[ClusterId, int] = {}

    @contextmanager
    def inside(self, cluster_id: ClusterId) -> Iterator[None]:
        """Somebody is in it, for as long as this lasts."""
        self._inside[cluster_id] += 1
        try:
            yield
        finally:
            self._inside[cluster_id] -= 1
            self._idle_since_ns.pop(cluster_id, None)
            if not self._inside[cluster_id]:
                del self._inside[cluster_id]

    def idle_ns(self, cluster_id: ClusterId, now_ns: int) -> int:
        """For how long nobody has been in it, counted from the first time that this was asked since then."""
        if cluster_id in self._inside:
            return 0
        return max(0, now_ns - self._idle_since_ns.setdefault(cluster_id, now_ns))

    def forget(self, cluster_id: ClusterId) -> None:
        """It ends."""
        self._idle_since_ns.pop(cluster_id, None)


def _check(field: str, holds: bool, must: str) -> None:
    if not holds:
        raise InvalidInput(f"{field} must be {must}.", subject=field)
