"""The ledger's promises, held by the market's service on a real store: what any other store must keep too."""

import random
from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from tests.master_support import ManualClock, opened_store
from tests.unit.market.rentals import CLUSTER, HOST, PROVIDER, RENTAL, RENTER, WORKLOAD, receipt
from tests.unit.market.rentals import line as line_of
from tests.unit.market.rentals import rental as rental_of
from windrow_master.market.ledger import FIRST_CREDITS, hold_amount
from windrow_master.market.limit_repository import LimitRepository
from windrow_master.market.limits import Limits, SpendingLimit, Use, month_of
from windrow_master.market.model import (
    FEES,
    MINT,
    LedgerAccount,
    RentalState,
    Transfer,
    TransferKind,
    account_of,
    hold_of,
)
from windrow_master.market.repository import LedgerRepository, ReceiptRepository, RentalRepository
from windrow_master.market.service import CLOSE_GRACE_NS, LEASE_NS, MarketService
from windrow_master.records.repository import RecordRepository
from windrow_master.records.rules import Record
from windrow_proto.errors import InsufficientFunds
from windrow_proto.ids import HostId, TransferId, WorkloadId
from windrow_proto.units import HOUR, MICROCENTS_PER_UNIT, MINUTE, SECOND, Microcents, charge

PRICE = Microcents(2 * MICROCENTS_PER_UNIT)


class Books:
    """A market with one renter, one provider and, once begun, one rental between them."""

    def __init__(self, store, clock, fee_permille=0):
        self.store, self.clock = store, clock
        self.market = MarketService(store, fee_permille)
        for account in (RENTER, PROVIDER):
            self.write(lambda uow, account=account: self.market.open_account(uow, account))

    def write(self, change):
        return self.store.write_now(change, name="test")

    def read(self, look):
        return self.store.read_now(look)

    def begin(self, price=PRICE, spenders=()):
        def change(uow):
            now = uow.now_wall_ns
            rented = replace(rental_of(price), opened_at_ns=now, spenders=spenders)
            line = replace(line_of(price), lease_from_ns=now, lease_until_ns=now + LEASE_NS, seen_at_ns=now)
            return self.market.start_rental(uow, rented, (line,))

        return self.write(change)

    def bring(self, signed, host_id=HOST):
        return self.write(lambda uow: self.market.on_receipt(uow, host_id, signed, b"sealed"))

    def renew(self):
        return self.write(lambda uow: self.market.renew(uow, WORKLOAD))

    def end(self):
        self.write(lambda uow: self.market.end_rental(uow, RENTAL, "deleted"))

    def balance(self, account):
        return self.read(lambda uow: uow[LedgerRepository].balance(account))

    def rental(self):
        return self.read(lambda uow: uow[RentalRepository].get(RENTAL))

    def kinds(self):
        return [transfer.kind for transfer in self.read(lambda uow: uow[LedgerRepository].of_rental(RENTAL))]

    def check(self):
        assert self.read(self.market.verify) == ()
        kept = self.read(lambda uow: uow[LedgerRepository].balances())
        assert all(amount >= 0 for account, amount in kept.items() if account != MINT)


SERVED = pytest.mark.proves("the ledger on a real PostgreSQL")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=SERVED)])
def books(request, tmp_path):
    clock = ManualClock()
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    with opened_store(tmp_path, clock, database=url) as store:
        made = Books(store, clock)
        yield made
        made.check()


@pytest.mark.proves("debits equal credits, charges equal signed running time")
@pytest.mark.parametrize("seed", range(8))
def test_any_order_repetition_or_loss_of_receipts_charges_the_longest_signed_time(books, seed):
    rng = random.Random(seed)
    rented = books.begin()
    times = sorted(rng.randrange(0, 20 * MINUTE) for _ in range(12))
    sent = [receipt(number + 1, running) for number, running in enumerate(times)]
    books.clock.advance(20 * MINUTE)
    brought = [rng.choice(sent) for _ in range(rng.randrange(1, 24))]
    for each in brought:
        books.bring(each)
        books.check()
    expected = charge(PRICE, max(each.running_ns for each in brought))
    assert books.rental().charged == expected
    assert books.balance(account_of(PROVIDER)) == FIRST_CREDITS + expected
    assert books.balance(account_of(RENTER)) + books.balance(hold_of(RENTAL)) == FIRST_CREDITS - expected
    assert rented.held == hold_amount(PRICE)


