"""The table of named secrets."""

from sqlalchemy import Column, LargeBinary, String, Table

from windrow_master.store.schema import Whole, metadata

secrets = Table(
    "secrets",
    metadata,
    Column("account_id", String(64), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("wrapped_key", LargeBinary, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("created_by", String(128), nullable=False),
    Column("updated_at_ns", Whole, nullable=False),
    Column("updated_by", String(128), nullable=False),
    Column("last_used_at_ns", Whole),
    Column("last_used_by", String(64)),
)
