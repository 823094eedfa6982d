"""Reads and writes templates of clusters."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from windrow_master.clusters.model import Template
from windrow_master.store.clusters_repository import request_of, request_values
from windrow_master.store.tables_clusters import templates
from windrow_proto.ids import AccountId


class TemplateRepository:
    """The templates."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def save(self, template: Template) -> None:
        """Write one, in place of one of the same account and name."""
        self.delete(template.account_id, template.name)
        self._connection.execute(
            insert(templates).values(
                account_id=template.account_id,
                name=template.name,
                request=request_values(template.request),
                saved_at_ns=template.saved_at_ns,
            )
        )

    def of_account(self, account_id: AccountId) -> Sequence[Template]:
        """All of an account, by name."""
        query = select(templates).where(templates.c.account_id == account_id).order_by(templates.c.name)
        return [
            Template(AccountId(row.account_id), row.name, request_of(row.request), row.saved_at_ns)
            for row in self._connection.execute(query)
        ]

    def delete(self, account_id: AccountId, name: str) -> bool:
        """Whether there was one."""
        own = (templates.c.account_id == account_id) & (templates.c.name == name)
        return self._connection.execute(delete(templates).where(own)).rowcount > 0
