"""Reads and writes templates of clusters."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import delete, insert, select

from windrow_master.clusters.model import ClusterRequest, Template
from windrow_master.clusters.repository import request_values
from windrow_master.clusters.tables import templates
from windrow_master.spec import restored
from windrow_master.store.prepared import readable
from windrow_master.store.repository import Repository, with_text
from windrow_proto.ids import AccountId

_SELECTED: Final = with_text(templates, "request")


class TemplateRepository(Repository):
    """The templates."""

    def save(self, template: Template) -> None:
        """Write one, in place of one of the same account and name."""
        self.delete(template.account_id, template.name)
        self._connection.execute(
            insert(templates).values(
                account_id=template.account_id,
                name=template.name,
                request=request_values(template.request),
                saved_at_ns=template.saved_at_ns,
                sealed=template.sealed,
            )
        )

    def of_account(self, account_id: AccountId) -> Sequence[Template]:
        """All of an account, by name."""
        query = select(*_SELECTED).where(templates.c.account_id == account_id).order_by(templates.c.name)
        return readable(self._connection, query, _template)

    def get(self, account_id: AccountId, name: str) -> Template | None:
        """One of an account."""
        own = (templates.c.account_id == account_id) & (templates.c.name == name)
        row = self._connection.execute(select(*_SELECTED).where(own)).first()
        return None if row is None else _template(row._mapping)

    def delete(self, account_id: AccountId, name: str) -> bool:
        """Return whether there was one."""
        own = (templates.c.account_id == account_id) & (templates.c.name == name)
        return self._connection.execute(delete(templates).where(own)).rowcount > 0

    def forget_account(self, account_id: AccountId) -> None:
        """Delete all of an account."""
        self._connection.execute(delete(templates).where(templates.c.account_id == account_id))


def _template(row: Mapping[Any, Any]) -> Template:
    account_id, sealed = AccountId(row["account_id"]), bytes(row["sealed"] or b"")
    return Template(account_id, row["name"], restored(ClusterRequest, row["request"]), row["saved_at_ns"], sealed)
