"""The market's service: prices, rentals from hold to void, receipts into charges, the ledger; it decides no amount.

start_rental ─▶ hold ─▶ (receipt ─▶ fill the hold ─▶ charge)* ─▶ end_rental ─▶ last receipt or lapsed lease ─▶ void
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from windrow_master.fleet import gpus
from windrow_master.fleet.tiers import tier_words
from windrow_master.identity.people_lookup import name_of
from windrow_master.loops import page_alone
from windrow_master.market import ledger, limits, metering, spending
from windrow_master.market.classes import PaidDay, paid_by_day
from windrow_master.market.limits import Asked
from windrow_master.market.model import (
    PROOF_ACCOUNT,
    Ask,
    LedgerAccount,
    Listing,
    Offer,
    PriceUnit,
    ReceiptRow,
    Rental,
    RentalId,
    RentalLine,
    RentalState,
    Transfer,
    account_of,
    hold_of,
)
from windrow_master.market.offers import PriceBook, offers, unit_of
from windrow_master.market.prices import suggest
from windrow_master.market.repository import AskRepository, LedgerRepository, ReceiptRepository, RentalRepository
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, InsufficientFunds, InvalidInput, NotFound, TooMany
from windrow_proto.ids import AccountId, ClusterId, HostId, WorkloadId
from windrow_proto.model import Receipt
from windrow_proto.units import MICROCENTS_PER_UNIT, MINUTE, SECOND, Microcents, money_text, time_text

HOLD_NS: Final = ledger.HOLD_NS
"""The running time that a rental is funded for when it starts."""
LEASE_NS: Final = 30 * MINUTE
"""How long a host may go on without hearing from the Master (design.md section 6)."""
CLOSE_GRACE_NS: Final = MINUTE
"""After the lease has lapsed: for a last receipt that is already on its way."""
ASKS_MAX: Final = 200
"""Prices of one owner: each look at what is offered reads all of them."""
PRICE_MAX: Final = Microcents(1_000 * MICROCENTS_PER_UNIT)
"""No ask above 1,000 an hour: a slip of the keyboard, not a price."""
PAID_MAX: Final = 10_000
"""Rentals looked at for the prices that were paid; of more the latest."""
_CLASSES: Final = frozenset((gpus.CPU_CLASS, gpus.UNLISTED_CLASS, *(one.model_class for one in gpus.MODELS)))

CREDIT_MAX: Final = Microcents(1_000_000 * MICROCENTS_PER_UNIT)
"""At once; whoever needs more grants it twice."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Statement:
    """A rental with all that its receipt document is made of."""

    rental: Rental
    lines: tuple[RentalLine, ...]
    transfers: tuple[Transfer, ...]
    balance: Microcents


@dataclass(frozen=True, slots=True)
class Renewal:
    """The renewed lease of a workload: both durations count from when the host hears of it."""

    workload_id: WorkloadId
    lease_ns: int
    paid_ns: int


