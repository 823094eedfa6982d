"""Reads and writes asks, rentals, receipts and the ledger; rows go in and out as values of the market."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any, Final, NamedTuple

from sqlalchemy import bindparam, delete, func, insert, literal_column, or_, select, update

from windrow_master.market.model import (
    NOTHING,
    Ask,
    LedgerAccount,
    ReceiptRow,
    Rental,
    RentalId,
    RentalLine,
    RentalState,
    Transfer,
    TransferKind,
    may_be_negative,
)
from windrow_master.market.tables import asks, balances, receipts, rental_lines, rentals, transfers
from windrow_master.store.prepared import ByKey, Found, Made, Upsert, flat, is_one_of_few, page, settable
from windrow_master.store.repository import Repository
from windrow_proto.errors import InsufficientFunds
from windrow_proto.ids import AccountId, ClusterId, HostId, TransferId, WorkloadId
from windrow_proto.model import Isolation, SlotGrant
from windrow_proto.units import DAY, Microcents

_PUT_ASK: Final = Upsert(asks, ["account_id", "tier"], ["price_per_hour", "set_at_ns", "set_by"])

_ALL_ASKS: Final = Found(select(asks).order_by(asks.c.tier, asks.c.account_id), lambda row: _ask(row))
_ASKS_OF: Final = ByKey(select(asks), asks.c.account_id, lambda row: _ask(row), lambda ask: ask.account_id or "")

# Made once: building a statement costs more than running it, and these run for every receipt.
_ADD_RENTAL: Final = Made(insert(rentals), rentals.c.keys(), is_late=True)
_GET_RENTAL: Final = Found(select(rentals).where(rentals.c.rental_id == bindparam("wanted")), lambda row: _rental(row))
_SAVE_RENTAL: Final = Made(update(rentals).where(rentals.c.rental_id == bindparam("was_id")), settable(rentals))
_RENTALS_OF_CLUSTER: Final = ByKey(
    select(rentals),
    rentals.c.cluster_id,
    lambda row: _rental(row),
    attrgetter("cluster_id"),
    attrgetter("rental_id"),
)
_LIVE: Final = Found(
    select(rentals).where(
        rentals.c.state != literal_column(f"'{RentalState.CLOSED.value}'")
    ),  # as the index of these says it
    lambda row: _rental(row),
    attrgetter("rental_id"),
)
_LIVE_OF_CLUSTER: Final = Found(
    select(rentals).where(
        rentals.c.cluster_id == bindparam("wanted"),
        rentals.c.state != literal_column(f"'{RentalState.CLOSED.value}'"),
    ),
    lambda row: _rental(row),
    attrgetter("rental_id"),
)
_LIVE_OF_FEW: Final = Found(
    select(rentals).where(
        is_one_of_few(rentals.c.cluster_id), rentals.c.state != literal_column(f"'{RentalState.CLOSED.value}'")
    ),
    lambda row: _rental(row),
    attrgetter("rental_id"),
)
_LIVE_CLUSTERS: Final = Made(
    select(rentals.c.cluster_id).where(rentals.c.state != literal_column(f"'{RentalState.CLOSED.value}'")).distinct()
)
_ADD_LINE: Final = Made(insert(rental_lines), rental_lines.c.keys(), is_late=True)
_GET_LINE: Final = Found(
    select(rental_lines).where(rental_lines.c.workload_id == bindparam("wanted")), lambda row: _line(row)
)
_LINES: Final = Found(
    select(rental_lines).where(rental_lines.c.rental_id == bindparam("wanted")),
    lambda row: _line(row),
    attrgetter("workload_id"),
)
_LINES_OF_FEW: Final = Found(
    select(rental_lines).where(is_one_of_few(rental_lines.c.rental_id)),
    lambda row: _line(row),
    attrgetter("workload_id"),
)
_SAVE_LINE: Final = Made(
    update(rental_lines).where(rental_lines.c.workload_id == bindparam("was_id")), settable(rental_lines)
)
_ADD_RECEIPT: Final = Made(insert(receipts), receipts.c.keys())
_GET_RECEIPT: Final = Made(
    select(receipts).where(receipts.c.workload_id == bindparam("of_workload"), receipts.c.number == bindparam("wanted"))
)
_TRANSFER_COLUMNS: Final = tuple(c.key for c in transfers.c if c.key != "number")
_ADD_TRANSFER: Final = Made(insert(transfers), _TRANSFER_COLUMNS, is_late=True)
_GET_TRANSFER: Final = Made(select(transfers).where(transfers.c.transfer_id == bindparam("wanted")))
_BALANCES: Final = ByKey(select(balances), balances.c.account, lambda row: _Balance(**row), attrgetter("account"))
_ADD_BALANCE: Final = Made(insert(balances), balances.c.keys(), is_late=True)
_MOVE: Final = (
    update(balances)
    .where(balances.c.account == bindparam("wanted"))
    .values(balance=balances.c.balance + bindparam("moved"))
)
_MOVE_BALANCE: Final = Made(_MOVE)
_MOVE_KNOWN: Final = Made(_MOVE, is_late=True, refused="A balance was changed by somebody else.")
"""The same of a row that the transaction has read."""


class _Balance(NamedTuple):
    account: LedgerAccount
    balance: Microcents


def _ask(row: Mapping[Any, Any]) -> Ask:
    return Ask(**{**row, "account_id": row["account_id"] or None})


class AskRepository(Repository):
    """The asks of owners, and of the operator for all others, by tier."""

    def list_all(self) -> Sequence[Ask]:
        """Every ask."""
        return _ALL_ASKS.all(self._connection)

    def counting_for(self, accounts: Sequence[AccountId]) -> Sequence[Ask]:
        """The asks of these accounts, and of the operator."""
        found = _ASKS_OF.some(self._connection, ("", *accounts), skips=False)
        return [ask for of_one in found.values() for ask in of_one]

    def count_others(self, account_id: AccountId, tier: str) -> int:
        """Return how many asks an account has for other tiers."""
        wanted = (asks.c.account_id == account_id, asks.c.tier != tier)
        return int(self._connection.scalar(select(func.count()).select_from(asks).where(*wanted)) or 0)

    def put(self, ask: Ask) -> None:
        """Set an ask, in place of an earlier one for the same account and tier."""
        values = asdict(ask) | {"account_id": ask.account_id or ""}
        _PUT_ASK.run(self._connection, values)

    def of(self, account_id: AccountId | None) -> dict[str, Microcents]:
        """The prices that an account asks, by tier; None: those of the operator."""
        query = select(asks.c.tier, asks.c.price_per_hour).where(asks.c.account_id == (account_id or ""))
        return {tier: Microcents(price) for tier, price in self._connection.execute(query)}

    def find(self, account_id: AccountId | None, tier: str) -> Ask | None:
        """The ask of an account (None: of the operator) for a tier, if there is one."""
        own = (asks.c.account_id == (account_id or ""), asks.c.tier == tier)
        row = self._connection.execute(select(asks).where(*own)).one_or_none()
        return None if row is None else Ask(**dict(row._mapping) | {"account_id": account_id})

    def remove(self, account_id: AccountId | None, tier: str) -> None:
        """Remove an ask, if it is there."""
        own = (asks.c.account_id == (account_id or ""), asks.c.tier == tier)
        self._connection.execute(delete(asks).where(*own))


class RentalRepository(Repository):
    """Rentals and their lines."""

    def add(self, rental: Rental) -> None:
        """Add a rental; its id must be new."""
        _RENTALS_OF_CLUSTER.insert(self._connection, _ADD_RENTAL, _rental_values(rental), rental)

    def has_none(self, cluster_id: ClusterId) -> None:
        """There is no rental yet of a cluster whose id was minted now."""
        _RENTALS_OF_CLUSTER.note(self._connection, cluster_id, [])

    def save(self, rental: Rental) -> None:
        """Write a rental as it is now."""
        _SAVE_RENTAL.run(self._connection, _rental_values(rental) | {"was_id": rental.rental_id})

    def get(self, rental_id: RentalId) -> Rental | None:
        """One rental."""
        return _GET_RENTAL.one(self._connection, {"wanted": rental_id})

    def of_cluster(self, cluster_id: ClusterId) -> Sequence[Rental]:
        """The rentals of a cluster, one for each time that it was started, the first one first."""
        return _RENTALS_OF_CLUSTER.of(self._connection, cluster_id)

    def live(self) -> Sequence[Rental]:
        """Return the open rentals, oldest first."""
        return _LIVE.readable(self._connection)

    def begun_since(self, since_ns: int, but: AccountId) -> dict[tuple[str, bool], int]:
        """Return how many began at that time or later, by tier and whether of simulated hosts, one account's left
        out."""
        by = (rentals.c.tier, rentals.c.simulated)
        query = (
            select(*by, func.count()).where(rentals.c.opened_at_ns >= since_ns, rentals.c.renter != but).group_by(*by)
        )
        return {(tier, simulated): count for tier, simulated, count in self._connection.execute(query)}

    def prices_since(
        self, tier: str, simulated: bool, since_ns: int, but: AccountId, limit: int
    ) -> list[tuple[int, Microcents]]:
        """Return when rentals of a tier began since then and the price of one slot per hour, the latest of them, one
        account's left out."""
        query = (
            select(rentals.c.opened_at_ns, rental_lines.c.price_per_hour, rental_lines.c.slots)
            .join(rental_lines, rental_lines.c.rental_id == rentals.c.rental_id)
            .where(rentals.c.tier == tier, rentals.c.simulated == simulated)
            .where(rentals.c.opened_at_ns >= since_ns, rentals.c.renter != but)
            .order_by(rentals.c.opened_at_ns.desc())
            .limit(limit)
        )
        rows = self._connection.execute(query)
        return [(at_ns, Microcents(price // len(slots))) for at_ns, price, slots in rows if slots]

    def page(
        self,
        renter: AccountId | None,
        cluster_id: ClusterId | None,
        before: str | None,
        limit: int,
        without: AccountId | None = None,
    ) -> Sequence[Rental]:
        """The latest first; of all accounts but `without` where `renter` is None."""
        query = select(rentals).order_by(rentals.c.rental_id.desc())
        if renter is not None:
            query = query.where(rentals.c.renter == renter)
        elif without is not None:
            query = query.where(rentals.c.renter != without)
        if cluster_id is not None:
            query = query.where(rentals.c.cluster_id == cluster_id)
        if before is not None:
            query = query.where(rentals.c.rental_id < before)
        return page(self._connection, query, _rental, limit)

    def add_line(self, line: RentalLine) -> None:
        """Add a line; its workload must be new."""
        _ADD_LINE.run(self._connection, _line_values(line))

    def save_line(self, line: RentalLine) -> None:
        """Write a line as it is now."""
        _SAVE_LINE.run(self._connection, _line_values(line) | {"was_id": line.workload_id})

    def line(self, workload_id: WorkloadId) -> RentalLine | None:
        """The line of a workload."""
        return _GET_LINE.one(self._connection, {"wanted": workload_id})

    def lines(self, rental_ids: Sequence[RentalId]) -> Sequence[RentalLine]:
        """The lines of these rentals, in the order of their workloads."""
        if len(rental_ids) == 1:
            return _LINES.all(self._connection, {"wanted": rental_ids[0]})
        query = (
            select(rental_lines).where(rental_lines.c.rental_id.in_(rental_ids)).order_by(rental_lines.c.workload_id)
        )
        return [_line(row._mapping) for row in self._connection.execute(query)]

    def live_of_cluster(self, cluster_id: ClusterId) -> Sequence[Rental]:
        """Return the open rentals of one cluster, oldest first."""
        return _LIVE_OF_CLUSTER.readable(self._connection, {"wanted": cluster_id})

    def live_of_clusters(self, cluster_ids: Sequence[ClusterId]) -> dict[ClusterId, list[Rental]]:
        """The same of each of these that has any, with one statement for some at a time."""
        return _LIVE_OF_FEW.of_few(self._connection, cluster_ids, lambda rental: rental.cluster_id)

    def lines_of(self, rental_ids: Sequence[RentalId]) -> dict[RentalId, list[RentalLine]]:
        """The lines of each of these rentals in the order of their workloads, with one statement for some at a time."""
        return _LINES_OF_FEW.of_few(self._connection, rental_ids, lambda line: line.rental_id)

    def charged_on(self, host_id: HostId) -> Microcents:
        """The sum of what the lines of one host were charged."""
        query = select(func.sum(rental_lines.c.charged)).where(rental_lines.c.host_id == host_id)
        return Microcents(int(self._connection.scalar(query) or 0))

    def live_clusters(self) -> Sequence[ClusterId]:
        """The clusters whose rentals are not closed."""
        return [ClusterId(row["cluster_id"]) for row in _LIVE_CLUSTERS.rows(self._connection, {})]


class ReceiptRepository(Repository):
    """Signed receipts, one for each number of each workload; never changed."""

    def get(self, workload_id: WorkloadId, number: int) -> ReceiptRow | None:
        """One receipt."""
        row = _GET_RECEIPT.row(self._connection, {"of_workload": workload_id, "wanted": number})
        return None if row is None else _receipt(row)

    def add(self, receipt: ReceiptRow) -> None:
        """Keep one; its number must be new to its workload."""
        _ADD_RECEIPT.run(self._connection, flat(receipt))

    def of_workload(self, workload_id: WorkloadId) -> Sequence[ReceiptRow]:
        """All of a workload's, in the order of their numbers: enough to compute its charge again."""
        query = select(receipts).where(receipts.c.workload_id == workload_id).order_by(receipts.c.number)
        return [_receipt(row._mapping) for row in self._connection.execute(query)]


class LedgerRepository(Repository):
    """The transfers, appended and never changed, and the balances they fold to."""

    def post(self, transfer: Transfer, *, is_new: bool = False) -> bool:
        """Append a transfer, once for each id; returns whether it was new. is_new: it is the first of its rental.

        Raises InsufficientFunds when the debited account would fall below zero (nothing is written then).
        """
        if not is_new and self.get(transfer.transfer_id) is not None:
            return False
        left = self.balance(transfer.debit) - transfer.amount
        if left < 0 and not may_be_negative(transfer.debit):
            raise InsufficientFunds(f"{transfer.debit} has too little for this transfer.", subject=transfer.debit)
        _ADD_TRANSFER.run(self._connection, flat(transfer))
        self._move(transfer.debit, -transfer.amount)
        if is_new:
            _ADD_BALANCE.run(self._connection, {"account": transfer.credit, "balance": transfer.amount})
        else:
            self._move(transfer.credit, transfer.amount)
        return True

    def get(self, transfer_id: TransferId) -> Transfer | None:
        """One transfer."""
        row = _GET_TRANSFER.row(self._connection, {"wanted": transfer_id})
        return None if row is None else _transfer(row)

    def balance(self, account: LedgerAccount) -> Microcents:
        """Return the balance of an account; 0 if nothing ever happened there."""
        found = _BALANCES.one(self._connection, account)
        return NOTHING if found is None else Microcents(int(found.balance))

    def balances(self) -> dict[LedgerAccount, Microcents]:
        """Every account's balance as kept beside the transfers."""
        rows = self._connection.execute(select(balances).order_by(balances.c.account))
        return {LedgerAccount(row.account): Microcents(row.balance) for row in rows}

    def folded(self) -> dict[LedgerAccount, Microcents]:
        """Every account's balance from the transfers alone."""
        sums: dict[LedgerAccount, Microcents] = {}
        for column, sign in ((transfers.c.debit, -1), (transfers.c.credit, 1)):
            for account, amount in self._connection.execute(
                select(column, func.sum(transfers.c.amount)).group_by(column)
            ):
                sums[account] = Microcents(sums.get(account, 0) + sign * int(amount))
        return sums

    def of_rental(self, rental_id: RentalId) -> Sequence[Transfer]:
        """A rental's transfers, in the order they were posted."""
        query = select(transfers).where(transfers.c.rental_id == rental_id).order_by(transfers.c.number)
        return [_transfer(row._mapping) for row in self._connection.execute(query)]

    def earned_after(self, number: int, since_ns: int) -> tuple[int, list[tuple[LedgerAccount, int, int]]]:
        """Return the payments to providers and the platform since then, in rows after `number`.

        Returns the last row's number, and for each account and UTC day (counted from the epoch) the sum.
        """
        last = int(self._connection.scalar(select(func.max(transfers.c.number))) or 0)
        day = (transfers.c.at_ns // DAY).label("day")
        query = (
            select(transfers.c.credit, day, func.sum(transfers.c.amount))
            .where(transfers.c.number > number, transfers.c.number <= last, transfers.c.at_ns >= since_ns)
            .where(transfers.c.kind.in_((TransferKind.CHARGE.value, TransferKind.FEE.value)))
            .group_by(transfers.c.credit, day)
        )
        rows = self._connection.execute(query)
        return last, [(LedgerAccount(credit), int(of_day), int(amount)) for credit, of_day, amount in rows]

    def page(
        self, accounts: Iterable[LedgerAccount] | None, before: int | None, limit: int
    ) -> Sequence[tuple[int, Transfer]]:
        """The latest first with their row numbers; of every account where `accounts` is None."""
        query = select(transfers).order_by(transfers.c.number.desc()).limit(limit)
        if accounts is not None:
            names = list(accounts)
            query = query.where(or_(transfers.c.debit.in_(names), transfers.c.credit.in_(names)))
        if before is not None:
            query = query.where(transfers.c.number < before)
        return [(row.number, _transfer(row._mapping)) for row in self._connection.execute(query)]

    def _move(self, account: LedgerAccount, amount: int) -> None:
        known = _BALANCES.known(self._connection, account)
        if known:
            _MOVE_KNOWN.run(self._connection, {"wanted": account, "moved": amount})
            after = _Balance(account, Microcents(known[0].balance + amount))
            _BALANCES.note(self._connection, account, [after])
        elif _MOVE_BALANCE.run(self._connection, {"wanted": account, "moved": amount}) == 0:
            _ADD_BALANCE.run(self._connection, {"account": account, "balance": amount})


def _rental_values(rental: Rental) -> dict[str, Any]:
    return flat(rental) | {"state": rental.state.value}


def _rental(row: Mapping[Any, Any]) -> Rental:
    return Rental(**dict(row) | {"state": RentalState(row["state"]), "spenders": tuple(row["spenders"] or ())})


def _line_values(line: RentalLine) -> dict[str, Any]:
    return flat(line) | {"slots": [flat(slot) for slot in line.slots]}


def _line(row: Mapping[Any, Any]) -> RentalLine:
    slots = tuple(SlotGrant(**{**slot, "isolation": Isolation(slot.get("isolation", 0))}) for slot in row["slots"])
    return RentalLine(**dict(row) | {"slots": slots})


def _receipt(row: Mapping[Any, Any]) -> ReceiptRow:
    return ReceiptRow(**dict(row) | {"sealed": bytes(row["sealed"])})


def _transfer(row: Mapping[Any, Any]) -> Transfer:
    values = dict(row)
    values.pop("number")
    return Transfer(**values | {"kind": TransferKind(row["kind"])})
