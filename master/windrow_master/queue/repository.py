"""Reads and writes the rules of shares, and quotas."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import bindparam, delete, select

from windrow_master.queue.quota import NodeLevel, Quota, QuotaItem
from windrow_master.queue.shares import Rule
from windrow_master.queue.tables import quotas, share_rules
from windrow_master.store.prepared import Found, Upsert, flat, settable
from windrow_master.store.repository import Repository

_RULES: Final = select(share_rules)
_RULE: Final = Found(_RULES.where(share_rules.c.node_id == bindparam("wanted")), lambda row: Rule(**row))
_ALL_RULES: Final = Found(_RULES, lambda row: Rule(**row), attrgetter("node_id"))
_PUT_RULE: Final = Upsert(share_rules, ["node_id"], settable(share_rules))
# Read for every cluster that is created.
_OF_NODE: Final = Found(select(quotas).where(quotas.c.node_id == bindparam("wanted")), lambda row: _quota(row))
_ALL_QUOTAS: Final = Found(select(quotas), lambda row: _quota(row), attrgetter("node_id", "item", "tier"))
_PUT_QUOTA: Final = Upsert(quotas, ["node_id", "item", "tier"], settable(quotas))


class RuleRepository(Repository):
    """Rules of shares, one row for each node that has any."""

    def get(self, node_id: str) -> Rule | None:
        """One node's, or None."""
        return _RULE.one(self._connection, {"wanted": node_id})

    def list(self) -> Sequence[Rule]:
        """All, by their nodes."""
        return _ALL_RULES.all(self._connection)

    def save(self, rule: Rule) -> None:
        """Write one, in place of the same node's."""
        _PUT_RULE.run(self._connection, flat(rule))

    def remove(self, node_id: str) -> None:
        """Remove one node's, if there are any."""
        self._connection.execute(delete(share_rules).where(share_rules.c.node_id == node_id))


class QuotaRepository(Repository):
    """Quotas, one row for each node, item and tier."""

    def of(self, node_ids: Iterable[str]) -> list[Quota]:
        """Those of these nodes."""
        return [one for wanted in node_ids for one in _OF_NODE.all(self._connection, {"wanted": wanted})]

    def list(self) -> Sequence[Quota]:
        """All, by node, item and tier."""
        return _ALL_QUOTAS.all(self._connection)

    def save(self, quota: Quota) -> None:
        """Write one, in place of the same node's of this item and tier."""
        _PUT_QUOTA.run(self._connection, flat(quota) | {"item": quota.item.value, "level": quota.level.value})

    def remove(self, node_id: str, item: QuotaItem, tier: str) -> None:
        """Remove one, if it is there."""
        is_it = (quotas.c.node_id == node_id) & (quotas.c.item == item.value) & (quotas.c.tier == tier)
        self._connection.execute(delete(quotas).where(is_it))

    def forget(self, node_id: str) -> None:
        """Remove all of a node."""
        self._connection.execute(delete(quotas).where(quotas.c.node_id == node_id))


def _quota(row: Mapping[Any, Any]) -> Quota:
    return Quota(**dict(row) | {"item": QuotaItem(row["item"]), "level": NodeLevel(row["level"])})
