"""Reads and writes named secrets."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, insert, select, update

from windrow_master.secrets.model import Secret, SecretKind
from windrow_master.secrets.tables import secrets
from windrow_master.store.prepared import flat
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId


class SecretRepository(Repository):
    """The secrets."""

    def save(self, secret: Secret) -> None:
        """Write one, in place of one of the same project and name."""
        self.delete(secret.account_id, secret.name)
        self._connection.execute(insert(secrets).values(**flat(secret) | {"kind": secret.kind.value}))

    def of_account(self, account_id: AccountId) -> Sequence[Secret]:
        """All of a project, by name."""
        query = select(secrets).where(secrets.c.account_id == account_id).order_by(secrets.c.name)
        return [_secret(row._mapping) for row in self._connection.execute(query)]

    def get(self, account_id: AccountId, name: str) -> Secret | None:
        """One of a project."""
        row = self._connection.execute(select(secrets).where(*_own(account_id, name))).first()
        return None if row is None else _secret(row._mapping)

    def used(self, account_id: AccountId, name: str, at_ns: int, by: str) -> None:
        """Write down its last use."""
        change = update(secrets).where(*_own(account_id, name)).values(last_used_at_ns=at_ns, last_used_by=by)
        self._connection.execute(change)

    def delete(self, account_id: AccountId, name: str) -> bool:
        """Return whether there was one."""
        return self._connection.execute(delete(secrets).where(*_own(account_id, name))).rowcount > 0

    def forget_account(self, account_id: AccountId) -> None:
        """Delete all of a project."""
        self._connection.execute(delete(secrets).where(secrets.c.account_id == account_id))


def _own(account_id: AccountId, name: str) -> tuple[Any, Any]:
    return secrets.c.account_id == account_id, secrets.c.name == name


def _secret(row: Mapping[Any, Any]) -> Secret:
    values = {column.key: row[column.key] for column in secrets.c}
    sealed, wrapped_key = bytes(row["sealed"]), bytes(row["wrapped_key"])
    return Secret(**values | {"kind": SecretKind(row["kind"]), "sealed": sealed, "wrapped_key": wrapped_key})
