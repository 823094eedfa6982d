"""Reads and writes shares of objects; rows are values of identity/object_shares.py."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, func, insert, or_, select

from windrow_master.identity.object_shares import Level, ObjectKind, ObjectShare, ReceiverKind
from windrow_master.identity.tables import object_shares as table
from windrow_master.store.prepared import page
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId


class ObjectShareRepository(Repository):
    """Shares of objects."""

    def add(self, share: ObjectShare) -> None:
        """Add one, in place of one of the same object with the same receiver."""
        is_same = (
            (table.c.account_id == share.account_id)
            & (table.c.object_kind == share.object_kind.value)
            & (table.c.object_id == share.object_id)
            & (table.c.receiver_id == share.receiver_id)
        )
        self._connection.execute(delete(table).where(is_same))
        self._connection.execute(insert(table).values(**asdict(share)))

    def get(self, share_id: str) -> ObjectShare | None:
        """One share, an expired one too."""
        row = self._connection.execute(select(table).where(table.c.id == share_id)).mappings().one_or_none()
        return None if row is None else _share(row)

    def remove(self, share_id: str) -> None:
        """Remove one."""
        self._connection.execute(delete(table).where(table.c.id == share_id))

    def withdraw_from(self, receiver_id: str, account_ids: Sequence[AccountId]) -> None:
        """Remove those of these projects with this receiver."""
        is_its = (table.c.receiver_id == receiver_id) & table.c.account_id.in_(account_ids)
        self._connection.execute(delete(table).where(is_its))

    def withdraw_of(self, token_id: str) -> None:
        """Remove those that this token asked for."""
        self._connection.execute(delete(table).where(table.c.token_id == token_id))

    def forget_object(self, account_id: AccountId, kind: ObjectKind, object_id: str) -> None:
        """Remove those of an object that is gone."""
        is_its = (table.c.account_id == account_id) & (table.c.object_kind == kind.value)
        self._connection.execute(delete(table).where(is_its & (table.c.object_id == object_id)))

    def forget_party(self, party_id: str) -> None:
        """Remove those that this project gave, or this project or user received."""
        is_its = (table.c.account_id == party_id) | (table.c.receiver_id == party_id)
        self._connection.execute(delete(table).where(is_its))

    def forget_expired(self, account_id: AccountId, now_ns: int) -> None:
        """Remove those of this project that have expired."""
        is_its = (table.c.account_id == account_id) & (table.c.until_ns <= now_ns)
        self._connection.execute(delete(table).where(is_its))

    def count(self, account_id: AccountId) -> int:
        """How many this project has, expired ones too."""
        query = select(func.count()).select_from(table).where(table.c.account_id == account_id)
        return int(self._connection.scalar(query) or 0)

    def of_object(
        self, kind: ObjectKind, object_id: str, receivers: Sequence[str], now_ns: int
    ) -> Sequence[ObjectShare]:
        """Those of an object with any of these receivers that have not expired. object_id: of a template the id of the
        share."""
        key = table.c.id if kind is ObjectKind.TEMPLATE else table.c.object_id
        is_its = (table.c.object_kind == kind.value) & (key == object_id)
        query = select(table).where(is_its, table.c.receiver_id.in_(receivers), _is_open(now_ns))
        return [_share(row) for row in self._connection.execute(query).mappings()]

    def given(
        self, account_id: AccountId, object_id: str | None, now_ns: int, after: str, limit: int
    ) -> Sequence[ObjectShare]:
        """Those of a project's objects, or of one of them, that have not expired, the oldest first."""
        query = select(table).where(table.c.account_id == account_id, _is_open(now_ns))
        return self._page(query if object_id is None else query.where(table.c.object_id == object_id), after, limit)

    def received(
        self, receivers: Sequence[str], object_id: str | None, now_ns: int, after: str, limit: int
    ) -> Sequence[ObjectShare]:
        """Those with any of these receivers, or of one object, that have not expired, the oldest first."""
        is_theirs = or_(*(table.c.receiver_id == one for one in receivers))
        query = select(table).where(is_theirs, _is_open(now_ns))
        return self._page(query if object_id is None else query.where(table.c.object_id == object_id), after, limit)

    def _page(self, query: Select[Any], after: str, limit: int) -> Sequence[ObjectShare]:
        return page(self._connection, query.where(table.c.id > after).order_by(table.c.id), _share, limit)


def _is_open(now_ns: int) -> ColumnElement[bool]:
    return table.c.until_ns.is_(None) | (table.c.until_ns > now_ns)


def _share(row: Mapping[Any, Any]) -> ObjectShare:
    kinds = {
        "object_kind": ObjectKind(row["object_kind"]),
        "receiver_kind": ReceiverKind(row["receiver_kind"]),
        "level": Level(row["level"]),
    }
    return ObjectShare(**dict(row) | kinds)
