"""The table of registered resources."""

from sqlalchemy import JSON, Column, String, Table

from windrow_master.store.schema import Serial, Whole, metadata

resources = Table(
    "resources",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("resource_id", String(128), nullable=False, unique=True),
    Column("declared", JSON, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("updated_at_ns", Whole),
    Column("bound_host", String(64), index=True, unique=True),
    sqlite_autoincrement=True,  # the number of a deleted one is not given again
)
