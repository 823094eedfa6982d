"""The jobs' table."""

from sqlalchemy import JSON, Boolean, Column, Index, LargeBinary, String, Table, Text

from windrow_master.store.schema import Whole, metadata

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", String(64), primary_key=True),
    Column("account_id", String(64), nullable=False, index=True),
    Column("group_id", String(64), nullable=False, index=True),
    Column("array_index", Whole, nullable=False),
    Column("request", JSON, nullable=False),
    Column("state", String(20), nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempts", JSON, nullable=False),
    Column("verdict", String(20)),
    Column("folder_bytes", Whole),
    Column("kept_bytes", Whole),
    Column("ended_at_ns", Whole),
    Column("version", Whole, nullable=False),
    Column("request_key", String(200)),
    Column("request_sha256", LargeBinary(32), nullable=False),
    Column("login", LargeBinary),
    Column("sealed_env", LargeBinary),
    Column("spenders", JSON),
    Column("held_by", String(200)),
    Column("released_ns", Whole, nullable=False, server_default="0"),
    Column("is_top", Boolean, nullable=False, server_default="0"),
    Index("uq_jobs_request_key", "account_id", "request_key", "array_index", unique=True),
)
# What has not ended, in one small index: a Master looks at all of it when it starts.
Index(
    "ix_jobs_living",
    jobs.c.job_id,
    sqlite_where=jobs.c.ended_at_ns.is_(None),
    postgresql_where=jobs.c.ended_at_ns.is_(None),
)
# The same by account: what quotas count.
Index(
    "ix_jobs_living_of",
    jobs.c.account_id,
    jobs.c.state,
    sqlite_where=jobs.c.ended_at_ns.is_(None),
    postgresql_where=jobs.c.ended_at_ns.is_(None),
)
# Rows that an earlier release wrote with values in clear; records/earlier_repository.py seals them at the start, so
# that none are left.
Index(
    "ix_jobs_plain",
    jobs.c.job_id,
    sqlite_where=jobs.c.sealed_env.is_(None),
    postgresql_where=jobs.c.sealed_env.is_(None),
)