class MarketService:
    """Offers, rentals and the ledger. Methods that take a `uow` run inside the caller's unit of work."""

    def __init__(self, store: Store, fee_permille: int = 0) -> None:
        """fee_permille: the platform's share of each charge, 0 to 1000, frozen into each rental when it starts."""
        self._store = store
        self._fee_permille = fee_permille

    # --- accounts ----------------------------------------------------------------------------------------------------

    def open_account(self, uow: UnitOfWork, account_id: AccountId) -> None:
        """Give a new account its first test credits, once however often it is called."""
        if uow[LedgerRepository].post(ledger.minting(account_id, uow.now_wall_ns)):
            uow.audit("master", "ledger.mint", account_of(account_id), "first test credits")

    def credit(self, uow: UnitOfWork, account_id: AccountId, amount: Microcents, key: str, actor: str) -> None:
        """Give an account test credits, once for each key. Raises InvalidInput for an amount that is none."""
        if not 0 < amount <= CREDIT_MAX:
            raise InvalidInput(f"A credit is above 0 and at most {money_text(CREDIT_MAX)}.", subject=account_id)
        if uow[LedgerRepository].post(ledger.minting(account_id, uow.now_wall_ns, f"granted {key}", amount)):
            uow.audit(
                actor, "ledger.mint", account_of(account_id), "granted test credits", {"amount": money_text(amount)}
            )
            said = f"{money_text(amount)} of test credits were granted"
            uow.event("account.credited", (account_id,), said, actor=actor)

    def settle(self, uow: UnitOfWork, account_id: AccountId, to: AccountId | None, reason: str, actor: str) -> None:
        """Move what an account can spend to another one; None: write it off. Raises Conflict where there is nothing."""
        amount = self.balance(uow, account_id)
        if amount <= 0:
            raise Conflict("This account has no money left.", subject=account_id)
        uow[LedgerRepository].post(ledger.settlement(account_id, to, amount, uow.mint("settlement"), uow.now_wall_ns))
        fields = {"amount": money_text(amount), "to": to or ""}
        uow.audit(actor, "ledger.settle", account_of(account_id), reason, fields)
        said = f"{money_text(amount)} were {'written off' if to is None else 'moved to another project'}: {reason}"
        uow.event("account.settled", (account_id, *([to] if to else [])), said, fields, actor)

    def keep_funded(self, uow: UnitOfWork, account_id: AccountId) -> None:
        """Give an account of the market's own new test credits when it has spent half of the last."""
        self.open_account(uow, account_id)
        if self.balance(uow, account_id) < ledger.FIRST_CREDITS // 2:
            uow[LedgerRepository].post(ledger.minting(account_id, uow.now_wall_ns, f"more {uow.now_wall_ns}"))
            uow.audit("master", "ledger.mint", account_of(account_id), "more test credits")

    def balance(self, uow: UnitOfWork, account_id: AccountId) -> Microcents:
        """Return the amount that an account can spend; the amount set aside is not in it."""
        return uow[LedgerRepository].balance(account_of(account_id))

    async def balance_now(self, account_id: AccountId) -> Microcents:
        """The same in a unit of work of its own."""
        return await self._store.read(lambda uow: self.balance(uow, account_id))

    def verify(self, uow: UnitOfWork) -> tuple[str, ...]:
        """Return the errors of the ledger, in words; empty when it balances and the kept balances equal its fold."""
        return wrong_with_ledger(uow)

    # --- prices ------------------------------------------------------------------------------------------------------

    def book(self, uow: UnitOfWork, owners: Collection[AccountId] | None = None) -> PriceBook:
        """All prices of this moment. owners: those that count for the hosts of these accounts alone."""
        asks = uow[AskRepository]
        return PriceBook(asks.list_all() if owners is None else asks.counting_for(sorted(owners)))

    def offers(self, uow: UnitOfWork, listings: Iterable[Listing]) -> tuple[Offer, ...]:
        """Return the offers of these slots together, by tier."""
        return offers(listings, self.book(uow))

    def demand(self, uow: UnitOfWork, since_ns: int) -> Mapping[tuple[str, bool], int]:
        """Return how many rentals began since then, by tier and whether of simulated hosts; the Master's own are no
        demand."""
        return uow[RentalRepository].begun_since(since_ns, PROOF_ACCOUNT)

    async def paid(self, tier: str, simulated: bool, since_ns: int) -> Sequence[PaidDay]:
        """Return the prices at which rentals of a tier of GPUs began since then, by day; the Master's own are none,
        and of processors nothing is known: they are rented by the host."""
        if unit_of(tier) is PriceUnit.PROCESSOR:
            return ()
        begun = await self._store.read(
            lambda uow: uow[RentalRepository].prices_since(tier, simulated, since_ns, PROOF_ACCOUNT, PAID_MAX)
        )
        return paid_by_day(begun)

    def suggested(self, tier: str) -> Microcents:
        """Return the suggested price of an hour of one GPU, or of one processor, of this tier."""
        return suggest(tier).price_per_hour

    def first_hold(self, price_per_hour: Microcents) -> Microcents:
        """Return the amount to set aside when a rental at this price starts."""
        return ledger.hold_amount(price_per_hour)

    async def set_ask(
        self,
        account_id: AccountId | None,
        tier: str,
        price: Microcents,
        actor: str,
        expected: Microcents | None = None,
    ) -> None:
        """Set what an owner (None: the operator, for all who ask nothing) wants; running rentals keep their price.
        expected: only where that is asked now. Raises InvalidInput, NotFound for a class that there is not, TooMany,
        Conflict where another price is asked than expected."""
        tier_class = tier.partition("/")[0].partition(":")[0]
        if tier_class not in _CLASSES:
            raise NotFound(f"There is no GPU class {tier_class}. List what is offered: windrow offer ls", subject=tier)
        if not 0 <= price <= PRICE_MAX:
            raise InvalidInput(f"A price is between 0 and {money_text(PRICE_MAX)} an hour.", subject=tier)

        def put(uow: UnitOfWork) -> None:
            _check_expected(uow, account_id, tier, expected)
            if account_id is not None and uow[AskRepository].count_others(account_id, tier) >= ASKS_MAX:
                raise TooMany(f"This account has set {ASKS_MAX:,} prices. Change one of those.", subject=tier)
            uow[AskRepository].put(Ask(account_id, tier, price, uow.now_wall_ns, actor))
            text = f"{tier_words(tier)} costs {money_text(price)} an hour from now on"
            uow.audit(actor, "ask.set", tier, text, {"account": account_id or "all", "price": money_text(price)})
            uow.event("offer.priced", (f"tier/{tier}", *((account_id,) if account_id else ())), text, actor=actor)

        await self._store.write(put, name="market.ask")

    def ask_own(self, uow: UnitOfWork, account_id: AccountId, tier: str, price: Microcents) -> None:
        """The same for an account of the Master's own, in the caller's transaction."""
        known = uow[AskRepository].find(account_id, tier)
        if known is None or known.price_per_hour != price:
            uow[AskRepository].put(Ask(account_id, tier, price, uow.now_wall_ns, "master"))

    def charged_on(self, uow: UnitOfWork, host_id: HostId) -> Microcents:
        """The sum that renters were charged for one host until now, without fees."""
        return uow[RentalRepository].charged_on(host_id)

    async def remove_ask(
        self, account_id: AccountId | None, tier: str, actor: str, expected: Microcents | None = None
    ) -> None:
        """Let an owner (None: the operator) ask nothing of a tier any more: the next price that counts takes its place.
        expected: only where that is asked now; else raises Conflict."""

        def remove(uow: UnitOfWork) -> None:
            _check_expected(uow, account_id, tier, expected)
            uow[AskRepository].remove(account_id, tier)
            text = f"{tier_words(tier)} has no price of its own from now on"
            uow.audit(actor, "ask.remove", tier, text, {"account": account_id or "all"})
            uow.event("offer.priced", (f"tier/{tier}", *((account_id,) if account_id else ())), text, actor=actor)

        await self._store.write(remove, name="market.ask")

    async def asked(self, account_id: AccountId | None) -> Mapping[str, Microcents]:
        """Return what an owner (None: the operator) asks, by tier."""
        return await self._store.read(lambda uow: uow[AskRepository].of(account_id))

    # --- rentals -----------------------------------------------------------------------------------------------------

    def check_limits(
        self, uow: UnitOfWork, renter: AccountId, spenders: Sequence[str], price_per_hour: Microcents
    ) -> None:
        """Raises SpendingLimitReached where a rental at this price would pass a limit of its renter, or of one of these
        tokens."""
        asked = Asked(price_per_hour, ledger.hold_amount(price_per_hour))
        spending.check(uow, renter, spenders, asked)

    def check_funds(
        self, uow: UnitOfWork, renter: AccountId, spenders: Sequence[str], price_per_hour: Microcents
    ) -> None:
        """The same, and InsufficientFunds where the first 15 minutes cannot be set aside."""
        self.check_limits(uow, renter, spenders, price_per_hour)
        self._check_balance(uow, renter, price_per_hour)

    def check_begins(
        self, uow: UnitOfWork, renter: AccountId, spenders: Sequence[str], price_per_hour: Microcents, count: int
    ) -> None:
        """Raises SpendingLimitReached or InsufficientFunds where so many rentals cannot begin, at this price in all."""
        asked = Asked(price_per_hour, ledger.hold_amount(price_per_hour), count)
        spending.check(uow, renter, spenders, asked)
        self._check_balance(uow, renter, price_per_hour)

    def _check_balance(self, uow: UnitOfWork, renter: AccountId, price_per_hour: Microcents) -> None:
        needed, balance = ledger.hold_amount(price_per_hour), self.balance(uow, renter)
        if balance < needed:
            raise InsufficientFunds(
                f"The first 15 minutes cost {money_text(needed)}, the account has {money_text(balance)}. "
                "Have an operator grant credits (`windrow credit add`), or ask for less.",
                subject=renter,
            )

    def start_rental(self, uow: UnitOfWork, rental: Rental, lines: Sequence[RentalLine]) -> Rental:
        """Open a rental and set aside its first 15 minutes, or raise InsufficientFunds or SpendingLimitReached and
        change nothing."""
        rental = replace(rental, fee_permille=self._fee_permille)
        self.check_funds(uow, rental.renter, rental.spenders, rental.price_per_hour)
        rental = self._fill(uow, rental, is_new=True)
        uow[RentalRepository].add(rental)
        for line in lines:
            uow[RentalRepository].add_line(line)
        fields = {"price_per_hour": money_text(rental.price_per_hour), "held": money_text(rental.held)}
        uow.audit(account_of(rental.renter), "rental.open", rental.rental_id, rental.cluster_id, fields)
        return rental

    def reprice(
        self, uow: UnitOfWork, rental_id: RentalId, price: Microcents, lines: Sequence[RentalLine] = ()
    ) -> None:
        """More or fewer hosts run of a rental from now on, at this price for all of them; lines: of those that are
        new. Raises InsufficientFunds or SpendingLimitReached where the next 15 minutes cannot be set aside for more."""
        rental = uow[RentalRepository].get(rental_id)
        assert rental is not None, "its machine runs"
        balance = self.balance(uow, rental.renter)
        needed = Microcents(ledger.hold_amount(price) - rental.held_left)
        if lines and balance < needed:
            have = money_text(balance)
            words = f"15 minutes of all of it need {money_text(needed)} more than is held, the account has {have}."
            raise InsufficientFunds(
                f"{words} Have an operator grant credits (`windrow credit add`), or ask for less.",
                subject=rental.renter,
            )
        if lines:
            asked = Asked(Microcents(price - rental.price_per_hour), needed, leases=0)
            spending.check(uow, rental.renter, rental.spenders, asked)
        for line in lines:
            uow[RentalRepository].add_line(line)
        changed = replace(rental, price_per_hour=price)
        uow[RentalRepository].save(changed)
        self._fill(uow, changed)
        fields = {"from": money_text(rental.price_per_hour), "to": money_text(price)}
        uow.audit(account_of(rental.renter), "rental.reprice", rental_id, rental.cluster_id, fields)

    def add_lines(self, uow: UnitOfWork, lines: Sequence[RentalLine]) -> None:
        """More hosts run of a rental, in the place of others: its own price stays, and is not exceeded."""
        for line in lines:
            uow[RentalRepository].add_line(line)

    def end_line(self, uow: UnitOfWork, workload_id: WorkloadId) -> None:
        """Another takes this workload's place: what its host runs from now on is nobody's to pay."""
        line = uow[RentalRepository].line(workload_id)
        if line is not None:
            uow[RentalRepository].save_line(metering.ended(line, uow.now_wall_ns))

    def on_host_link(self, uow: UnitOfWork, workload_ids: Iterable[WorkloadId], is_heard: bool) -> None:
        """The host of these workloads is heard of again, or not any more: its silence is charged for a minute only."""
        for workload_id in workload_ids:
            line = uow[RentalRepository].line(workload_id)
            if line is not None:
                after = metering.heard(line, uow.now_wall_ns) if is_heard else metering.silent(line, uow.now_wall_ns)
                if after != line:
                    uow[RentalRepository].save_line(after)

    def line_price(self, uow: UnitOfWork, workload_id: WorkloadId) -> Microcents:
        """Return the price of an hour of one workload; 0 where it is in no rental."""
        line = uow[RentalRepository].line(workload_id)
        return Microcents(0) if line is None else line.price_per_hour

    def on_receipt(self, uow: UnitOfWork, host_id: HostId, receipt: Receipt, sealed: bytes) -> RentalLine | None:
        """Take in a receipt whose signature holds; the line afterwards, None when the receipt counts for nothing."""
        line = uow[RentalRepository].line(receipt.workload_id)
        rental = uow[RentalRepository].get(line.rental_id) if line is not None else None
        if line is None or rental is None:
            self._refuse(uow, host_id, receipt, "there is no rental of this workload")
            return None
        flaw = metering.flaw_of(line, rental.cluster_id, host_id, receipt)
        known = uow[ReceiptRepository].get(receipt.workload_id, receipt.number)
        if flaw is None and known is not None and known.running_ns != receipt.running_ns:
            self._refuse(uow, host_id, receipt, "its number was signed before with another running time")
            return None
        if flaw is not None:
            self._refuse(uow, host_id, receipt, flaw)
            return None
        if known is not None:
            return line
        uow[ReceiptRepository].add(_row(receipt, rental.rental_id, host_id, uow.now_wall_ns, sealed))
        reading = metering.Reading(receipt, uow.now_wall_ns)
        if metering.is_impossible(line, reading):
            self._flag(uow, line, host_id, receipt)
        line = metering.read(line, reading)
        line = self._settle(uow, rental, line)
        if line.is_final:
            self.close_if_done(uow, rental.rental_id)
        return line

    def measure(self, uow: UnitOfWork, workload_id: WorkloadId, at_ns: int) -> None:
        """Charge what no host signs, a run at a service, up to this moment, and let it go on."""
        line = uow[RentalRepository].line(workload_id)
        rental = uow[RentalRepository].get(line.rental_id) if line is not None else None
        if line is None or rental is None or rental.state is not RentalState.OPEN or line.is_final:
            return
        line = self._settle(uow, rental, metering.measured(metering.renewed(line, at_ns + LEASE_NS), at_ns))
        after = uow[RentalRepository].get(rental.rental_id)
        if after is not None and ledger.is_low(after):
            self._warn(uow, after, metering.paid_ns(after, [line], uow.now_wall_ns) or 0)

    def measure_last(self, uow: UnitOfWork, workload_id: WorkloadId, at_ns: int, reason: str, code: int | None) -> None:
        """The same for the last time; its rental closes. Safe to repeat."""
        line = uow[RentalRepository].line(workload_id)
        rental = uow[RentalRepository].get(line.rental_id) if line is not None else None
        if line is None or rental is None or line.is_final:
            return
        last = replace(metering.measured(line, at_ns), final_number=0, end_reason=reason, exit_code=code)
        self._settle(uow, rental, last)
        self.end_rental(uow, rental.rental_id, reason)

    def renew(self, uow: UnitOfWork, workload_id: WorkloadId) -> Renewal | None:
        """Renew the lease of a workload that runs and fill its hold; None when its rental is not open any more."""
        line = uow[RentalRepository].line(workload_id)
        rental = uow[RentalRepository].get(line.rental_id) if line is not None else None
        if line is None or rental is None or rental.state is not RentalState.OPEN or line.is_final:
            return None
        now = uow.now_wall_ns
        uow[RentalRepository].save_line(metering.renewed(line, now + LEASE_NS))
        before = rental
        rental = self._fill(uow, rental)
        paid_ns = metering.paid_ns(rental, uow[RentalRepository].lines([rental.rental_id]), now)
        paid_ns = LEASE_NS if paid_ns is None else paid_ns
        if rental is before and ledger.is_low(rental):
            log.info("funds_low", rental_id=rental.rental_id, held_left=rental.held_left, paid_ns=paid_ns)
            self._warn(uow, rental, paid_ns)
        return Renewal(workload_id, LEASE_NS, paid_ns)

    def end_rental(self, uow: UnitOfWork, rental_id: RentalId, reason: str) -> None:
        """Let nothing more be set aside; it closes with the last signed second of each line. Safe to repeat."""
        rental = uow[RentalRepository].get(rental_id)
        if rental is None or rental.state is not RentalState.OPEN:
            return
        uow[RentalRepository].save(replace(rental, state=RentalState.ENDING, end_reason=reason))
        for line in uow[RentalRepository].lines([rental_id]):
            uow[RentalRepository].save_line(metering.cut(line, uow.now_wall_ns))
        self.close_if_done(uow, rental_id)

    def nothing_ran(self, uow: UnitOfWork, workload_id: WorkloadId) -> None:
        """A workload is gone without ever having run: no receipt will come, and none counts any more."""
        line = uow[RentalRepository].line(workload_id)
        if line is None or line.is_final or line.receipts:
            return
        uow[RentalRepository].save_line(replace(line, final_number=0, end_reason="never_ran"))
        self.close_if_done(uow, line.rental_id)

    def close_if_done(self, uow: UnitOfWork, rental_id: RentalId) -> None:
        """Close an ending rental once nothing more of any line can be charged."""
        rental = uow[RentalRepository].get(rental_id)
        if rental is None or rental.state is not RentalState.ENDING:
            return
        now = uow.now_wall_ns
        lines = uow[RentalRepository].lines([rental_id])
        if not all(metering.is_settled(line, now, CLOSE_GRACE_NS) for line in lines):
            return
        rest = ledger.voiding(rental, now)
        if rest is not None:
            uow[LedgerRepository].post(rest)
        closed = replace(
            rental,
            state=RentalState.CLOSED,
            ended_at_ns=_ended_at(lines, now),
            held=rental.charged,
            balance_after=self.balance(uow, rental.renter),
        )
        uow[RentalRepository].save(closed)
        charged = money_text(closed.charged)
        uow.audit("master", "rental.close", rental_id, rental.end_reason, {"charged": charged})
        subjects = (rental.cluster_id, rental_id, *(line.host_id for line in lines))
        uow.event("rental.closed", subjects, f"{rental.cluster_name or rental.cluster_id} cost {charged}")

    def judge(self, uow: UnitOfWork, rental: Rental) -> None:
        """Close it where it waits for a last receipt that will not come any more."""
        if rental.state is RentalState.ENDING:
            self.close_if_done(uow, rental.rental_id)

    def live_rentals(self, uow: UnitOfWork, cluster_id: ClusterId) -> Sequence[Rental]:
        """The rentals of a cluster that are not closed, the oldest first."""
        return uow[RentalRepository].live_of_cluster(cluster_id)

    def steady_rentals(
        self, uow: UnitOfWork, cluster_ids: Sequence[ClusterId]
    ) -> dict[ClusterId, tuple[Rental, metering.Spent]]:
        """Of these clusters those that have one rental which is not closed, and of which nothing waits: it, and what it
        has cost so far. With few statements for many."""
        live = uow[RentalRepository].live_of_clusters(cluster_ids)
        alone = {one: found[0] for one, found in live.items() if len(found) == 1 and found[0].state is RentalState.OPEN}
        lines = uow[RentalRepository].lines_of([rental.rental_id for rental in alone.values()])
        return {
            one: (rental, metering.spent_of(rental, lines.get(rental.rental_id, ()), uow.now_wall_ns))
            for one, rental in alone.items()
        }

    def live_clusters(self, uow: UnitOfWork) -> Sequence[ClusterId]:
        """The clusters that have a rental which is not closed."""
        return uow[RentalRepository].live_clusters()

    def spent(self, uow: UnitOfWork, rental_id: RentalId) -> metering.Spent:
        """What a rental has cost so far, by its receipts and by our own clock."""
        rental, lines = uow[RentalRepository].get(rental_id), uow[RentalRepository].lines([rental_id])
        return metering.spent_of(rental, lines, uow.now_wall_ns)

    # --- what people read --------------------------------------------------------------------------------------------

    async def statements(
        self,
        renter: AccountId | None,
        cluster_id: ClusterId | None,
        before: str | None,
        limit: int,
        *,
        with_tests: bool = True,
    ) -> Sequence[Statement]:
        """Rentals with their lines and transfers, the latest first; of everybody where `renter` is None.
        with_tests: those too by which the Master tests hosts, if none of one cluster are asked for."""
        without = None if with_tests or cluster_id is not None else PROOF_ACCOUNT

        def read(uow: UnitOfWork) -> Sequence[Statement]:
            def rows(last: Rental | None, size: int) -> Sequence[Rental]:
                newest = before if last is None else last.rental_id
                return uow[RentalRepository].page(renter, cluster_id, newest, size, without)

            return page_alone("statement", rows, lambda rental: self._statement(uow, rental), limit)

        return await self._store.read(read)

    async def statement(self, renter: AccountId | None, rental_id: RentalId) -> Statement:
        """One rental's; NotFound where there is none or it is somebody else's."""

        def read(uow: UnitOfWork) -> Statement:
            rental = uow[RentalRepository].get(rental_id)
            if rental is None or renter not in (None, rental.renter):
                raise NotFound(subject=rental_id)
            return self._statement(uow, rental)

        return await self._store.read(read)

    async def balances(self, account_id: AccountId | None) -> dict[LedgerAccount, Microcents]:
        """Every ledger account with its balance; only an account's own and its holds where it is named."""

        def read(uow: UnitOfWork) -> dict[LedgerAccount, Microcents]:
            found = uow[LedgerRepository].balances()
            if account_id is None:
                return found
            own = {account_of(account_id)} | {
                hold_of(r.rental_id) for r in uow[RentalRepository].live() if r.renter == account_id
            }
            return {account: amount for account, amount in found.items() if account in own}

        return await self._store.read(read)

    async def earned_after(self, number: int, since_ns: int) -> tuple[int, list[tuple[LedgerAccount, int, int]]]:
        """Return the payments to providers and the platform since then, in rows of the ledger after `number`: the last
        row's number, and for each account and UTC day (counted from the epoch) the sum."""
        return await self._store.read(lambda uow: uow[LedgerRepository].earned_after(number, since_ns))

    async def transfers(
        self, account_id: AccountId | None, before: int | None, limit: int
    ) -> Sequence[tuple[int, Transfer]]:
        """Transfers with their numbers, the latest first; only those that touch an account where it is named."""

        def read(uow: UnitOfWork) -> Sequence[tuple[int, Transfer]]:
            touched: Iterable[LedgerAccount] | None = None if account_id is None else [account_of(account_id)]
            return uow[LedgerRepository].page(touched, before, limit)

        return await self._store.read(read)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _settle(self, uow: UnitOfWork, rental: Rental, line: RentalLine) -> RentalLine:
        found, now = spending.limits_of(uow, rental), uow.now_wall_ns
        funds = spending.funds(uow, found, self.balance(uow, rental.renter))
        done = ledger.settling(rental, line, funds, now, limits.chargeable(found, now))
        spending.charged(uow, found, Microcents(done.rental.charged - rental.charged))
        spending.budget_charged(uow, rental, done.rental)
        for transfer in done.transfers:
            uow[LedgerRepository].post(transfer)
        uow[RentalRepository].save_line(done.line)
        if done.rental != rental:
            uow[RentalRepository].save(done.rental)
        return done.line

    def _fill(self, uow: UnitOfWork, rental: Rental, *, is_new: bool = False) -> Rental:
        """Fill the hold where it is low, as far as the balance and the limits reach. is_new: it has no row yet."""
        if rental.state is RentalState.CLOSED or not ledger.is_low(rental):
            return rental
        funds = spending.funds(uow, spending.limits_of(uow, rental), self.balance(uow, rental.renter))
        hold = ledger.filling(rental, funds, uow.now_wall_ns)
        if hold is None:
            return rental
        uow[LedgerRepository].post(hold, is_new=is_new)
        filled = replace(rental, held=Microcents(rental.held + hold.amount))
        if not is_new:
            uow[RentalRepository].save(filled)
        return filled

    def _warn(self, uow: UnitOfWork, rental: Rental, paid_ns: int) -> None:
        """Say once per rental that its funds run out, while there is time to do something about it."""
        if uow.events.newest(rental.rental_id, limit=1, kind="rental.funds_low"):
            return
        name, most = rental.cluster_name or rental.cluster_id, spending.cap(uow, rental)
        text = f"The funds of {name} last for {paid_ns // SECOND} s more; it ends then unless credits are added"
        if most is not None and most.amount <= rental.held and self.balance(uow, rental.renter) > 0:
            text = f"{name} ends in {paid_ns // SECOND} s at most: {most.words}, leaves no more"
        uow.event("rental.funds_low", (rental.rental_id, rental.cluster_id, rental.renter), text, actor="master")

    def _flag(self, uow: UnitOfWork, line: RentalLine, host_id: HostId, receipt: Receipt) -> None:
        """Say once of each workload that its host signs what cannot be."""
        if uow.events.newest(line.workload_id, limit=1, kind="receipt.impossible"):
            return
        passed_ns = uow.now_wall_ns - line.lease_from_ns
        text = (
            f"Receipt {receipt.number} names {receipt.running_ns // SECOND} s of running time; {passed_ns // SECOND} s "
            "have passed since its slots were leased, and no more than that counts"
        )
        uow.audit("master", "receipt.impossible", receipt.workload_id, text, {"host": host_id})
        uow.event("receipt.impossible", (host_id, receipt.workload_id, line.rental_id), text, actor="master")

    def _refuse(self, uow: UnitOfWork, host_id: HostId, receipt: Receipt, why: str) -> None:
        uow.audit(f"host/{host_id}", "receipt.refused", receipt.workload_id, why, {"number": str(receipt.number)})
        text = f"Receipt {receipt.number} counts for nothing: {why}"
        uow.event("receipt.refused", (host_id, receipt.workload_id), text, actor=f"host/{host_id}")

    def _statement(self, uow: UnitOfWork, rental: Rental) -> Statement:
        lines = tuple(uow[RentalRepository].lines([rental.rental_id]))
        transfers = tuple(uow[LedgerRepository].of_rental(rental.rental_id))
        return Statement(rental, lines, transfers, self.balance(uow, rental.renter))


