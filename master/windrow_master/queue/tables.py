"""The queue's tables: rules of shares, and quotas."""

from typing import Final

from sqlalchemy import Boolean, Column, ColumnElement, String, Table, bindparam, select, true

from windrow_master.identity.tables import accounts
from windrow_master.queue.quota import NodeLevel
from windrow_master.store.schema import Whole, metadata

share_rules = Table(
    "share_rules",
    metadata,
    Column("node_id", String(64), primary_key=True),
    Column("guarantee", Whole, nullable=False),
    Column("ceiling", Whole, nullable=False),
    Column("weight", Whole, nullable=False),
    Column("is_borrowing", Boolean, nullable=False),
    Column("may_use_urgent", Boolean, nullable=False),
)

quotas = Table(
    "quotas",
    metadata,
    Column("node_id", String(64), primary_key=True),
    Column("item", String(20), primary_key=True),
    Column("tier", String(64), primary_key=True),
    Column("level", String(20), nullable=False),
    Column("limit", Whole, nullable=False),
)

LEVELS: Final = (NodeLevel.INSTALLATION, NodeLevel.ORGANISATION, NodeLevel.PROJECT)
"""The levels that have rules and quotas."""


def is_below(rows: Table, level: NodeLevel) -> ColumnElement[bool]:
    """The condition that the account of a row is below a node of this level, whose id is the parameter `node`."""
    account_id = rows.c.account_id
    if level is NodeLevel.INSTALLATION:
        return true()
    if level is NodeLevel.ORGANISATION:
        return account_id.in_(select(accounts.c.id).where(accounts.c.organisation_id == bindparam("node")))
    return account_id == bindparam("node")
