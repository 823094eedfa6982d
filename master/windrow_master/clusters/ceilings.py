"""Checks, in the transaction that grants a place, that no share comes to hold more than its ceiling. The queue looks at
ceilings before it tries a place; this one is for whatever starts without having waited, too."""

from collections.abc import Mapping

from windrow_master.clusters.model import ClusterRequest
from windrow_master.clusters.repository import ClusterRepository
from windrow_master.fleet import gpus
from windrow_master.identity.people_lookup import name_of, organisation_id_of
from windrow_master.placement.model import Placement
from windrow_master.queue.model import MILLI, NOTHING, Amounts, cost
from windrow_master.queue.quota import MAY_RAISE, NodeLevel
from windrow_master.queue.rules import rule_of
from windrow_master.queue.service import QueueService
from windrow_master.queue.shares import WHOLE, share_text
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import QuotaExceeded
from windrow_proto.ids import AccountId
from windrow_proto.units import MIB


class Ceilings:
    """The ceilings of shares. queue: has the size of the fleet, and what a card counts."""

    def __init__(self, queue: QueueService) -> None:
        self._queue = queue

    def check(self, uow: UnitOfWork, account_id: AccountId, request: ClusterRequest, place: Placement) -> None:
        """Raises QuotaExceeded where the project or its organisation would hold more than its ceiling with this place
        and what it holds already; before the fleet is known, nothing."""
        shares = self._queue.shares
        if shares.capacity == NOTHING:
            return
        above = (organisation_id_of(uow, account_id), NodeLevel.ORGANISATION), (account_id, NodeLevel.PROJECT)
        for node_id, level in above:
            rule = None if node_id is None else rule_of(uow, node_id)
            most = WHOLE if rule is None else rule.ceiling if rule.is_borrowing else rule.guarantee
            if rule is None or most == WHOLE:
                continue
            costs = self._queue.tier_costs()
            asked, held = _asked(request, place, costs), _held(uow, level, rule.node_id, costs)
            if shares.part(held.plus(asked)) * WHOLE > most:
                parts = (share_text(round(shares.part(one) * WHOLE)) for one in (held, asked))
                said = "Ceiling of the share of the {} {}: {}, held {}, asked {}. {} can raise it.".format(
                    *(level, name_of(uow, rule.node_id) or rule.node_id, share_text(most), *parts, MAY_RAISE[level])
                )
                is_possible = shares.part(asked) * WHOLE <= most
                raise QuotaExceeded(said, subject=rule.node_id, is_possible=is_possible)


def _asked(request: ClusterRequest, place: Placement, costs: Mapping[str, int]) -> Amounts:
    hosts = len(place.members)
    memory = hosts * -(-(request.memory_bytes or 0) // MIB)
    cards, cpus = hosts * request.gpus * MILLI, hosts * request.cpus * MILLI
    return cost({place.chosen.tier: cards} if cards else {}, cpus, memory, costs)


def _held(uow: UnitOfWork, level: NodeLevel, node_id: str, costs: Mapping[str, int]) -> Amounts:
    found = NOTHING
    for row in uow[ClusterRepository].held_below(level, node_id):
        is_gpu = not row.tier.startswith(f"{gpus.CPU_CLASS}/")
        cards = {row.tier: row.slots * MILLI} if is_gpu else {}
        found = found.plus(cost(cards, row.cpus * MILLI, -(-row.memory_bytes // MIB), costs))
    return found
