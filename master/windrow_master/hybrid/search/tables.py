"""The table of searches."""

from sqlalchemy import JSON, Column, String, Table

from windrow_master.store.schema import metadata

searches = Table(
    "searches",
    metadata,
    Column("entry_id", String(64), primary_key=True),
    Column("account_id", String(64), nullable=False, index=True),
    # Set only while its work is not over, so that a start reads nothing that grows with the past.
    Column("living_of", String(64), index=True),
    Column("record", JSON, nullable=False),
)
