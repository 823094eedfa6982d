"""The table of the results of acceptance tests."""

from sqlalchemy import JSON, Column, ForeignKey, Index, String, Table, Text

from windrow_master.store.schema import Serial, Whole, metadata

host_proofs = Table(
    "host_proofs",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("proof_id", String(64), nullable=False, unique=True),
    Column("host_id", String(64), ForeignKey("hosts.host_id"), nullable=False),
    Column("at_ns", Whole, nullable=False),
    Column("actor", String(200), nullable=False),
    Column("cluster_id", String(64)),
    Column("ended_at_ns", Whole),
    Column("outcome", String(20)),
    Column("words", Text, nullable=False),
    Column("steps", JSON, nullable=False),
    Index("ix_host_proofs_host", "host_id", "number"),
)