def wrong_with_ledger(uow: UnitOfWork) -> tuple[str, ...]:
    """Return the errors of the ledger, in words; empty when it balances and the kept balances equal its fold."""
    kept = {account: amount for account, amount in uow[LedgerRepository].balances().items() if amount}
    folded = {account: amount for account, amount in uow[LedgerRepository].folded().items() if amount}
    wrong = [
        f"{account}: kept {kept.get(account, 0)}, folded {folded.get(account, 0)} microcents"
        for account in sorted(kept.keys() | folded.keys())
        if kept.get(account, 0) != folded.get(account, 0)
    ]
    if sum(folded.values()) != 0:
        wrong.append(f"debits and credits differ by {sum(folded.values())} microcents")
    return tuple(wrong)


def _row(receipt: Receipt, rental_id: RentalId, host_id: HostId, now_ns: int, sealed: bytes) -> ReceiptRow:
    return ReceiptRow(
        receipt.workload_id,
        receipt.number,
        rental_id,
        host_id,
        receipt.running_ns,
        receipt.final,
        receipt.end_reason,
        receipt.exit_code,
        receipt.started_wall_ns,
        receipt.at_wall_ns,
        now_ns,
        sealed,
    )


def _ended_at(lines: Iterable[RentalLine], now_ns: int) -> int:
    """The last second of all lines that may be charged; now where nothing ever ran."""
    starts = [(line, start_ns) for line in lines if (start_ns := metering.shown_start_ns(line)) is not None]
    ends = [start_ns + metering.billable_ns(line) for line, start_ns in starts]
    return max(ends, default=now_ns)


__all__ = ["HOLD_NS", "LEASE_NS", "MarketService", "PriceBook", "Renewal", "Statement", "wrong_with_ledger"]


def _check_expected(uow: UnitOfWork, account_id: AccountId | None, tier: str, expected: Microcents | None) -> None:
    """Raises Conflict where another price is asked than expected; it says who set that, and when."""
    if expected is None:
        return
    ask = uow[AskRepository].find(account_id, tier)
    if ask is None:
        raise Conflict(f"{tier_words(tier)} has no price of its own any more: somebody has removed it.", subject=tier)
    if ask.price_per_hour != expected:
        who = name_of(uow, ask.set_by.partition("/")[2]) or ask.set_by
        raise Conflict(
            f"{tier_words(tier)} costs {money_text(ask.price_per_hour)} an hour since {time_text(ask.set_at_ns)}: "
            f"{who} has set that.",
            subject=tier,
        )
