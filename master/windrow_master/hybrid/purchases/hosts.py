"""The hosts that bought machines become: their bootstrap, price, and end, by the services that have hosts."""

from collections.abc import Callable
from typing import Final

from windrow_master.clusters.lookup import running_on
from windrow_master.fleet.lookup import find_host
from windrow_master.fleet.messages import HostLeaving
from windrow_master.fleet.service import FleetService
from windrow_master.fleet.states import AdminEvent, AdminState
from windrow_master.hybrid.backends import bootstrap
from windrow_master.hybrid.purchases.model import ORPHAN_TTL_NS, Purchase
from windrow_master.identity.accounts import ensure_own
from windrow_master.identity.model import BUYER_ACCOUNT, BUYER_NAME, Role
from windrow_master.identity.service import IdentityService
from windrow_master.market.service import MarketService
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import HostId
from windrow_proto.redact import redacted
from windrow_proto.units import SECOND, Microcents

_GRADES: Final = "ABC"


class BoughtHosts:
    """See `Hosts` of service.py. join_line: the line for a shell that lets a machine join, from a token. start_run: the
    user data of a run, which has no host."""

    def __init__(
        self,
        identity: IdentityService,
        fleet: FleetService,
        market: MarketService,
        join_line: Callable[[str], str],
        start_run: Callable[[UnitOfWork, Purchase], str],
    ) -> None:
        self._identity, self._fleet, self._market = identity, fleet, market
        self._join_line, self._start_run = join_line, start_run

    def bootstrap(self, uow: UnitOfWork, purchase: Purchase, life_ns: int) -> str:
        """User data with a join token for this purchase alone."""
        if purchase.offer.is_run:
            return self._start_run(uow, purchase)
        ensure_own(uow, BUYER_ACCOUNT, BUYER_NAME, frozenset({Role.PROVIDER}))
        token = self._identity.purchase_token(uow, BUYER_ACCOUNT, purchase.purchase_id, life_ns)
        ttl_s = ORPHAN_TTL_NS // SECOND
        return bootstrap.user_data(self._join_line(token), purchase.purchase_id, purchase.ends_at_ns, ttl_s)

    def revoke(self, uow: UnitOfWork, purchase: Purchase) -> None:
        """Make its join token worthless."""
        self._identity.end_purchase_tokens(uow, purchase.purchase_id)

    def redacted(self, console: str) -> str:
        """The text without secrets."""
        return str(redacted(console))

    def is_busy(self, uow: UnitOfWork, host_id: HostId) -> bool:
        """True while clusters hold anything of it."""
        return running_on(uow, host_id) > 0

    def price(self, uow: UnitOfWork, purchase: Purchase, margin_percent: int) -> None:
        """Ask, for its class of cards or processors, what one of its own costs, and the margin; rounded up. What runs
        keeps its price."""
        offer = purchase.offer
        if offer.is_run:
            return
        parts, name = (offer.gpu_count, offer.gpu) if offer.gpu_count else (max(1, offer.cpus), "cpu")
        price = Microcents(-(-offer.price_per_hour * (100 + margin_percent) // (100 * parts)))
        for grade in _GRADES:
            self._market.ask_own(uow, BUYER_ACCOUNT, f"{name}/{grade}", price)

    def paid(self, uow: UnitOfWork, host_id: HostId) -> Microcents:
        """The sum that renters paid for it."""
        return self._market.charged_on(uow, host_id)

    def drain(self, uow: UnitOfWork, host_id: HostId, at_ns: int, reason: str) -> None:
        """Let nothing new start on it, and its jobs move, which costs them no retry."""
        host = find_host(uow, host_id)
        if host is not None and host.admin_state is AdminState.ACTIVE:
            self._fleet.hosts.decide(uow, host_id, AdminEvent.DRAIN, "master", reason)
            uow.publish(HostLeaving(host_id, at_ns, "purchase"))

    def lose(self, uow: UnitOfWork, host_id: HostId, reason: str) -> None:
        """It is gone now: its work is lost, its leases end."""
        if find_host(uow, host_id) is not None:
            self._fleet.gone(uow, host_id, reason)

    def quarantine(self, uow: UnitOfWork, host_id: HostId, reason: str) -> None:
        """Use it for nothing."""
        self._fleet.quarantine(uow, host_id, reason, "master")

    def check_instance(self, uow: UnitOfWork, host_id: HostId) -> None:
        """Compare the machine that its agent says it is on with the one that was bought."""
        if find_host(uow, host_id) is not None:
            self._fleet.check_instance(uow, host_id)
