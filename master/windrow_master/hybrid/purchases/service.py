"""Purchases for people and for the packages below: buys machines, shows them, ends them.

buy: caps, the row, its cost reserved ─▶ the controller asks the provider, looks, and ends (controller.py)
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from windrow_master.clusters.messages import HostKeptFor, HostLimit, HostLimits, HostsKept
from windrow_master.fleet.messages import HostLeaving, InstanceOf
from windrow_master.hybrid.backends.port import (
    Doubtful,
    MachineOffer,
    PurchaseId,
    Refused,
    machine_of,
)
from windrow_master.hybrid.backends.port import Wanted as WantedOffer
from windrow_master.hybrid.purchases import costs
from windrow_master.hybrid.purchases.backends import BackendService, find_backend, find_buyer, said
from windrow_master.hybrid.purchases.controller import PurchaseController
from windrow_master.hybrid.purchases.decide import asked_to_end, moved
from windrow_master.hybrid.purchases.model import (
    HOURS_MAX,
    NOTHING,
    BackendRow,
    Buyer,
    Cost,
    Owed,
    Purchase,
    Rules,
    SweepResult,
)
from windrow_master.hybrid.purchases.ports import Hosts
from windrow_master.hybrid.purchases.repository import BackendRepository, PurchaseRepository
from windrow_master.hybrid.purchases.states import USABLE, Event, State
from windrow_master.hybrid.purchases.transitions import Transitions, find_purchase
from windrow_master.identity.accounts import check_may_begin, find_account
from windrow_master.identity.messages import HostJoined
from windrow_master.identity.model import Principal, Role
from windrow_master.jobs.handover import MAY_STAY
from windrow_master.jobs.messages import PlaceOf
from windrow_master.jobs.model import AttemptPlace
from windrow_master.prices.offers import Kind
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Forbidden, InvalidInput, NotFound
from windrow_proto.ids import AccountId, HostId
from windrow_proto.ports import Clock
from windrow_proto.units import HOUR, Microcents, money_text

STARTS_KNOWN: Final = 200
"""The latest purchases whose start says how long the next one takes."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The book of one purchase, summed up."""

    spent: Microcents = NOTHING
    paid: Microcents = NOTHING
    billed_s: int = 0
    idle_s: int = 0


