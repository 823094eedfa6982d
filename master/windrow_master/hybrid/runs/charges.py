"""Charges renters for runs at services, as for rentals: what they cost and the operator's margin, by the second.

A run has one rental with one line. No host signs its time: it is counted by the Master's clock, from the beginning of
its job there to its end.
"""

from windrow_master.hybrid.purchases.backends import find_backend
from windrow_master.hybrid.purchases.costs import with_margin
from windrow_master.hybrid.purchases.model import Purchase, run_host
from windrow_master.identity.accounts import ensure_own
from windrow_master.identity.model import BUYER_ACCOUNT, BUYER_NAME, Role
from windrow_master.jobs.model import Job
from windrow_master.jobs.transitions import spent
from windrow_master.market.model import Rental, RentalId, RentalLine, RentalState
from windrow_master.market.service import LEASE_NS, MarketService
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import ClusterId, WorkloadId
from windrow_proto.units import Microcents

_IDS_BEGIN = "purchase_"
_TIER_MAX = 64


class RunCharges:
    """Methods run inside the caller's unit of work."""

    def __init__(self, market: MarketService) -> None:
        self._market = market

    def open(self, purchase: Purchase, uow: UnitOfWork, job: Job) -> None:
        """Rent it to its job, within what is left of the budget. Raises InsufficientFunds, SpendingLimitReached."""
        row, offer, now_ns = find_backend(uow, purchase.backend), purchase.offer, uow.now_wall_ns
        price = with_margin(offer.price_per_hour, row.margin_percent)
        budget = job.request.budget
        rental = Rental(
            rental_id=RentalId(uow.mint("rental")),
            cluster_id=ClusterId(purchase.purchase_id),
            cluster_name=job.name,
            renter=job.account_id,
            tier=f"{offer.gpu or 'cpu'} at {purchase.backend}"[:_TIER_MAX],
            price_per_hour=price,
            fee_permille=0,
            simulated=False,
            state=RentalState.OPEN,
            opened_at_ns=now_ns,
            budget=None if budget is None else Microcents(max(0, budget - sum(spent(uow, job)))),
            spenders=job.spenders,
        )
        line = RentalLine(
            workload_id=_line_of(purchase),
            rental_id=rental.rental_id,
            host_id=run_host(purchase.purchase_id),
            provider=BUYER_ACCOUNT,
            price_per_hour=price,
            slots=(),
            lease_from_ns=now_ns,
            lease_until_ns=now_ns + LEASE_NS,
            seen_at_ns=now_ns,
        )
        ensure_own(uow, BUYER_ACCOUNT, BUYER_NAME, frozenset({Role.PROVIDER}))
        self._market.start_rental(uow, rental, [line])

    def count(self, uow: UnitOfWork, purchase: Purchase) -> None:
        """Charge for its time until now."""
        self._market.measure(uow, _line_of(purchase), uow.now_wall_ns)

    def close(self, uow: UnitOfWork, purchase: Purchase, reason: str, exit_code: int | None) -> None:
        """Charge for the rest, until its service ended it at the latest. Safe to repeat."""
        now_ns = uow.now_wall_ns
        at_ns = min(now_ns, purchase.ended_at_ns or now_ns)
        self._market.measure_last(uow, _line_of(purchase), at_ns, reason, exit_code)

    def unclosed(self, uow: UnitOfWork) -> list[str]:
        """The runs whose rentals are open."""
        return [one for one in self._market.live_clusters(uow) if one.startswith(_IDS_BEGIN)]


def _line_of(purchase: Purchase) -> WorkloadId:
    return WorkloadId(purchase.purchase_id)
