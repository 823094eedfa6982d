"""Tables of files that outlive a workload: volumes, and the owners of artefacts."""

from sqlalchemy import Column, Index, LargeBinary, String, Table, Text

from windrow_master.store.schema import Whole, metadata

volumes = Table(
    "volumes",
    metadata,
    Column("volume_id", String(64), primary_key=True),
    Column("account_id", String(64), nullable=False),
    Column("name", String(64), nullable=False),
    Column("max_bytes", Whole, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("version", Whole, nullable=False),
    Column("size_bytes", Whole, nullable=False),
    Column("files", Whole, nullable=False),
    Column("saved_at_ns", Whole),
    Column("problem", Text, nullable=False),
    Index("uq_volumes_name", "account_id", "name", unique=True),
)

artefacts = Table(
    "artefacts",
    metadata,
    Column("artefact_id", String(64), primary_key=True),
    Column("account_id", String(64), nullable=False, index=True),
    Column("owner_kind", String(20), nullable=False),
    Column("owner_id", String(64), nullable=False),
    Column("name", Text, nullable=False),
    Column("object_key", Text, nullable=False, unique=True),
    Column("wrapped_key", LargeBinary, nullable=False),
    Column("size_bytes", Whole, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("expires_at_ns", Whole, index=True),
    Index("uq_artefacts_owner_name", "owner_kind", "owner_id", "name", unique=True),
)