class PurchaseService:
    """The machines of this market that belong to others. market_id: the tag of all that it buys."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        backends: BackendService,
        hosts: Hosts,
        market_id: str,
        rules: Rules | None = None,
    ) -> None:
        self._store, self._clock, self.backends, self._hosts = store, clock, backends, hosts
        self.market_id: Final = market_id
        rules = rules or Rules()
        self._transitions = Transitions(backends, hosts, rules)
        self.controller: Final = PurchaseController(store, clock, backends, hosts, self._transitions, market_id, rules)

    def on_change(self, listener: Callable[[Purchase], None]) -> None:
        """Call `listener` on the loop whenever a purchase has changed its state, or its host has joined."""
        self._transitions.listeners.append(listener)

    # --- for people ------------------------------------------------------------------------------------------------

    async def buy(
        self,
        principal: Principal,
        backend: str,
        offer_id: str,
        *,
        account_id: str,
        hours: float,
        region: str = "",
    ) -> Purchase:
        """Have one machine bought for the work of an account, for so many hours at most. Raises Forbidden, NotFound,
        InvalidInput, QuotaExceeded where a cap would be passed; nothing is bought then."""
        if Role.OPERATOR not in principal.roles:
            raise Forbidden("Only an operator buys machines.")
        if not 0 < hours <= HOURS_MAX:
            raise InvalidInput(f"hours: They are above 0 and at most {HOURS_MAX}.", subject="hours")
        wanted = WantedOffer(offer_id=offer_id, regions=frozenset({region} if region else ()))
        offer = _only(await self.backends.offers(backend, wanted), offer_id, backend)
        if offer.is_run:
            raise InvalidInput(f"{backend} runs jobs, and sells no machine: windrow job submit --backend {backend}")

        def change(uow: UnitOfWork) -> Purchase:
            row, account = find_backend(uow, backend), find_account(uow, account_id)
            if account is None:
                raise NotFound("There is no such project. List them: windrow account ls", subject=account_id[:64])
            long_ns = int(hours * HOUR)
            return self._want(uow, row, account.id, offer, long_ns, principal.actor, expected_ns=long_ns)

        return await self._store.write(change, name="purchase.want")

    def buy_for(
        self,
        uow: UnitOfWork,
        *,
        for_id: str,
        account_id: AccountId,
        backend: BackendRow,
        offer: MachineOffer,
        duration_ns: int,
        expected_ns: int | None,
    ) -> Purchase:
        """Have a machine bought for a job, or a machine that waits, which has it first. expected_ns: as `costs.wanted`
        has it. Raises Forbidden where its project may not buy there, QuotaExceeded where a cap would be passed."""
        buyer = find_buyer(uow, backend.name, account_id)
        return self._want(uow, backend, account_id, offer, duration_ns, "master", for_id, buyer, expected_ns)

    def _want(
        self,
        uow: UnitOfWork,
        row: BackendRow,
        account_id: AccountId,
        offer: MachineOffer,
        duration_ns: int,
        actor: str,
        for_id: str = "",
        buyer: Buyer | None = None,
        expected_ns: int | None = None,
    ) -> Purchase:
        self._store.admit()
        check_may_begin(uow, account_id)
        purchase_id, now_ns = PurchaseId(uow.mint("purchase")), uow.now_wall_ns
        purchase = costs.wanted(
            purchase_id, row.name, account_id, actor, offer, duration_ns, now_ns, for_id, expected_ns
        )
        rows, day_ns = uow[PurchaseRepository], costs.day_of(now_ns)
        living = rows.living(row.name)
        costs.check_caps(row, purchase, living, rows.spent(row.name, day_ns))
        if buyer is not None:
            own = [one for one in living if one.account_id == account_id]
            costs.check_buyer(buyer, purchase, own, rows.spent(row.name, day_ns, account_id))
        fields = {"offer": offer.offer_id, "account": account_id, "reserved": money_text(purchase.reserved)}
        uow.audit(actor, "purchase.want", purchase.purchase_id, f"for {for_id}" if for_id else "asked for", fields)
        self._transitions.save(uow, None, purchase, actor)
        uow.after_commit(lambda: self.backends.queue.add(row.name))
        return purchase

    def drop(self, uow: UnitOfWork, purchase_id: str, reason: str) -> None:
        """End one that whatever it was bought for does not need any more."""
        self._end("master", purchase_id, reason, uow)

    def release(self, uow: UnitOfWork, purchase_id: str) -> None:
        """What it was bought for has run there: it takes all work of its project."""
        purchase = find_purchase(uow, purchase_id)
        if purchase.is_kept:
            uow[PurchaseRepository].save(replace(purchase, is_kept=False))

    async def list(
        self,
        account_id: AccountId | None = None,
        before: str | None = None,
        limit: int = 100,
        states: Collection[State] = (),
        backend: str | None = None,
    ) -> Sequence[Purchase]:
        """Those of an account (None: of all), the latest first, from the one after `before`."""
        return await self._store.read(
            lambda uow: uow[PurchaseRepository].page(account_id, before, limit, states, backend)
        )

    async def get(self, purchase_id: str) -> Purchase:
        """One. Raises NotFound."""
        return await self._store.read(lambda uow: find_purchase(uow, purchase_id))

    async def end(self, principal: Principal, purchase_id: str, reason: str) -> Purchase:
        """Have one ended: its work has a moment to leave. Raises NotFound, Forbidden."""
        if Role.OPERATOR not in principal.roles:
            raise Forbidden("Only an operator ends machines.")
        return await self._store.write(partial(self._end, principal.actor, purchase_id, reason), name="purchase.end")

    async def stop_all(self, principal: Principal, backend: str) -> Sequence[Purchase]:
        """Have all machines of a backend ended, and no more bought there until its caps are set again."""
        if Role.OPERATOR not in principal.roles:
            raise Forbidden("Only an operator ends machines.")

        def change(uow: UnitOfWork) -> Sequence[Purchase]:
            row = find_backend(uow, backend)
            uow[BackendRepository].save(replace(row, caps=replace(row.caps, machines=0)))
            uow.audit(principal.actor, "backend.stop_all", f"backend/{backend}", "asked for")
            living = uow[PurchaseRepository].living(backend)
            return [self._end(principal.actor, one.purchase_id, "all of its backend are ended", uow) for one in living]

        return await self._store.write(change, name="backend.stop_all")

    async def owed(self) -> Sequence[Owed]:
        """What each backend costs now."""

        def read(uow: UnitOfWork) -> Sequence[Owed]:
            rows, day_ns = uow[PurchaseRepository], costs.day_of(uow.now_wall_ns)
            return [
                costs.owed(one, rows.living(one.name), rows.spent(one.name, day_ns), uow.now_wall_ns)
                for one in uow[BackendRepository].all()
            ]

        return await self._store.read(read)

    async def costs(self, purchase_id: str) -> Sequence[Cost]:
        """Its entries of the book: none before it is gone. Raises NotFound."""
        purchase = await self.get(purchase_id)
        return await self._store.read(lambda uow: uow[PurchaseRepository].costs([purchase.purchase_id]))

    async def starts(self) -> Sequence[tuple[str, int]]:
        """The latest machines that have joined: `KIND/spot` or `KIND/on-demand` of each by the kind of its backend, and
        the nanoseconds from the asking to its host."""
        return await self._store.read(lambda uow: uow[PurchaseRepository].starts(STARTS_KNOWN))

    def cost_now(self, purchase: Purchase) -> Microcents:
        """What a living one has cost until now."""
        return costs.cost_until(purchase, self._clock.wall_ns())

    async def totals(self, purchase_ids: Sequence[PurchaseId]) -> Mapping[PurchaseId, Totals]:
        """The book of each of these, summed up; without those that have no entry yet."""
        found: dict[PurchaseId, Totals] = {}
        for one in await self._store.read(lambda uow: uow[PurchaseRepository].costs(purchase_ids)):
            so_far = found.get(one.purchase_id, Totals())
            spent, paid = Microcents(so_far.spent + one.cost), Microcents(so_far.paid + one.paid)
            billed_s, idle_s = so_far.billed_s + one.billed_s, so_far.idle_s + one.idle_s
            found[one.purchase_id] = Totals(spent, paid, billed_s, idle_s)
        return found

    async def sweep(self, principal: Principal, backend: str, market_id: str | None = None) -> SweepResult:
        """End what has this market's tag (or that of one that is no more) and no living purchase. Raises NotFound,
        Forbidden, and what a provider's refusal becomes."""
        if Role.OPERATOR not in principal.roles:
            raise Forbidden("Only an operator ends machines.")
        row, wanted = await self.backends.get(backend), market_id or self.market_id
        try:
            return await self.controller.sweep(row, wanted, principal.actor)
        except (Refused, Doubtful) as error:
            raise said(error, backend) from error

    # --- for the packages below --------------------------------------------------------------------------------------

    def joined(self, uow: UnitOfWork, fact: HostJoined) -> None:
        """A host has joined; where it was bought, it belongs to its purchase."""
        purchase_id, host_id = fact.member.purchase_id, HostId(fact.member.id)
        if not purchase_id:
            return
        purchase = uow[PurchaseRepository].get(purchase_id)
        is_awaited = purchase is not None and purchase.state in (State.ASKING, State.DOUBTFUL, State.BOOTING)
        if purchase is None or not is_awaited or purchase.host_id not in (None, host_id):
            if purchase is None or purchase.host_id != host_id:
                self._hosts.quarantine(uow, host_id, f"it was bought by {purchase_id}, which awaits no host")
            return
        after = replace(purchase, host_id=host_id, joined_at_ns=uow.now_wall_ns)
        uow[PurchaseRepository].save(after)
        uow.after_commit(lambda: self.backends.queue.add(purchase.backend))
        uow.after_commit(lambda: self._transitions.changed(after))

    def run_began(self, uow: UnitOfWork, purchase_id: str) -> None:
        """The job of a run is there: who ends it from now on lets the job leave first."""
        purchase = find_purchase(uow, purchase_id)
        if purchase.state is State.BOOTING:
            self._transitions.save(uow, purchase, moved(purchase, Event.JOIN, uow.now_wall_ns))

    def leaving(self, uow: UnitOfWork, fact: HostLeaving) -> None:
        """A host says that its provider takes it back; the fleet has drained it already. Where it may stay, its work
        goes on, and it is ended as soon as that is over."""
        if fact.why == MAY_STAY:
            return
        purchase = uow[PurchaseRepository].of_host(fact.host_id)
        if purchase is not None and purchase.state in USABLE:
            after = moved(purchase, Event.DRAIN, uow.now_wall_ns, f"its provider takes it back ({fact.why})")
            self._transitions.save(uow, purchase, after, f"host/{fact.host_id}")

    def instance_of(self, uow: UnitOfWork, question: InstanceOf) -> str:
        """The machine that a host has to be on; empty: not known, or its kind says none to agents."""
        purchase = uow[PurchaseRepository].of_host(question.host_id)
        row = None if purchase is None else uow[BackendRepository].get(purchase.backend)
        return purchase.machine_id if purchase is not None and row is not None and row.kind != "ssh" else ""

    def limits(self, uow: UnitOfWork, question: HostLimits) -> Mapping[HostId, HostLimit]:
        """Each bought host works for the account that it was bought for, and for no other."""
        found = uow[PurchaseRepository].of_hosts(question.hosts)
        return {host_id: HostLimit(only_for=account_id, kept_for=kept_for) for host_id, account_id, kept_for in found}

    def hosts_kept(self, uow: UnitOfWork, question: HostsKept) -> frozenset[HostId]:
        """The hosts that were bought for other entries of the queue, which have not run there yet."""
        found = uow[PurchaseRepository].of_hosts()
        return frozenset(host_id for host_id, _, kept_for in found if kept_for not in ("", question.entry_id))

    def host_kept_for(self, uow: UnitOfWork, question: HostKeptFor) -> HostId | None:
        """The host that was bought for an entry of the queue, once it has joined."""
        return uow[PurchaseRepository].kept_for(question.entry_id)

    def place_of(self, uow: UnitOfWork, question: PlaceOf) -> AttemptPlace | None:
        """The place that a host is, where it was bought."""
        if all(host_id != question.host_id for host_id, _, _ in uow[PurchaseRepository].of_hosts()):
            return None
        purchase = uow[PurchaseRepository].of_host(question.host_id)
        if purchase is None:
            return None
        margin = find_backend(uow, purchase.backend).margin_percent
        return place_at(purchase.backend, purchase.offer, margin, purchase_id=purchase.purchase_id)

    def _end(self, actor: str, purchase_id: str, reason: str, uow: UnitOfWork) -> Purchase:
        purchase = find_purchase(uow, purchase_id)
        decision = asked_to_end(purchase, uow.now_wall_ns, reason[:200] or "asked for")
        if decision.purchase != purchase:
            uow.audit(actor, "purchase.end", purchase.purchase_id, reason[:200])
            self._transitions.apply(uow, find_backend(uow, purchase.backend), purchase, decision)
            uow.after_commit(lambda: self.backends.queue.add(purchase.backend))
        return decision.purchase


def place_at(
    backend: str, offer: MachineOffer, margin_percent: int, *, purchase_id: str = "", run_id: str = ""
) -> AttemptPlace:
    """The place that an attempt has which runs on this offer, bought as a machine or as a run; its price with the
    operator's margin."""
    return AttemptPlace(
        backend=backend,
        is_service=bool(run_id),
        machine=machine_of(offer),
        region=offer.region,
        zone=offer.zone,
        is_spot=offer.kind is Kind.SPOT,
        price_per_hour=costs.with_margin(offer.price_per_hour, margin_percent),
        currency=offer.currency,
        purchase_id=purchase_id,
        run_id=run_id,
    )


def _only(offers: Sequence[MachineOffer], offer_id: str, backend: str) -> MachineOffer:
    """The offer of this id, with a price that is one."""
    offer = next((one for one in offers if one.offer_id == offer_id), None)
    if offer is None:
        said_so = f"{backend} has no offer {offer_id[:100]} now. List them: windrow backend offers {backend}"
        raise NotFound(said_so, subject=offer_id[:100])
    if offer.price_per_hour < 0:
        raise InvalidInput(f"The price of {offer_id[:100]} is below 0.", subject=offer_id[:100])
    return offer
