"""The table of what challenges of GPUs came to."""

from sqlalchemy import JSON, Column, ForeignKey, Index, String, Table, Text

from windrow_master.store.schema import Serial, Whole, metadata

gpu_verifications = Table(
    "gpu_verifications",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("verification_id", String(64), nullable=False),
    Column("host_id", String(64), ForeignKey("hosts.host_id"), nullable=False),
    Column("gpu_uuid", String(128), nullable=False),
    Column("at_ns", Whole, nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("reasons", JSON, nullable=False),
    Column("detail", Text, nullable=False),
    Column("device", String(128), nullable=False),
    Column("driver", String(128), nullable=False),
    Column("span_ns", Whole),
    Column("pace", String(20)),
    Column("evidence", JSON, nullable=False),
    Index("ix_gpu_verifications_card", "host_id", "gpu_uuid", "number"),
)
