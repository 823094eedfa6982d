"""Encrypts the environment values that an older release kept in clear, at the first start of this release. Afterwards
there is nothing to do, and a look at empty indexes says so.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Table, delete, select, update

from windrow_master.clusters.model import MEMBERS_SECRET, ClusterPhase, names_of, sealed_for, template_owner
from windrow_master.clusters.tables import clusters, templates
from windrow_master.fleet.tables import commands, hosts
from windrow_master.jobs.tables import jobs
from windrow_master.store.prepared import readable
from windrow_master.store.repository import Repository
from windrow_master.store.store import Store
from windrow_master.store.tables import idempotency
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import AccountId
from windrow_proto.model import CommandKind
from windrow_proto.sealed import SEAL_KEY, SealKey
from windrow_proto.sealed import seal as seal_bytes
from windrow_proto.wire_command import sealed_anew, without_secrets
from windrow_proto.wire_host import decode_inventory

ROWS: Final = 500
"""In memory at once."""
_SHOWS_VALUES: Final = re.compile(rb'"env":\s*\{\s*"')
_ENDED: Final = frozenset({ClusterPhase.DELETED.value, ClusterPhase.FINISHED.value, ClusterPhase.FAILED.value})


def seal_earlier(store: Store, key: SealKey) -> None:
    """Seal what a version before kept in clear, and leave nothing of it in the files. Before the loop."""
    if store.read_now(lambda uow: uow[EarlierRepository].is_any()):
        store.write_now(lambda uow: uow[EarlierRepository].seal(key), name="seal_earlier")
        store.rewrite()


class EarlierRepository(Repository):
    """Rows that an earlier release wrote in clear."""

    def is_any(self) -> bool:
        """Return whether a row of it is left."""
        plain = (
            select(clusters.c.cluster_id).where(clusters.c.sealed.is_(None)),
            select(jobs.c.job_id).where(jobs.c.sealed_env.is_(None)),
            select(templates.c.name).where(templates.c.sealed.is_(None)),
        )
        return any(self._connection.execute(query.limit(1)).first() is not None for query in plain)

    def seal(self, key: SealKey) -> None:
        """Seal the values of what goes on, and forget those of what has ended. A row that cannot be read stays as it
        is, and operators are told."""
        _each(self._connection, clusters, "cluster_id", clusters.c.sealed.is_(None), lambda row: _cluster(key, row))
        _each(self._connection, jobs, "job_id", jobs.c.sealed_env.is_(None), lambda row: _job(key, row))
        plain = select(templates).where(templates.c.sealed.is_(None))
        for row, changed in readable(self._connection, plain, lambda row: (row, _template(key, row))):
            own = (templates.c.account_id == row["account_id"]) & (templates.c.name == row["name"])
            self._connection.execute(update(templates).where(own).values(**changed))
        for column in (clusters.c.sealed, jobs.c.sealed_env, templates.c.sealed):
            self._connection.execute(update(column.table).where(column.is_(None)).values({column: b""}))
        keys = {
            row.host_id: _key_of(row.inventory)
            for row in self._connection.execute(select(hosts.c.host_id, hosts.c.inventory))
        }
        creates = commands.c.kind == int(CommandKind.CREATE)
        _each(self._connection, commands, "command_id", creates, lambda row: _command(row, keys.get(row["host_id"])))
        _answers(self._connection, key)


def _each(
    connection: Connection, table: Table, name: str, wanted: Any, change: Callable[[Mapping[Any, Any]], dict[str, Any]]
) -> None:
    column = table.c[name]
    for some in _pages(connection, column, wanted):
        query = select(table).where(wanted, some)
        for key, changed in readable(connection, query, lambda row: (row[name], change(row))):
            if changed:
                connection.execute(update(table).where(column == key).values(**changed))


def _pages(connection: Connection, column: Column[str], wanted: Any) -> Iterator[ColumnElement[bool]]:
    last = ""
    query = select(column).where(wanted).order_by(column).limit(ROWS)
    while keys := connection.execute(query.where(column > last)).scalars().all():
        last = keys[-1]
        yield column.between(keys[0], last)


def _cluster(key: SealKey, row: Mapping[Any, Any]) -> dict[str, Any]:
    values = {**row["request"]["env"], **({MEMBERS_SECRET: row["secret"]} if row["secret"] else {})}
    sealed = b"" if row["phase"] in _ENDED else _sealed(key, values, row["cluster_id"])
    return {
        "request": _named(row["request"]),
        "secret": None,
        "sealed": sealed,
        "request_sha256": key.digest(bytes(row["request_sha256"])),
    }


def _job(key: SealKey, row: Mapping[Any, Any]) -> dict[str, Any]:
    is_over = row["ended_at_ns"] is not None
    sealed = b"" if is_over else _sealed(key, row["request"]["env"], row["group_id"])
    return {
        "request": _named(row["request"]),
        "sealed_env": sealed,
        "request_sha256": key.digest(bytes(row["request_sha256"])),
    }


def _template(key: SealKey, row: Mapping[Any, Any]) -> dict[str, Any]:
    owner = template_owner(AccountId(row["account_id"]), row["name"])
    return {"request": _named(row["request"]), "sealed": _sealed(key, row["request"]["env"], owner)}


def _sealed(key: SealKey, values: Mapping[str, str], owner: str) -> bytes:
    """As `seal_values`, however large: an older release took more than is taken now."""
    return seal_bytes(key.public, json.dumps(dict(values)).encode(), sealed_for(owner)) if values else b""


def _named(request: Mapping[str, Any]) -> dict[str, Any]:
    return {**request, "env": names_of(request["env"])}


def _command(row: Mapping[Any, Any], host_key: str | None) -> dict[str, Any]:
    """A host that names no key is told in clear, and its row forgets that with its answer."""
    before = bytes(row["body"])
    try:
        if row["done_at_ns"] is not None:
            after = without_secrets(before)
        else:
            after = before if host_key is None else sealed_anew(before, host_key)
    except InvalidInput:
        return {}  # no command of ours: nothing in it was ever sent
    return {} if after == before else {"body": after}


def _key_of(inventory: bytes | None) -> str | None:
    try:
        key = None if inventory is None else decode_inventory(bytes(inventory)).more.get(SEAL_KEY)
    except InvalidInput:
        return None  # the host is told in clear, as without a key
    return key if isinstance(key, str) else None


def _answers(connection: Connection, key: SealKey) -> None:
    """Answers that show values are forgotten: clusters and jobs know the keys of their requests themselves."""
    named = select(idempotency.c.account_id, idempotency.c.key, idempotency.c.request_sha256, idempotency.c.body)
    for row in connection.execute(named).all():
        own = (idempotency.c.account_id == row.account_id) & (idempotency.c.key == row.key)
        if row.body is not None and _SHOWS_VALUES.search(bytes(row.body)):
            connection.execute(delete(idempotency).where(own))
        else:
            digest = key.digest(bytes(row.request_sha256))
            connection.execute(update(idempotency).where(own).values(request_sha256=digest))
