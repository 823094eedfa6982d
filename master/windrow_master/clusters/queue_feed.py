"""Reads hosts, what runs on them and whose it is for the queue of the leading Master, whenever something was touched.

    commit ─▶ touched hosts ─▶ news: their rows, read beside the writer ─▶ the queue

The rows decide: a cluster that a living job made is the job's entry, any other one its own. The Master's own test
rentals hold nothing here, since they give way. A host that takes no work is gone, or has no size while work runs there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.clusters.entries import Shape, entry_of
from windrow_master.clusters.messages import EntriesOf
from windrow_master.clusters.model import Cluster, Workload
from windrow_master.clusters.pools import POOLS_MAX, SHAPES_MAX, Pools
from windrow_master.clusters.repository import ClusterRepository, WorkloadRepository
from windrow_master.clusters.snapshot import Placer, is_part_of_fleet
from windrow_master.clusters.states import HOLDING
from windrow_master.clusters.terms import Terms, read_terms
from windrow_master.fleet.service import FleetService
from windrow_master.market.model import PROOF_ACCOUNT
from windrow_master.market.service import MarketService, PriceBook
from windrow_master.placement.model import Candidate
from windrow_master.queue.backfill import Host
from windrow_master.queue.model import MILLI, NOTHING, Amounts, Entry, Need, cost
from windrow_master.queue.ports import Charge, HostNews, News, Run
from windrow_master.queue.rules import nodes_of
from windrow_master.queue.shares import Node
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, ClusterId, HostId
from windrow_proto.ports import Clock
from windrow_proto.units import MIB, SECOND

TERMS_EVERY_NS: Final = 5 * SECOND
"""Between two looks at prices, at limits of hosts and at hosts that settle, which no commit of a host tells of."""
REFERENCE_TIER: Final = "h100/A"
"""A card of it costs one; of others as much as their suggested prices are of its own."""
CLOSED: Final = "closed"
"""The pool of hosts that take no work."""
PAST_MAX: Final = 20_000
"""Clusters whose past use counts after a start, the latest first."""


class TierCosts(Mapping[str, int]):
    """The cost of a card by tier, in permille of the reference tier's; of any tier that is asked for. Without a tier,
    of the cheapest card that was seen on a host: what may run on any counts no more than it has to while it waits."""

    def __init__(self, market: MarketService) -> None:
        self._market = market
        self._known: dict[str, int] = {}
        self._least = 0

    def seen(self, tiers: Iterable[str]) -> None:
        """Hosts have cards of these tiers."""
        for tier in tiers:
            self._least = min(self._least or self[tier], self[tier])

    def __getitem__(self, tier: str) -> int:
        if not tier:
            return max(1, self._least)
        if tier not in self._known:
            price, whole = self._market.suggested(tier), self._market.suggested(REFERENCE_TIER)
            self._known[tier] = max(1, MILLI * price // whole)
        return self._known[tier]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


@dataclass(frozen=True, slots=True)
class _Read:
    """Rows read for the queue: of the wanted hosts, or of all (wanted None). terms: prices and limits, if due."""

    wanted: frozenset[HostId] | None
    candidates: Mapping[HostId, Candidate]
    runs: Mapping[HostId, Sequence[tuple[Workload, Entry]]]
    nodes: Sequence[Node]
    terms: Terms | None


class QueueFeed:
    """Reads rows for the queue. Used on the loop, by the queue alone."""

    def __init__(self, store: Store, clock: Clock, fleet: FleetService, market: MarketService, placer: Placer) -> None:
        self._store, self._clock, self._market, self._placer = store, clock, market, placer
        self._costs = TierCosts(market)
        self._pools = Pools()
        self._suiting: dict[tuple[Shape, str], frozenset[str]] = {}
        self._suited = 0
        self._is_built = False
        self._touched: set[HostId] = set()
        self._settling: frozenset[HostId] = frozenset()
        self._known: dict[HostId, Amounts] = {}
        self._capacity = NOTHING
        self._terms: Terms = PriceBook(()), {}
        self._terms_due_ns = 0
        fleet.on_touch(self._touched.add)

    # --- what the queue asks -----------------------------------------------------------------------------------------

    def tier_costs(self) -> Mapping[str, int]:
        """As queue.ports.Feed."""
        return self._costs

    def due_ns(self) -> int:
        """As queue.ports.Feed."""
        return self._terms_due_ns

    def need(self, entry: Entry) -> Need:
        """As queue.ports.Feed."""
        if not isinstance(entry.shape, Shape) or entry.need.only:
            return entry.need
        if len(self._suiting) > SHAPES_MAX or self._suited != len(self._pools):
            self._suiting.clear()
            self._suited = len(self._pools)
        key = entry.shape, entry.leaf
        if (pools := self._suiting.get(key)) is None:
            pools = self._suiting[key] = self._pools.suiting(entry.shape.request, AccountId(entry.leaf))
        return replace(entry.need, pools=pools)

    async def news(self) -> News | None:
        """As queue.ports.Feed."""
        is_due = self._clock.monotonic_ns() >= self._terms_due_ns
        self._is_built &= len(self._pools) <= POOLS_MAX
        if self._is_built and not self._touched and not is_due:
            return None
        touched = self._touched.copy()
        self._touched -= touched
        wanted = frozenset(touched | (self._settling if is_due else set())) if self._is_built else None
        try:
            read = await self._store.read(lambda uow: self._read(uow, wanted, with_terms=is_due or wanted is None))
        except BaseException:
            self._touched |= touched  # for the next call
            raise
        return self._news(read)

    def touched(self) -> frozenset[str]:
        """As queue.ports.Feed."""
        return frozenset(self._touched)

    def read_again(self, host_ids: Iterable[str]) -> None:
        """As queue.ports.Feed."""
        self._touched.update(HostId(one) for one in host_ids)

    async def nodes(self, leaves: Sequence[str]) -> Sequence[Node]:
        """As queue.ports.Feed."""
        return await self._store.read(lambda uow: nodes_of(uow, leaves)) if leaves else ()

    async def past(self, since_ns: int) -> Sequence[Charge]:
        """As queue.ports.Feed."""
        rows = await self._store.read(lambda uow: uow[WorkloadRepository].past(since_ns, PAST_MAX))
        return [
            Charge(
                leaf=one.account_id,
                cost=cost({one.tier: one.cards * MILLI}, one.cpus * MILLI, _mib(one.memory_bytes), self._costs),
                from_ns=one.from_ns,
                to_ns=one.to_ns,
            )
            for one in rows
            if one.account_id != PROOF_ACCOUNT
        ]

    # --- inside ------------------------------------------------------------------------------------------------------

    def _read(self, uow: UnitOfWork, wanted: frozenset[HostId] | None, *, with_terms: bool) -> _Read:
        terms: Terms | None = None
        if with_terms:
            terms, wanted = read_terms(uow, self._market, self._terms, wanted)
        candidates = self._placer.candidates(uow, 1, None if wanted is None else sorted(wanted))
        workloads = uow[WorkloadRepository]
        held = workloads.held() if wanted is None else workloads.held_on_hosts(sorted(wanted))
        entries = self._entries(uow, list(dict.fromkeys(one.cluster_id for one in held)))
        runs: dict[HostId, list[tuple[Workload, Entry]]] = {}
        for workload in held:
            if workload.cluster_id in entries:
                runs.setdefault(workload.host_id, []).append((workload, entries[workload.cluster_id]))
        leaves = dict.fromkeys(entry.leaf for entry in entries.values())
        return _Read(wanted, {one.host_id: one for one in candidates}, runs, nodes_of(uow, leaves), terms)

    def _entries(self, uow: UnitOfWork, cluster_ids: Sequence[ClusterId]) -> dict[ClusterId, Entry]:
        """The entries of these clusters, without those by which the Master tests hosts. A job's attempt is the job;
        what only waits to be cleared away is no attempt any more."""
        clusters = [one for one in uow[ClusterRepository].some(cluster_ids) if one.account_id != PROOF_ACCOUNT]
        of_jobs = uow.ask(EntriesOf([one for one in clusters if one.phase in HOLDING]))
        return {one.cluster_id: of_jobs.get(one.cluster_id) or self._entry(one) for one in clusters}

    def _entry(self, cluster: Cluster) -> Entry:
        return entry_of(
            cluster.request,
            cluster.account_id,
            cluster.cluster_id,
            cluster.created_at_ns,
            tier_costs=self._costs,
            hosts=cluster.request.hosts,
            tier=cluster.tier,
        )

    def _news(self, read: _Read) -> News | None:
        if not self._is_built:
            self._pools = Pools()
            self._suiting.clear()
        before, found, gone = len(self._pools), list[HostNews](), list[str]()
        seen = read.candidates.keys() | read.runs.keys()
        for host_id in sorted(seen):
            news = self._host_news(host_id, read.candidates.get(host_id), read.runs.get(host_id, ()))
            if news.host.pool != CLOSED or news.runs:
                found.append(news)
            else:
                gone.append(host_id)
        lost = (self._known.keys() if read.wanted is None else read.wanted) - seen
        for host_id in lost:
            self._count(host_id, NOTHING)
        settling = {one for one, host in read.candidates.items() if host.link_state == "online" and not host.is_settled}
        self._settling = frozenset((self._settling - seen - lost) | settling)
        if read.terms is not None:
            self._terms, self._terms_due_ns = read.terms, self._clock.monotonic_ns() + TERMS_EVERY_NS
        has_new_pools, self._is_built = len(self._pools) != before, True
        if not (found or gone or lost):
            return None
        return News(found, [*gone, *sorted(lost)], self._capacity, read.nodes, has_new_pools)

    def _host_news(self, host_id: HostId, one: Candidate | None, runs: Sequence[tuple[Workload, Entry]]) -> HostNews:
        """A host that takes no work counts in the capacity all the same, so that shares are no others while it, or all
        of them after a start of the Master, are not heard of."""
        host, numbers = Host(host_id=host_id, pool=CLOSED), dict[str, int]()
        if one is not None and one.is_known and one.most_works != 0:
            cards = [slot for slot in one.slots if slot.is_gpu and is_part_of_fleet(slot)]
            size = len(cards), one.cpus * MILLI, _mib(one.memory_bytes)
            if one.admin_state == "active" and one.link_state == "online" and one.is_settled:
                numbers = {slot.slot_id: number for number, slot in enumerate(cards)}
                pool = f"kept for {one.kept_for}" if one.kept_for else self._pools.of(one)
                host = Host(host_id=host_id, pool=pool, cards=size[0], cpus=size[1], memory=size[2])
            tiers = dict[str, int]()
            for slot in cards:
                tiers[slot.tier] = tiers.get(slot.tier, 0) + MILLI
            self._costs.seen(tiers)
            self._count(host_id, cost(tiers, size[1], size[2], self._costs))
        else:
            self._count(host_id, NOTHING)
        return HostNews(host, _runs(runs, numbers), None if one is None else one.closes_at_ns)

    def _count(self, host_id: HostId, amounts: Amounts) -> None:
        """Count the host in the capacity of the fleet."""
        self._capacity = self._capacity.plus(self._known.pop(host_id, NOTHING), -1).plus(amounts)
        if amounts != NOTHING:
            self._known[host_id] = amounts


def _runs(held: Sequence[tuple[Workload, Entry]], numbers: Mapping[str, int]) -> tuple[Run, ...]:
    """What runs on a host, each entry once. numbers: of its cards, by slot."""
    found = dict[str, Run]()
    for workload, entry in held:
        cards = {numbers[slot.slot_id] for slot in workload.slots if slot.slot_id in numbers}
        known = found.get(entry.entry_id)
        since_ns = workload.created_at_ns if known is None else min(known.started_ns, workload.created_at_ns)
        cards |= set() if known is None else set(known.cards)
        found[entry.entry_id] = Run(entry, tuple(sorted(cards)), since_ns)
    return tuple(found.values())


def _mib(size_bytes: int) -> int:
    return size_bytes // MIB
