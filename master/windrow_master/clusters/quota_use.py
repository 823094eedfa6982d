"""Counts what clusters ask for and hold of what quotas limit. A slice of a card counts as one GPU of its own tier."""

from collections.abc import Mapping, Sequence

from windrow_master.clusters.model import ClusterRequest
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.fleet import gpus
from windrow_master.placement.model import Placement
from windrow_master.queue import quotas
from windrow_master.queue.messages import HeldBelow
from windrow_master.queue.model import MILLI
from windrow_master.queue.quota import Quota, QuotaItem, What
from windrow_master.spec import Resources
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId
from windrow_proto.units import MIB


def held(uow: UnitOfWork, question: HeldBelow) -> Mapping[What, int]:
    """How much of each item the clusters below a node hold."""
    found = dict[What, int]()
    for row in uow[ClusterRepository].held_below(question.level, question.node_id):
        tier, is_gpu = quotas.tier_of(row.tier), not row.tier.startswith(f"{gpus.CPU_CLASS}/")
        amounts = _amounts(row.slots if is_gpu else 0, tier, row.cpus, row.memory_bytes, row.clusters, row.price)
        for what, amount in amounts.items():
            found[what] = found.get(what, 0) + amount
    return found


def asked(request: ClusterRequest) -> dict[What, int]:
    """What a request asks for, wherever it runs. Its price is not known."""
    hosts, memory = request.hosts, request.memory_bytes or 0
    tier = quotas.tier_of(request.tier or "")
    return _amounts(request.gpus * hosts, tier, request.cpus * hosts, memory * hosts, 1, 0)


def check(
    uow: UnitOfWork, account_id: AccountId, request: ClusterRequest, *, may_wait: bool = False
) -> Sequence[Quota]:
    """Raises QuotaExceeded where a request passes a quota wherever it runs; returns the quotas, for `check_at`."""
    found = quotas.of(uow, account_id)
    if found:
        quotas.check(uow, found, asked(request), may_wait=may_wait)
    return found


def check_all(uow: UnitOfWork, account_id: AccountId, asked: Sequence[tuple[Resources, str, int]]) -> None:
    """Raises QuotaExceeded where these machines together pass a quota: what each asks for, its tier and price."""
    total = dict[What, int]()
    for one, tier, price in asked:
        amounts = _amounts(one.gpus, quotas.tier_of(tier), one.cpus, one.memory_bytes or 0, 1, price)
        for what, amount in amounts.items():
            total[what] = total.get(what, 0) + amount
    quotas.check(uow, quotas.of(uow, account_id), total)


def check_at(
    uow: UnitOfWork, found: Sequence[Quota], request: ClusterRequest, place: Placement, *, is_more: bool = False
) -> None:
    """Raises QuotaExceeded where it passes one of these in this place. is_more: hosts of a cluster that there is."""
    if not found:
        return
    hosts, tier = len(place.members), quotas.tier_of(place.chosen.tier)
    cards, cpus, memory = (each * hosts for each in (request.gpus, request.cpus, request.memory_bytes or 0))
    quotas.check(uow, found, _amounts(cards, tier, cpus, memory, 0 if is_more else 1, place.price_per_hour))


def _amounts(cards: int, tier: str, cpus: int, memory_bytes: int, clusters: int, price: int) -> dict[What, int]:
    return {
        (QuotaItem.GPUS, tier): cards * MILLI,
        (QuotaItem.CPUS, ""): cpus * MILLI,
        (QuotaItem.MEMORY, ""): -(-memory_bytes // MIB),
        (QuotaItem.CLUSTERS, ""): clusters,
        (QuotaItem.SPEND, ""): price,
    }
