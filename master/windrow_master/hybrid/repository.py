"""Reads and writes registered resources and kept routes."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import delete, func, insert, select, update

from windrow_master.hybrid.kept import KeptRoute, forecast_json, parse_forecast
from windrow_master.hybrid.model import OUT_OF_SERVICE, Bound, Declared, Resource, declared_of, kept
from windrow_master.hybrid.tables import resources as table
from windrow_master.hybrid.tables import routes
from windrow_master.store.prepared import ByKey, Found, flat, page, readable
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId, HostId

_BINDING: Final = select(table.c.bound_host, table.c.dedicated_to, table.c.declared)
_BOUND: Final = Found(_BINDING.where(table.c.bound_host.is_not(None)), lambda row: _bound(row), attrgetter("host_id"))
_BOUND_OF: Final = ByKey(_BINDING, table.c.bound_host, lambda row: _bound(row), attrgetter("host_id"))


def _bound(row: Mapping[Any, Any]) -> Bound:
    return Bound(row["bound_host"], _most(row["declared"]), row["dedicated_to"])


def _most(declared: Any) -> int:
    """The clusters at once on its host; none while it is declared out of service. Where a declaration cannot be read,
    none: a limit that is not known is no reason to let everybody in."""
    if not isinstance(declared, Mapping) or declared.get("status") in OUT_OF_SERVICE:
        return 0
    most = declared.get("max_parallel_jobs", 1)
    return most if isinstance(most, int) else 0


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

    def bound(self, hosts: Sequence[HostId] | None = None) -> Sequence[Bound]:
        """The hosts that resources are bound to; of these hosts, where they are given."""
        if hosts is None:
            return _BOUND.readable(self._connection)
        return [one for found in _BOUND_OF.some(self._connection, hosts).values() for one in found]

    def all(self) -> Sequence[Resource]:
        """Every one, in the order of their numbers."""
        return readable(self._connection, select(table).order_by(table.c.number), _resource)

    def page(self, after: int, limit: int) -> Sequence[Resource]:
        """At most so many in the order of their numbers, from the one after this number."""
        query = select(table).where(table.c.number > after).order_by(table.c.number)
        return page(self._connection, query, _resource, limit)

    def count(self) -> int:
        """The number of resources."""
        return int(self._connection.scalar(select(func.count()).select_from(table)) or 0)

    def remove(self, resource: Resource) -> None:
        """Forget one."""
        self._connection.execute(delete(table).where(table.c.number == resource.number))


class RouteRepository(Repository):
    """The routes that are kept, as records (kept.py)."""

    def add(self, kept_route: KeptRoute, record: bytes, most: int) -> None:
        """Add one whose id is new; of the account's older ones only so many stay that it has `most`. Those that no job
        followed go first."""
        account_id = kept_route.account_id
        row = {**flat(kept_route), "taken": forecast_json(kept_route.taken), "record": record}
        self._connection.execute(insert(routes).values(row))
        stays = routes.c.job_id.is_not(None) | (routes.c.route_id == kept_route.route_id)
        own = select(routes.c.route_id).where(routes.c.account_id == account_id)
        gone = own.order_by(stays.desc(), routes.c.route_id.desc()).offset(most).limit(most)
        ids = self._connection.scalars(gone).all()
        if ids:
            self._connection.execute(delete(routes).where(routes.c.route_id.in_(ids)))

    def follow(self, kept_route: KeptRoute) -> None:
        """Write the job that follows one, and the forecast of the place that it took."""
        query = update(routes).where(routes.c.route_id == kept_route.route_id)
        values = {"job_id": kept_route.job_id, "taken": forecast_json(kept_route.taken)}
        self._connection.execute(query.values(values))

    def get(self, route_id: str) -> KeptRoute | None:
        """The one of this id."""
        row = self._connection.execute(_KEPT.where(routes.c.route_id == route_id)).one_or_none()
        return None if row is None else _kept_route(row._mapping)

    def record(self, route_id: str) -> bytes:
        """The record of one that is there."""
        return bytes(
            self._connection.execute(select(routes.c.record).where(routes.c.route_id == route_id)).scalar_one()
        )

    def page(self, account_id: AccountId, before: str | None, limit: int) -> Sequence[KeptRoute]:
        """Those of an account, the latest first; from the one after `before`."""
        query = _KEPT.where(routes.c.account_id == account_id).order_by(routes.c.route_id.desc())
        if before is not None:
            query = query.where(routes.c.route_id < before)
        return page(self._connection, query, _kept_route, limit)


_KEPT: Final = select(*(one for one in routes.c if one.name != "record"))


def _kept_route(row: Mapping[Any, Any]) -> KeptRoute:
    return KeptRoute(**{**row, "account_id": AccountId(row["account_id"]), "taken": parse_forecast(row["taken"])})


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
