"""Reads and writes backends, purchases and the book of costs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any, Final

from sqlalchemy import ColumnElement, delete, func, insert, or_, select, update

from windrow_master.hybrid.backends.port import Billing, Finding, MachineOffer, PurchaseId, RefusedFor
from windrow_master.hybrid.purchases.costs import Spent
from windrow_master.hybrid.purchases.model import BackendRow, Buyer, Caps, Cost, Purchase
from windrow_master.hybrid.purchases.states import State
from windrow_master.hybrid.purchases.tables import backends, buyers, purchase_costs, purchases
from windrow_master.prices.offers import Kind
from windrow_master.store.prepared import Made, page, readable
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId, HostId
from windrow_proto.units import Microcents

_OWN: Final = ("purchase_id", "backend", "account_id", "state", "machine_id", "host_id")
"""Fields with a column of their own; the record has the others."""
_LIVING_HOSTS: Final = Made(
    select(purchases.c.living_host, purchases.c.account_id, purchases.c.kept_for).where(
        purchases.c.living_host.is_not(None)
    )
)


class BackendRepository(Repository):
    """The backends."""

    def save(self, row: BackendRow) -> None:
        """Add or replace one."""
        values = asdict(row) | {"settings": dict(row.settings), "findings": [asdict(one) for one in row.findings]}
        is_it = backends.c.name == row.name
        if self._connection.execute(update(backends).where(is_it).values(values)).rowcount == 0:
            self._connection.execute(insert(backends).values(values))

    def get(self, name: str) -> BackendRow | None:
        """One, or None."""
        row = self._connection.execute(select(backends).where(backends.c.name == name)).mappings().one_or_none()
        return None if row is None else _backend(row)

    def all(self) -> Sequence[BackendRow]:
        """All, by name."""
        return readable(self._connection, select(backends).order_by(backends.c.name), _backend)

    def remove(self, name: str) -> None:
        """Forget one; its purchases and their costs stay."""
        self._connection.execute(delete(backends).where(backends.c.name == name))


class PurchaseRepository(Repository):
    """The purchases, and the book of what they cost."""

    def save(self, purchase: Purchase) -> None:
        """Add or replace one."""
        values = _values(purchase)
        is_it = purchases.c.purchase_id == purchase.purchase_id
        if self._connection.execute(update(purchases).where(is_it).values(values)).rowcount == 0:
            self._connection.execute(insert(purchases).values(values))

    def get(self, purchase_id: str) -> Purchase | None:
        """One, or None."""
        query = select(purchases).where(purchases.c.purchase_id == purchase_id)
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else _purchase(row)

    def living(self, backend: str) -> Sequence[Purchase]:
        """Those of a backend that may cost anything, the oldest first."""
        query = select(purchases).where(purchases.c.living_at == backend).order_by(purchases.c.purchase_id)
        return readable(self._connection, query, _purchase)

    def machines(self, backend: str | None = None) -> Mapping[PurchaseId, str]:
        """The machine of each of them (None: of those of all backends); empty: none is known yet. Also of those whose
        record cannot be read."""
        is_wanted = purchases.c.living_at.is_not(None) if backend is None else purchases.c.living_at == backend
        rows = self._connection.execute(select(purchases.c.purchase_id, purchases.c.machine_id).where(is_wanted))
        return {PurchaseId(row.purchase_id): row.machine_id for row in rows}

    def of_hosts(self, hosts: Collection[HostId] | None = None) -> Sequence[tuple[HostId, AccountId, str]]:
        """The hosts of living purchases, of these alone where they are given, for whose work each is, and for which
        entry of the queue it is kept; empty: for none."""
        rows = _LIVING_HOSTS.rows(self._connection, {})
        found = [(HostId(one["living_host"]), AccountId(one["account_id"]), one["kept_for"] or "") for one in rows]
        return found if hosts is None or not found else [one for one in found if one[0] in frozenset(hosts)]

    def kept_for(self, entry_id: str) -> HostId | None:
        """The host of the living purchase that is kept for this entry of the queue, once it has joined."""
        query = select(purchases.c.living_host).where(purchases.c.kept_for == entry_id)
        found = self._connection.scalar(query.where(purchases.c.living_host.is_not(None)).limit(1))
        return None if found is None else HostId(found)

    def of_host(self, host_id: HostId) -> Purchase | None:
        """The one that this host was bought by."""
        query = select(purchases).where(purchases.c.host_id == host_id)
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else _purchase(row)

    def page(
        self,
        account_id: AccountId | None,
        before: str | None,
        limit: int,
        states: Collection[State] = (),
        backend: str | None = None,
    ) -> Sequence[Purchase]:
        """Those of an account (None: of all), the latest first, from the one after `before`."""
        query = select(purchases).order_by(purchases.c.purchase_id.desc())
        if account_id is not None:
            query = query.where(purchases.c.account_id == account_id)
        if backend is not None:
            query = query.where(purchases.c.backend == backend)
        if before is not None:
            query = query.where(purchases.c.purchase_id < before)
        if states:
            query = query.where(or_(*(purchases.c.state == str(state) for state in states)))
        return page(self._connection, query, _purchase, limit)

    def starts(self, latest: int) -> Sequence[tuple[str, int]]:
        """The latest purchases that became hosts: `KIND OF BACKEND/KIND OF OFFER`, and the nanoseconds until then."""
        kinds = {row.name: row.kind for row in self._connection.execute(select(backends.c.name, backends.c.kind))}
        query = select(purchases).where(purchases.c.host_id.is_not(None)).order_by(purchases.c.purchase_id.desc())
        found = page(self._connection, query, _purchase, latest)
        return [
            (f"{kinds[one.backend]}/{one.offer.kind}", one.joined_at_ns - one.asked_at_ns)
            for one in found
            if one.backend in kinds and one.joined_at_ns is not None and one.asked_at_ns is not None
        ]

    def add_cost(self, cost: Cost) -> None:
        """Append an entry to the book."""
        values = asdict(cost)
        del values["number"]
        self._connection.execute(insert(purchase_costs).values(values))

    def costs(self, purchase_ids: Collection[PurchaseId]) -> Sequence[Cost]:
        """The entries of purchases, in order."""
        query = select(purchase_costs).where(purchase_costs.c.purchase_id.in_(list(purchase_ids)))
        rows = self._connection.execute(query.order_by(purchase_costs.c.number)).mappings()
        return [Cost(**row) for row in rows]

    def spent(self, backend: str, day_ns: int, account_id: AccountId | None = None) -> Spent:
        """The sum of the book of a backend, of one account alone where it is given: since the beginning of the day, and
        in all."""
        total = select(func.sum(purchase_costs.c.cost)).where(purchase_costs.c.backend == backend)
        if account_id is not None:
            total = total.where(purchase_costs.c.account_id == account_id)
        today = self._connection.scalar(total.where(purchase_costs.c.at_ns >= day_ns))
        return Spent(Microcents(int(today or 0)), Microcents(int(self._connection.scalar(total) or 0)))


class BuyerRepository(Repository):
    """The projects that may have machines bought."""

    def save(self, buyer: Buyer) -> None:
        """Add or replace one."""
        is_it = (buyers.c.backend == buyer.backend) & (buyers.c.account_id == buyer.account_id)
        if self._connection.execute(update(buyers).where(is_it).values(asdict(buyer))).rowcount == 0:
            self._connection.execute(insert(buyers).values(asdict(buyer)))

    def get(self, backend: str, account_id: AccountId) -> Buyer | None:
        """One, or None."""
        return next((one for one in self.of_account(account_id) if one.backend == backend), None)

    def of_account(self, account_id: AccountId) -> Sequence[Buyer]:
        """The backends where a project may, by name."""
        return self._all(buyers.c.account_id == account_id)

    def of_backend(self, backend: str) -> Sequence[Buyer]:
        """The projects that may at a backend."""
        return self._all(buyers.c.backend == backend)

    def remove(self, backend: str | None = None, account_id: AccountId | None = None) -> None:
        """Forget those of a backend, of a project, or of both."""
        query = delete(buyers)
        query = query if backend is None else query.where(buyers.c.backend == backend)
        self._connection.execute(query if account_id is None else query.where(buyers.c.account_id == account_id))

    def _all(self, condition: ColumnElement[bool]) -> Sequence[Buyer]:
        query = select(buyers).where(condition).order_by(buyers.c.backend, buyers.c.account_id)
        return [Buyer(**row) for row in self._connection.execute(query).mappings()]


def _values(purchase: Purchase) -> dict[str, Any]:
    record = asdict(purchase)
    own = {name: record.pop(name) for name in _OWN}
    record["offer"]["priced_on"] = purchase.offer.priced_on.isoformat()
    kept_for = purchase.for_id if purchase.is_kept and purchase.state not in (State.DRAINING, State.ENDING) else None
    lives = {"living_at": purchase.backend, "living_host": purchase.host_id, "kept_for": kept_for}
    lives = lives if purchase.is_living else dict.fromkeys(lives)
    return {**own, **lives, "state": str(purchase.state), "record": record}


def _purchase(row: Mapping[Any, Any]) -> Purchase:
    record = dict(row["record"])
    offer = dict(record.pop("offer"))
    offer |= {"kind": Kind(offer["kind"]), "billing": Billing(**offer["billing"])}
    offer["priced_on"] = date.fromisoformat(offer["priced_on"])
    refused_for = record.pop("refused_for")
    return Purchase(
        **{name: row[name] for name in _OWN if name != "state"},
        state=State(row["state"]),
        offer=MachineOffer(**offer),
        refused_for=None if refused_for is None else RefusedFor(refused_for),
        **record,
    )


def _backend(row: Mapping[Any, Any]) -> BackendRow:
    findings = tuple(Finding(**one) for one in row["findings"])
    return BackendRow(**{**row, "caps": Caps(**row["caps"]), "findings": findings})
