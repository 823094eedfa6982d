"""Reads and writes registered resources and kept routes."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import delete, func, insert, select, update

from windrow_master.hybrid.model import Declared, Resource, declared_of, kept
from windrow_master.hybrid.tables import resources as table
from windrow_master.hybrid.tables import routes
from windrow_master.store.prepared import Found, readable
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId

_BOUND: Final = Found(
    select(table).where(table.c.bound_host.is_not(None)), lambda row: _resource(row), attrgetter("number")
)


class ResourceRepository(Repository):
    """The registered resources."""

    def add(self, resource_id: str, declared: Declared, now_ns: int) -> Resource:
        """Add one whose id is new; returns it with its number."""
        values = {"resource_id": resource_id, "declared": kept(declared), "created_at_ns": now_ns}
        done = self._connection.execute(insert(table).values(values))
        assert done.inserted_primary_key is not None
        return Resource(int(done.inserted_primary_key[0]), resource_id, declared, now_ns)

    def save(self, resource: Resource) -> None:
        """Write one as it is now."""
        query = update(table).where(table.c.number == resource.number)
        self._connection.execute(query.values(_changing(resource)))

    def get(self, resource_id: str) -> Resource | None:
        """The one of this id."""
        row = self._connection.execute(select(table).where(table.c.resource_id == resource_id)).one_or_none()
        return None if row is None else _resource(row._mapping)

    def bound_to(self, host_id: str) -> Resource | None:
        """The one that this host is bound to."""
        row = self._connection.execute(select(table).where(table.c.bound_host == host_id)).one_or_none()
        return None if row is None else _resource(row._mapping)

    def bound(self) -> Sequence[Resource]:
        """Those that a host is bound to, in the order of their numbers."""
        return _BOUND.readable(self._connection)

    def all(self) -> Sequence[Resource]:
        """Every one, in the order of their numbers."""
        return readable(self._connection, select(table).order_by(table.c.number), _resource)

    def count(self) -> int:
        """The number of resources."""
        return int(self._connection.scalar(select(func.count()).select_from(table)) or 0)

    def remove(self, resource: Resource) -> None:
        """Forget one."""
        self._connection.execute(delete(table).where(table.c.number == resource.number))


class RouteRepository(Repository):
    """The routes that are kept, as records (kept.py)."""

    def add(self, route_id: str, account_id: AccountId, at_ns: int, record: bytes, most: int) -> None:
        """Add one whose id is new; of the account's older ones only so many stay that it has `most`."""
        values = {"route_id": route_id, "account_id": account_id, "at_ns": at_ns, "record": record}
        self._connection.execute(insert(routes).values(values))
        own = select(routes.c.route_id).where(routes.c.account_id == account_id)
        last = self._connection.scalar(own.order_by(routes.c.route_id.desc()).offset(most).limit(1))
        if last is not None:
            gone = (routes.c.account_id == account_id) & (routes.c.route_id <= last)
            self._connection.execute(delete(routes).where(gone))

    def get(self, route_id: str) -> tuple[AccountId, int, bytes] | None:
        """The account of one, its time, and its record."""
        query = select(routes.c.account_id, routes.c.at_ns, routes.c.record).where(routes.c.route_id == route_id)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else (AccountId(row.account_id), row.at_ns, bytes(row.record))

    def page(self, account_id: AccountId, before: str | None, limit: int) -> Sequence[tuple[str, int, bytes]]:
        """The id, time and record of those of an account, the latest first; from the one after `before`."""
        query = select(routes.c.route_id, routes.c.at_ns, routes.c.record).where(routes.c.account_id == account_id)
        if before is not None:
            query = query.where(routes.c.route_id < before)
        rows = self._connection.execute(query.order_by(routes.c.route_id.desc()).limit(limit))
        return [(row.route_id, row.at_ns, bytes(row.record)) for row in rows]


def _changing(resource: Resource) -> Mapping[str, Any]:
    return {
        "declared": kept(resource.declared),
        "updated_at_ns": resource.updated_at_ns,
        "bound_host": resource.bound_host,
        "dedicated_to": resource.dedicated_to,
    }


def _resource(row: Mapping[Any, Any]) -> Resource:
    declared = declared_of(row["declared"])
    return Resource(
        *(row["number"], row["resource_id"], declared, row["created_at_ns"], row["updated_at_ns"]),
        *(row["bound_host"], row["dedicated_to"]),
    )
