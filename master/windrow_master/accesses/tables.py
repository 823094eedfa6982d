"""The table of the Accesses that operators drained. Gone with the row: in service."""

from sqlalchemy import Column, String, Table, Text

from windrow_master.store.schema import Whole, metadata

access_drains = Table(
    "access_drains",
    metadata,
    Column("access_id", String(128), primary_key=True),
    Column("region", String(128), nullable=False),
    Column("address", String(128), nullable=False),
    Column("drained_at_ns", Whole, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("reason", Text, nullable=False),
)
