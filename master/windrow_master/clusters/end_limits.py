"""The limits that end a cluster: its duration, its budget, its idle time, and the silence of its client. Pure, but
for `Uses`, which knows who is in one now, and `Clients`, which knows when each client was heard."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from windrow_master.clusters.model import (
    OVER_HOSTS,
    Cluster,
    ClusterKind,
    ClusterPhase,
    ClusterRequest,
    Workload,
    WorkPhase,
)
from windrow_master.clusters.reports import CREATE_NS, FILES_WAIT_NS
from windrow_master.clusters.states import HOLDING
from windrow_master.market.metering import Spent
from windrow_proto.errors import Conflict, InvalidInput, TooMany
from windrow_proto.ids import ClusterId
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND, Microcents, money_text

BUDGET_MARGIN_NS: Final = 60 * SECOND
"""Before its budget is used up work is ended: 30 s for its files, 10 s of grace, 20 s for a host that is slow. A budget
that does not cover so much is refused: work would be ended as it starts."""
WAITED_MAX_NS: Final = 16 * FILES_WAIT_NS
"""Of slots of one account in an hour, in which they wait for its files: that costs nothing, and keeps others out."""
REST_NS: Final = 5 * MINUTE
"""Between two looks at a cluster that starts or runs and to which nothing happens; one with a budget is looked at more
often, since receipts may charge a little more than the clock says, and one that counts for a spending limit, which
others use up, too."""
LATELY_MAX: Final = 200
"""Of an account's clusters, the latest of which are looked at for that."""
_RUNS: Final = frozenset({ClusterPhase.RUNNING, ClusterPhase.DEGRADED})
_STEADY: Final = {
    ClusterPhase.CREATING: frozenset({WorkPhase.PENDING, WorkPhase.PREPARING}),
    ClusterPhase.RUNNING: frozenset({WorkPhase.RUNNING}),
}
"""The phases of a steady cluster, with those of all that it holds."""


def check_waited(clusters: Iterable[Cluster], now_ns: int) -> None:
    """Raises TooMany where an account's clusters held slots for long and only waited for files. What still waits counts
    as if its files never came."""
    if sum(_waited_ns(cluster, now_ns) for cluster in clusters) >= WAITED_MAX_NS:
        raise TooMany(
            "Machines of this account hold hosts, or held them in the last hour, and wait for files that did not come. "
            "Send the files of those that wait, or delete them and try again later."
        )


def _waited_ns(cluster: Cluster, now_ns: int) -> int:
    asked = cluster.request
    slots = max(1, asked.gpus) * asked.hosts if asked.await_files else 0
    if cluster.phase is ClusterPhase.CREATING:
        return slots * FILES_WAIT_NS
    is_long_ago = now_ns - cluster.created_at_ns >= HOUR + FILES_WAIT_NS
    if cluster.started_at_ns is not None or is_long_ago:
        return 0
    return slots * min(FILES_WAIT_NS, (cluster.ended_at_ns or now_ns) - cluster.created_at_ns)


def are_any(request: ClusterRequest) -> bool:
    """Return whether a cluster was requested with limits to its time, cost or use."""
    return request.max_duration_ns is not None or request.budget is not None or request.idle_ns is not None


def may_end_unused(request: ClusterRequest) -> bool:
    """Return whether a project's idle time is for it: a machine to work in without one of its own."""
    is_machine = request.kind is ClusterKind.BOX and not request.argv and request.client_lease_ns is None
    return is_machine and request.idle_ns is None


def reached(cluster: Cluster, spent: Spent, idle_ns: int, now_ns: int) -> str:
    """Return which limit a cluster has come to, in words; empty: none. idle_ns: of `Uses`."""
    asked = cluster.request
    # A host that signs running time and does not say that it runs is held to the same.
    began_ns = spent.began_ns if cluster.started_at_ns is None else cluster.started_at_ns
    if cluster.phase not in HOLDING or began_ns is None:
        return ""
    if asked.max_duration_ns is not None and now_ns - began_ns >= asked.max_duration_ns:
        return ran_out(asked.max_duration_ns)
    if asked.budget is not None and owed_soon(cluster.price_per_hour, spent) > asked.budget:
        return used_up(asked.budget)
    if asked.idle_ns is not None and idle_ns >= asked.idle_ns:
        return f"unused for {asked.idle_ns // SECOND} s"
    return ""


