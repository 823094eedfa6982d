"""The table of mail that is still to be sent."""

from sqlalchemy import Column, LargeBinary, String, Table

from windrow_master.store.schema import Whole, metadata

outbox = Table(
    "outbox",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("address", String(320), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("written_at_ns", Whole, nullable=False),
    Column("tries", Whole, nullable=False),
    Column("due_at_ns", Whole, nullable=False, index=True),
)