@pytest.mark.parametrize("spender", [RENTER, "token_ci"])
def test_what_counts_for_a_spending_limit_is_added_up_from_the_ledger_and_then_counted(books, spender):
    hold = books.begin(spenders=("token_ci", "token_maker")).held
    used = books.read(lambda uow: uow[LimitRepository].use(spender))
    assert used == Use(hold, PRICE, 1)
    assert books.read(lambda uow: uow[LimitRepository].use("token_c")) == Use()
    books.clock.advance(MINUTE)
    books.bring(receipt(1, MINUTE))
    cost, now = charge(PRICE, MINUTE), books.clock.wall_ns()
    spent = books.read(lambda uow: uow[LimitRepository].spent(spender, now))
    assert spent == (cost, cost) and books.read(lambda uow: uow[LimitRepository].spent(spender, now + 1)) == (cost, 0)
    limit = SpendingLimit(spender, RENTER, "x", Limits(max_total_cost=Microcents(2 * cost)), cost, "", cost, now, "")
    books.write(lambda uow: uow[LimitRepository].save(limit))
    for number in range(2, 6):
        books.clock.advance(MINUTE)
        books.bring(receipt(number, number * MINUTE))
    kept = books.read(lambda uow: uow[LimitRepository].get(spender))
    assert (kept.spent, kept.month, kept.month_spent) == (2 * cost, month_of(now), cost)
    assert books.rental().charged == 2 * cost and books.rental().spenders == ("token_ci", "token_maker")
    assert books.read(lambda uow: uow[LimitRepository].of_projects([RENTER])) == [kept]
    books.end()
    assert books.read(lambda uow: uow[LimitRepository].use(spender)).leases == 0


def test_a_transfer_posts_once_however_often_it_is_posted(books):
    again = [books.write(lambda uow: books.market.open_account(uow, RENTER)) for _ in range(3)]
    assert again == [None] * 3
    assert books.balance(account_of(RENTER)) == FIRST_CREDITS


def test_no_account_falls_below_zero_and_nothing_of_a_refused_transfer_stays(books):
    greedy = Transfer(
        TransferId("transfer_x"), account_of(RENTER), account_of(PROVIDER), Microcents(FIRST_CREDITS + 1),
        TransferKind.CHARGE, None, 0, "",
    )  # fmt: skip
    with pytest.raises(InsufficientFunds):
        books.write(lambda uow: uow[LedgerRepository].post(greedy))
    assert books.read(lambda uow: uow[LedgerRepository].get(TransferId("transfer_x"))) is None


@pytest.mark.parametrize("amount", [0, -5])
def test_a_transfer_moves_more_than_nothing(books, amount):
    wrong = Transfer(
        TransferId("transfer_x"), MINT, account_of(RENTER), Microcents(amount), TransferKind.MINT, None, 0, ""
    )
    with pytest.raises(IntegrityError):
        books.write(lambda uow: uow[LedgerRepository].post(wrong))


def test_the_database_itself_refuses_a_balance_below_zero(books):
    with pytest.raises(IntegrityError):
        books.write(
            lambda uow: uow.connection.execute(text("UPDATE balances SET balance = -1 WHERE account LIKE 'acct:%'"))
        )


def test_a_balance_that_was_tampered_with_is_found_by_the_fold(books):
    account = account_of(RENTER)
    move = text("UPDATE balances SET balance = balance + :by WHERE account = :account")
    books.write(lambda uow: uow.connection.execute(move, {"by": 7, "account": account}))
    (found,) = books.read(books.market.verify)
    assert account in found
    books.write(lambda uow: uow.connection.execute(move, {"by": -7, "account": account}))


def test_without_the_first_fifteen_minutes_nothing_is_rented(books):
    with pytest.raises(InsufficientFunds):
        books.begin(Microcents(4 * FIRST_CREDITS + 4))
    assert books.rental() is None
    assert books.balance(account_of(RENTER)) == FIRST_CREDITS


def test_a_rental_ends_with_its_last_receipt_and_gives_back_the_rest_once(books):
    books.begin()
    books.clock.advance(MINUTE)
    books.end()
    assert books.rental().state is RentalState.ENDING
    books.bring(receipt(1, MINUTE, final=True, reason="deleted"))
    books.end()
    assert books.rental().state is RentalState.CLOSED
    assert books.kinds() == [TransferKind.HOLD, TransferKind.CHARGE, TransferKind.VOID]
    assert books.balance(hold_of(RENTAL)) == 0
    assert books.rental().balance_after == FIRST_CREDITS - charge(PRICE, MINUTE)


def test_without_a_last_receipt_it_ends_with_the_lease_and_charges_only_what_was_signed(books):
    books.begin()
    books.clock.advance(MINUTE)
    books.bring(receipt(1, MINUTE))
    books.end()
    books.clock.advance(LEASE_NS - MINUTE)
    for rental in books.read(lambda uow: uow[RentalRepository].live()):
        books.write(lambda uow, rental=rental: books.market.judge(uow, rental))
    assert books.rental().state is RentalState.ENDING
    books.clock.advance(CLOSE_GRACE_NS)
    for rental in books.read(lambda uow: uow[RentalRepository].live()):
        books.write(lambda uow, rental=rental: books.market.judge(uow, rental))
    assert (books.rental().state, books.rental().charged) == (RentalState.CLOSED, charge(PRICE, MINUTE))
    assert books.bring(receipt(2, 2 * MINUTE)) is not None
    assert books.rental().charged == charge(PRICE, MINUTE), "what is closed is never charged again"


def test_the_host_is_charged_for_no_longer_than_its_lease(books):
    books.begin()
    books.clock.advance(3 * HOUR)
    books.bring(receipt(1, 3 * HOUR))
    assert books.rental().charged == charge(PRICE, LEASE_NS)


