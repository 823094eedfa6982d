"""The tables of backends, who may buy there, purchases and their book of costs."""

from sqlalchemy import JSON, Column, Index, LargeBinary, String, Table

from windrow_master.store.schema import Serial, Whole, metadata

backends = Table(
    "backends",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("settings", JSON, nullable=False),
    Column("sealed", LargeBinary),
    Column("caps", JSON, nullable=False),
    Column("margin_percent", Whole, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("checked_at_ns", Whole),
    Column("findings", JSON, nullable=False),
    Column("swept_at_ns", Whole),
)

purchases = Table(
    "purchases",
    metadata,
    Column("purchase_id", String(64), primary_key=True),
    Column("backend", String(64), nullable=False),
    Column("account_id", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("machine_id", String(128), nullable=False),
    Column("host_id", String(64), index=True),
    # Set only while it lives, so that looks and placements read nothing that grows with the past.
    Column("living_at", String(64), index=True),
    Column("living_host", String(64), index=True),
    Column("kept_for", String(64), index=True),
    Column("record", JSON, nullable=False),
    Index("ix_purchases_account_id_purchase_id", "account_id", "purchase_id"),
)

purchase_costs = Table(
    "purchase_costs",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("purchase_id", String(64), nullable=False, index=True),
    Column("backend", String(64), nullable=False),
    Column("account_id", String(64), nullable=False),
    Column("at_ns", Whole, nullable=False),
    Column("from_ns", Whole, nullable=False),
    Column("to_ns", Whole, nullable=False),
    Column("billed_s", Whole, nullable=False),
    Column("idle_s", Whole, nullable=False),
    Column("cost", Whole, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("paid", Whole, nullable=False),
    Index("ix_purchase_costs_backend_at_ns", "backend", "at_ns"),
    sqlite_autoincrement=True,
)

buyers = Table(
    "backend_buyers",
    metadata,
    Column("backend", String(64), primary_key=True),
    Column("account_id", String(64), primary_key=True, index=True),
    Column("per_day", Whole),
    Column("in_all", Whole),
    Column("created_at_ns", Whole, nullable=False),
)
