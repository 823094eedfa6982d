"""The transfers that a rental calls for."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.market.rentals import PRICE, RENTAL, RENTER, START, line, receipt, rental
from windrow_master.market.ledger import (
    FIRST_CREDITS,
    HOLD_NS,
    charging,
    filling,
    fold,
    hold_amount,
    holding,
    minting,
    settling,
    voiding,
)
from windrow_master.market.metering import Reading, billable_ns, read
from windrow_master.market.model import (
    FEES,
    MINT,
    Rental,
    RentalState,
    Transfer,
    TransferKind,
    account_of,
    hold_of,
)
from windrow_proto.model import Receipt
from windrow_proto.units import HOUR, MICROCENTS_PER_UNIT, MINUTE, SECOND, Microcents, charge

PLENTY = Microcents(1000 * MICROCENTS_PER_UNIT)


def held(amount: int) -> Rental:
    return replace(rental(), held=Microcents(amount))


def test_an_account_is_given_its_first_credits_by_one_and_the_same_transfer() -> None:
    first, again = minting(RENTER, 1), minting(RENTER, 2)
    assert first.transfer_id == again.transfer_id
    assert (first.debit, first.credit, first.amount) == (MINT, account_of(RENTER), FIRST_CREDITS)


def test_a_hold_covers_fifteen_minutes_rounded_up() -> None:
    hold = holding(rental(), PLENTY, START)
    assert hold is not None and hold.amount == PRICE // 4
    assert hold_amount(Microcents(1)) == 1


def test_a_hold_takes_no_more_than_there_is() -> None:
    hold = holding(rental(), Microcents(5), START)
    assert hold is not None and hold.amount == 5
    assert holding(rental(), Microcents(0), START) is None


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=6), st.integers(1, PRICE // 2))
def test_no_more_is_ever_charged_than_the_budget(seconds: list[int], budget: int) -> None:
    rented, one = replace(held(PRICE), budget=Microcents(budget)), line()
    for number, passed in enumerate(seconds, 1):
        signed = receipt(number, passed * SECOND)
        one = read(replace(one, lease_until_ns=START + 2 * HOUR), Reading(signed, START + 2 * HOUR))
        done = settling(rented, one, PLENTY, START)
        rented, one = done.rental, done.line
    owed = charge(PRICE, billable_ns(one))
    assert rented.charged == one.charged == min(owed, budget)


def test_a_hold_is_filled_below_ten_minutes_and_not_before() -> None:
    assert filling(held(hold_amount(PRICE, 10 * MINUTE)), PLENTY, START) is None
    fill = filling(held(hold_amount(PRICE, 10 * MINUTE) - 1), PLENTY, START)
    assert fill is not None and fill.amount == hold_amount(PRICE) - hold_amount(PRICE, 10 * MINUTE) + 1


def test_a_rental_that_ends_sets_aside_only_what_it_owes() -> None:
    ending = replace(held(0), state=RentalState.ENDING)
    fill = filling(ending, PLENTY, START, Microcents(9))
    assert fill is not None and fill.amount == 9


def test_a_charge_posts_the_difference_of_cumulative_charges() -> None:
    at = read(line(), Reading(receipt(1, 10 * SECOND), START + 10 * SECOND))
    first = charging(held(PLENTY), at, START)
    second = charging(
        first.rental, read(first.line, Reading(receipt(2, 20 * SECOND), START + 20 * SECOND)), START + 20 * SECOND
    )
    amounts = [transfer.amount for transfer in (*first.transfers, *second.transfers)]
    assert amounts == [charge(PRICE, 10 * SECOND), charge(PRICE, 20 * SECOND) - charge(PRICE, 10 * SECOND)]
    assert first.transfers[0].transfer_id != second.transfers[0].transfer_id


def test_the_fee_is_the_whole_part_of_its_share_and_the_provider_has_the_rest() -> None:
    at = read(line(), Reading(receipt(1, HOUR), START + HOUR))
    done = charging(replace(held(PLENTY), fee_permille=33), at, START)
    by_kind = {transfer.kind: transfer for transfer in done.transfers}
    assert by_kind[TransferKind.FEE].amount == PRICE * 33 // 1000
    assert by_kind[TransferKind.FEE].credit == FEES
    assert by_kind[TransferKind.CHARGE].amount == PRICE - PRICE * 33 // 1000


def test_what_was_not_used_is_given_back_once() -> None:
    done = voiding(held(50), START)
    assert done is not None and (done.amount, done.debit, done.credit) == (50, hold_of(RENTAL), account_of(RENTER))
    assert voiding(held(0), START) is None


def test_a_closed_rental_is_never_charged_again() -> None:
    at = read(line(), Reading(receipt(1, HOUR), START + HOUR))
    assert settling(replace(held(PLENTY), state=RentalState.CLOSED), at, PLENTY, START).transfers == ()


runs = st.lists(st.integers(0, 3 * HOUR), min_size=1, max_size=12).map(sorted)


def receipts_of(times: list[int]) -> list[Receipt]:
    return [receipt(number + 1, running_ns) for number, running_ns in enumerate(times)]


@given(
    times=runs,
    order=st.lists(st.integers(0, 11), max_size=40),
    price=st.integers(0, 10 * MICROCENTS_PER_UNIT),
    funds=st.integers(0, 40 * MICROCENTS_PER_UNIT),
    fee_permille=st.integers(0, 1000),
    lease_ns=st.integers(0, 4 * HOUR),
)
def test_any_order_repetition_or_loss_of_receipts_charges_the_longest_signed_time_within_lease_and_funds(
    times: list[int], order: list[int], price: int, funds: int, fee_permille: int, lease_ns: int
) -> None:
    sent = receipts_of(times)
    at, line_at = rental(Microcents(price), fee_permille), line(Microcents(price), lease_ns)
    ledger: list[Transfer] = []
    opening = Transfer(
        minting(RENTER, START).transfer_id,
        MINT,
        account_of(RENTER),
        Microcents(funds),
        TransferKind.MINT,
        None,
        START,
        "",
    )
    ledger += [opening] if funds else []
    delivered: set[int] = set()
    longest = 0
    for index in order:
        each = sent[index % len(sent)]
        if each.number in delivered:
            continue  # the repository keeps one row per number
        delivered.add(each.number)
        longest = max(longest, each.running_ns)
        line_at = read(line_at, Reading(each, START + 5 * HOUR))
        done = settling(at, line_at, fold(ledger).get(account_of(RENTER), Microcents(0)), START)
        at, line_at = done.rental, done.line
        ledger += done.transfers
        balances = fold(ledger)
        assert all(amount >= 0 for account, amount in balances.items() if account != MINT)
    rest = voiding(at, START)
    ledger += [rest] if rest else []
    balances = fold(ledger)
    expected = min(charge(Microcents(price), min(longest, lease_ns)), funds)
    assert at.charged == line_at.charged == expected
    assert balances.get(account_of(RENTER), 0) == funds - expected
    assert sum(balances.values()) == 0
    assert balances.get(FEES, 0) == expected * fee_permille // 1000
    assert len({transfer.transfer_id for transfer in ledger}) == len(ledger)
    assert all(transfer.amount > 0 for transfer in ledger)
    assert billable_ns(line_at) == min(longest, lease_ns)


def test_a_hold_of_fifteen_minutes_is_what_a_rental_begins_with() -> None:
    assert HOLD_NS == 15 * MINUTE