def test_when_the_funds_run_out_the_paid_time_stops_growing_and_nothing_is_owed(books):
    price = Microcents(200 * MICROCENTS_PER_UNIT)
    books.begin(price)
    paid = []
    for number in range(1, 61):
        books.clock.advance(MINUTE)
        books.bring(receipt(number, number * MINUTE))
        renewal = books.renew()
        assert renewal is not None
        paid.append(renewal.paid_ns)
        books.check()
    assert paid[0] >= 10 * MINUTE
    assert paid[24] < 6 * MINUTE and paid[29] == 0 and paid[-1] == 0
    assert books.rental().charged == FIRST_CREDITS
    assert books.balance(account_of(RENTER)) == 0


def test_what_ran_since_the_last_receipt_is_not_promised_again(books):
    books.begin()
    books.clock.advance(MINUTE)
    books.bring(receipt(1, MINUTE))
    first = books.renew()
    books.clock.advance(30 * SECOND)
    assert books.renew().paid_ns == first.paid_ns - 30 * SECOND


def test_receipts_of_others_and_second_versions_count_for_nothing_and_are_recorded(books):
    books.begin()
    books.clock.advance(HOUR)
    assert books.bring(receipt(1, MINUTE)) is not None
    wrong = [
        (receipt(1, 2 * MINUTE), HOST),
        (receipt(2, 2 * MINUTE), HostId("host_other")),
        (replace(receipt(2, 2 * MINUTE), slots=()), HOST),
        (replace(receipt(2, 2 * MINUTE), workload_id=WorkloadId("workload_other")), HOST),
    ]
    for each, host_id in wrong:
        assert books.bring(each, host_id) is None
    assert books.rental().charged == charge(PRICE, MINUTE)
    refused = books.read(lambda uow: [row for row in uow.audit_log.list() if row.action == "receipt.refused"])
    assert len(refused) == len(wrong)


def test_the_platforms_share_is_frozen_into_the_rental(tmp_path):
    with opened_store(tmp_path, clock := ManualClock()) as store:
        books = Books(store, clock, fee_permille=50)
        books.begin()
        books.market = MarketService(store, fee_permille=900)
        books.clock.advance(MINUTE)
        books.bring(receipt(1, MINUTE))
        total = charge(PRICE, MINUTE)
        assert books.balance(FEES) == total * 50 // 1000
        assert books.balance(account_of(PROVIDER)) == FIRST_CREDITS + total - total * 50 // 1000
        books.check()


def test_an_owner_who_rents_the_own_host_pays_itself(books):
    def change(uow):
        now = uow.now_wall_ns
        line = replace(line_of(), provider=RENTER, lease_from_ns=now, lease_until_ns=now + LEASE_NS, seen_at_ns=now)
        books.market.start_rental(uow, rental_of(), (line,))

    books.write(change)
    books.clock.advance(MINUTE)
    books.bring(receipt(1, MINUTE, final=True))
    books.end()
    assert books.balance(account_of(RENTER)) == FIRST_CREDITS
    assert books.rental().charged == charge(PRICE, MINUTE)


def test_everything_survives_a_restart(tmp_path):
    clock = ManualClock()
    with opened_store(tmp_path, clock) as store:
        books = Books(store, clock)
        books.begin()
        clock.advance(MINUTE)
        books.bring(receipt(1, MINUTE))
        before = books.read(lambda uow: uow[LedgerRepository].balances())
    with opened_store(tmp_path, clock) as store:
        books = Books(store, clock)
        assert books.read(lambda uow: uow[LedgerRepository].balances()) == before
        assert books.bring(receipt(1, MINUTE)) is not None
        assert books.rental().charged == charge(PRICE, MINUTE)
        assert [row.running_ns for row in books.read(lambda uow: uow[ReceiptRepository].of_workload(WORKLOAD))] == [
            MINUTE
        ]
        assert books.read(lambda uow: uow[RentalRepository].of_cluster(CLUSTER))[-1].rental_id == RENTAL
        books.check()


def test_the_names_of_accounts_say_what_they_are():
    assert (account_of(RENTER), hold_of(RENTAL)) == (LedgerAccount(f"acct:{RENTER}"), LedgerAccount(f"hold:{RENTAL}"))


def test_a_hold_that_is_filled_again_while_empty_ones_are_removed_keeps_what_it_has(books):
    renter, hold = account_of(RENTER), LedgerAccount("hold:rental_x")

    def move(number, debit, credit):
        at_ns, one = books.clock.wall_ns(), Microcents(1)
        transfer = Transfer(TransferId(f"transfer_{number}"), debit, credit, one, TransferKind.HOLD, None, at_ns, "x")
        books.write(lambda uow: uow[LedgerRepository].post(transfer))

    move(1, renter, hold)
    move(2, hold, renter)
    found = books.read(lambda uow: uow[RecordRepository].past(Record.EMPTY_HOLDS, 0, 10, 0))
    move(3, renter, hold)
    books.write(lambda uow: uow[RecordRepository].let_go(Record.EMPTY_HOLDS, found))

    assert [row["was_account"] for row in found] == [hold]
    assert books.balance(hold) == 1
