"""Computes the transfers that a rental calls for: postings as values, with ids that follow from their reason. Pure.

    mint:test ──mint──▶ acct:renter ──hold──▶ hold:rental ──charge──▶ acct:provider
                             ▲                    ├──────────fee────▶ platform:fees
      ◀──write_off────       └───────void─────────┘            acct:one ──move──▶ acct:another

Nothing here reads a balance by itself or writes one; market/repository.py appends what these functions return.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from windrow_master.market.metering import billable_ns
from windrow_master.market.model import (
    FEES,
    MINT,
    NOTHING,
    LedgerAccount,
    Rental,
    RentalLine,
    RentalState,
    Transfer,
    TransferKind,
    account_of,
    hold_of,
)
from windrow_proto.ids import AccountId, TransferId
from windrow_proto.units import HOUR, MICROCENTS_PER_UNIT, MINUTE, Microcents, charge

HOLD_NS: Final = 15 * MINUTE
"""The time that a hold covers: long enough to survive a restart of the Master, short enough to risk little."""
HOLD_LOW_NS: Final = 10 * MINUTE
"""A hold below this is filled up again."""
FIRST_CREDITS: Final = Microcents(100 * MICROCENTS_PER_UNIT)
"""Test money for each new account."""


def transfer_id(kind: TransferKind, subject: str, key: str) -> TransferId:
    """The id of the one transfer of this kind for this reason: SHA-256 of both, 128 bits of it."""
    return TransferId("transfer_" + sha256(f"{kind}|{subject}|{key}".encode()).hexdigest()[:32])


def minting(account_id: AccountId, now_ns: int, key: str = "first", amount: Microcents = FIRST_CREDITS) -> Transfer:
    """Test credits of an account, by default its first; the same transfer however often it is asked for by this key."""
    return Transfer(
        transfer_id(TransferKind.MINT, account_id, key),
        MINT,
        account_of(account_id),
        amount,
        TransferKind.MINT,
        None,
        now_ns,
        f"{key.partition(' ')[0]} test credits",
    )


def settlement(account_id: AccountId, to: AccountId | None, amount: Microcents, key: str, now_ns: int) -> Transfer:
    """The transfer of what an account has left to another one; None: it is written off, and test money ends where it
    began. key: of this settlement."""
    kind = TransferKind.WRITE_OFF if to is None else TransferKind.MOVE
    credit = MINT if to is None else account_of(to)
    memo = "written off" if to is None else "moved to another project"
    return Transfer(
        transfer_id(kind, account_id, key), account_of(account_id), credit, amount, kind, None, now_ns, memo
    )


def hold_amount(price_per_hour: Microcents, duration_ns: int = HOLD_NS) -> Microcents:
    """Return the most that `duration_ns` may cost; rounded up, since what is not used is given back."""
    return Microcents(-(-price_per_hour * duration_ns // HOUR))


def holding(
    rental: Rental, balance: Microcents, now_ns: int, *, needed: Microcents = NOTHING, ahead_ns: int = HOLD_NS
) -> Transfer | None:
    """Fill the hold for `ahead_ns` beyond `needed`, as far as the renter's balance reaches; None when it cannot.

    needed: what is about to be charged, microcents. The id grows with all that was ever held, so no two fillings meet.
    """
    wanted = hold_amount(rental.price_per_hour, ahead_ns) + needed - rental.held_left
    amount = min(wanted, max(0, balance))
    if amount <= 0:
        return None
    return Transfer(
        transfer_id(TransferKind.HOLD, rental.rental_id, str(rental.held + amount)),
        account_of(rental.renter),
        hold_of(rental.rental_id),
        Microcents(amount),
        TransferKind.HOLD,
        rental.rental_id,
        now_ns,
        "set aside for running time",
    )


def is_low(rental: Rental, needed: Microcents = NOTHING) -> bool:
    """Return whether the hold should be filled up before `needed` is charged from it."""
    if rental.state is not RentalState.OPEN:
        return rental.held_left < needed
    return rental.held_left - needed < hold_amount(rental.price_per_hour, HOLD_LOW_NS)


def filling(rental: Rental, balance: Microcents, now_ns: int, needed: Microcents = NOTHING) -> Transfer | None:
    """The hold transfer that is due now, if any: 15 minutes ahead while it runs, only what is owed once it ends."""
    if rental.state is RentalState.CLOSED or not is_low(rental, needed):
        return None
    ahead_ns = HOLD_NS if rental.state is RentalState.OPEN else 0
    return holding(rental, balance, now_ns, needed=needed, ahead_ns=ahead_ns)


def due(line: RentalLine) -> Microcents:
    """Return the amount that a line owes beyond its charges: the difference of cumulative charges, never below zero."""
    return Microcents(max(0, charge(line.price_per_hour, billable_ns(line)) - line.charged))


@dataclass(frozen=True, slots=True)
class Charged:
    """A line and its rental after a charge, and the transfers that make it so."""

    rental: Rental
    line: RentalLine
    transfers: tuple[Transfer, ...]


def payable(rental: Rental, line: RentalLine, most: Microcents | None = None) -> Microcents:
    """Return the part of what a line owes that the rental's budget still covers, and spending limits let be charged
    (most; None: there are none); its host bears the rest."""
    left = [due(line)]
    if rental.budget is not None:
        left.append(Microcents(max(0, rental.budget - rental.charged)))
    return min(left) if most is None else min(*left, most)


def charging(rental: Rental, line: RentalLine, now_ns: int, most: Microcents | None = None) -> Charged:
    """Charge what a line owes within the budget, at most what the hold has left; the fee is the whole part of its share
    so far. most: as for `payable`."""
    amount = min(payable(rental, line, most), max(0, rental.held_left))
    if amount <= 0:
        return Charged(rental, line, ())
    total = Microcents(line.charged + amount)
    fee_total = Microcents(total * rental.fee_permille // 1000)
    fee = fee_total - line.fee_charged
    parts = (
        (TransferKind.CHARGE, account_of(line.provider), amount - fee, "running time"),
        (TransferKind.FEE, FEES, fee, "the platform's share"),
    )
    transfers = tuple(
        Transfer(
            transfer_id(kind, line.workload_id, str(total)),
            hold_of(rental.rental_id),
            credit,
            Microcents(part),
            kind,
            rental.rental_id,
            now_ns,
            memo,
        )
        for kind, credit, part, memo in parts
        if part > 0
    )
    return Charged(
        replace(rental, charged=Microcents(rental.charged + amount)),
        replace(line, charged=total, fee_charged=fee_total),
        transfers,
    )


def settling(
    rental: Rental, line: RentalLine, balance: Microcents, now_ns: int, most: Microcents | None = None
) -> Charged:
    """Bring the ledger up to what a line's receipts prove: fill the hold if it is low, then charge.

    balance: what may be set aside of the renter's, before; it never falls below zero, and what it cannot pay is not
    charged. most: as for `payable`.
    """
    if rental.state is RentalState.CLOSED:
        return Charged(rental, line, ())
    fill = filling(rental, balance, now_ns, payable(rental, line, most))
    if fill is not None:
        rental = replace(rental, held=Microcents(rental.held + fill.amount))
    charged = charging(rental, line, now_ns, most)
    before = () if fill is None else (fill,)
    return Charged(charged.rental, charged.line, (*before, *charged.transfers))


def voiding(rental: Rental, now_ns: int) -> Transfer | None:
    """Give back what is left of the hold; None when nothing is."""
    if rental.held_left <= 0:
        return None
    return Transfer(
        transfer_id(TransferKind.VOID, rental.rental_id, "rest"),
        hold_of(rental.rental_id),
        account_of(rental.renter),
        rental.held_left,
        TransferKind.VOID,
        rental.rental_id,
        now_ns,
        "what was set aside and not used",
    )


def fold(transfers: Iterable[Transfer]) -> dict[LedgerAccount, Microcents]:
    """The balance of every account from the transfers alone; the balances of all accounts add up to zero."""
    balances: dict[LedgerAccount, Microcents] = {}
    for transfer in transfers:
        balances[transfer.debit] = Microcents(balances.get(transfer.debit, 0) - transfer.amount)
        balances[transfer.credit] = Microcents(balances.get(transfer.credit, 0) + transfer.amount)
    return balances