def ends_at_ns(cluster: Cluster, spent: Spent, now_ns: int) -> int | None:
    """Return when its duration or its budget ends it if it goes on as it does, in wall time; None: neither does."""
    asked, began_ns, price = cluster.request, cluster.started_at_ns, cluster.price_per_hour
    if cluster.phase not in _RUNS or began_ns is None:
        return None
    ends = [] if asked.max_duration_ns is None else [began_ns + asked.max_duration_ns]
    if asked.budget is not None and price:
        left = max(0, asked.budget - owed_soon(price, spent)) * HOUR // price
        ends.append((now_ns + left + SECOND // 2) // SECOND * SECOND)  # two looks at one moment agree
    return min(ends, default=None)


def is_steady(cluster: Cluster, held: Sequence[Workload]) -> bool:
    """Return whether nothing but its duration, its budget and the time that its start may take ends a cluster to which
    nothing happens. held: what of it holds slots."""
    asked, phases = cluster.request, _STEADY.get(cluster.phase, frozenset[WorkPhase]())
    is_left_alone = asked.idle_ns is None and asked.client_lease_ns is None and bool(phases)
    if cluster.phase is ClusterPhase.CREATING and (cluster.kind in OVER_HOSTS or not held):
        return False
    return is_left_alone and all(
        one.phase in phases and one.is_member and one.lost_since_ns is None and one.delete_command is None
        for one in held
    )


def rest_ns(cluster: Cluster, held: Sequence[Workload], spent: Spent, now_ns: int, *, is_capped: bool = False) -> int:
    """Return how soon a steady cluster may come to one of these. is_capped: or to a spending limit."""
    most_ns = REST_NS if cluster.request.budget is None and not is_capped else BUDGET_MARGIN_NS // 2
    if cluster.phase is not ClusterPhase.CREATING:
        ends_ns = ends_at_ns(cluster, spent, now_ns)
    elif spent.began_ns is None:
        ends_ns = min(one.created_at_ns for one in held) + CREATE_NS
        # Its host may sign running time without a word that it runs.
        as_running = replace(cluster, phase=ClusterPhase.RUNNING, started_at_ns=now_ns)
        ends_ns = min(ends_ns, ends_at_ns(as_running, spent, now_ns) or ends_ns)
    else:
        ends_ns = now_ns
    return most_ns if ends_ns is None else max(0, min(most_ns, ends_ns - now_ns))


def wait_left_ns(cluster: Cluster, now_ns: int) -> int:
    """Return how long it may still wait for its place."""
    return cluster.created_at_ns + (cluster.request.wait_ns or 0) - now_ns


def waited(cluster: Cluster) -> str:
    """Return why something failed that found no place while it might wait."""
    said = f"It found no place in the {span_text(cluster.request.wait_ns or 0)} that it might wait"
    return f"{said}. At last: {cluster.reason}" if cluster.reason else f"{said}."


def span_text(duration_ns: int) -> str:
    """A duration in whole units: 90 s, 5 min, 2 h, 3 days."""
    for unit, name in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min")):
        if duration_ns >= 2 * unit and duration_ns % unit == 0:
            return f"{duration_ns // unit} {name}"
    return f"{duration_ns // SECOND} s"


def unheard(lease_ns: int) -> str:
    """Return why something ended whose client was silent for its lease."""
    minutes, rest = divmod(lease_ns, MINUTE)
    span = f"{lease_ns // SECOND} s" if rest else f"{minutes} minute{'' if minutes == 1 else 's'}"
    return f"Its client has not been heard from for {span}"


def owed_soon(price_per_hour: int, spent: Spent) -> int:
    """At most what it will have cost by the time it can be ended, in microcents, rounded up."""
    return max(spent.charged, spent.by_clock) + least_budget(price_per_hour)


def least_budget(price_per_hour: int) -> Microcents:
    """Return the smallest budget with which work at this price starts, rounded up."""
    return Microcents(-(-price_per_hour * BUDGET_MARGIN_NS // HOUR))


def dearest(budget: Microcents) -> Microcents:
    """Return the highest price per hour at which work with this budget starts, rounded down."""
    return Microcents(budget * HOUR // BUDGET_MARGIN_NS)


class BudgetTooSmall(InvalidInput):
    """The budget is less than a minute costs. Give more, or ask for less."""

    def __init__(self, budget: Microcents, price_per_hour: int, *, is_rest: bool = False) -> None:
        """budget: what may be spent; is_rest: the rest of a budget, of which some is spent."""
        self.budget, self.price_per_hour = budget, price_per_hour
        which = f"The rest of the budget, {money_text(budget)}," if is_rest else f"The budget {money_text(budget)}"
        said = f"{which} is less than a minute costs here ({money_text(least_budget(price_per_hour))})."
        super().__init__(f"{said} Give more, or ask for less.", subject="budget")


def check_left(budget: Microcents | None, price_per_hour: int, spent: Spent) -> None:
    """Raises BudgetTooSmall where what is left of a budget does not pay for a minute at this price."""
    if budget is not None and owed_soon(price_per_hour, spent) > budget:
        left = max(0, budget - max(spent.charged, spent.by_clock))
        raise BudgetTooSmall(Microcents(left), price_per_hour, is_rest=True)


def extended(cluster: Cluster, duration_ns: int) -> Cluster:
    """Return the cluster with this longest running time. Raises Conflict where that means nothing, InvalidInput where
    it is shorter than now."""
    now_ns = cluster.request.max_duration_ns
    if cluster.phase not in _RUNS:
        words = f"Only a running cluster can be extended, and this one is {cluster.phase}."
        raise Conflict(words, subject=cluster.cluster_id)
    if now_ns is None:
        raise Conflict("It has no longest running time, and does not end by it.", subject=cluster.cluster_id)
    if duration_ns < now_ns:
        words = f"It can only be longer than now ({now_ns // SECOND} s). To end it earlier, stop or delete it."
        raise InvalidInput(words, subject="max_duration_seconds")
    return replace(cluster, request=replace(cluster.request, max_duration_ns=duration_ns))


def ran_out(duration_ns: int) -> str:
    """Return why something ended that ran for as long as it may."""
    return f"it ran for the {duration_ns // SECOND} s that it may"


def used_up(budget: Microcents) -> str:
    """Return why something ended before it cost more than it may."""
    return f"its budget of {money_text(budget)} would be passed"


class Uses:
    """The users of each cluster now: commands, files and tunnels, also those of a service's visitors; readers of
    logs do not count. In the memory of one Master: with another an idle time begins anew."""

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


class Clients:
    """The time at which the client of each cluster was last heard. In the memory of one Master: with another each
    lease begins anew."""

    def __init__(self) -> None:
        self._heard_at_ns: dict[ClusterId, int] = {}

    def heard(self, cluster_id: ClusterId, now_ns: int) -> None:
        """It lives."""
        self._heard_at_ns[cluster_id] = now_ns

    def lease_ends_at_ns(self, cluster: Cluster, now_ns: int) -> int | None:
        """Until when a cluster goes on without another word of its client; None: it holds nothing or needs no
        client."""
        lease_ns = cluster.request.client_lease_ns
        if lease_ns is None or cluster.phase not in HOLDING:
            return None
        return self._heard_at_ns.setdefault(cluster.cluster_id, now_ns) + lease_ns

    def forget(self, cluster_id: ClusterId) -> None:
        """It ends."""
        self._heard_at_ns.pop(cluster_id, None)
