"""The clusters' tables: clusters and the workloads they consist of, and what services carried."""

from sqlalchemy import JSON, Boolean, Column, ForeignKey, Index, LargeBinary, String, Table, Text

from windrow_master.store.schema import Whole, metadata

clusters = Table(
    "clusters",
    metadata,
    Column("cluster_id", String(64), primary_key=True),
    Column("account_id", String(64), nullable=False, index=True),
    Column("name", String(128), nullable=False),
    Column("request", JSON, nullable=False),
    Column("phase", String(20), nullable=False, index=True),
    Column("rental_id", String(64), nullable=False),
    Column("tier", String(64), nullable=False),
    Column("price_per_hour", Whole, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("reason", Text, nullable=False),
    Column("steps", JSON, nullable=False),
    Column("started_at_ns", Whole),
    Column("ended_at_ns", Whole),
    Column("version", Whole, nullable=False),
    Column("first_port", Whole),
    Column("restarts", Whole, nullable=False, server_default="0"),
    Column("secret", String(128)),
    Column("network", String(20)),
    Column("network_reason", Text),
    Column("needs_login", Boolean, nullable=False, server_default="0"),
    Column("request_key", String(200)),
    Column("request_sha256", LargeBinary(32), nullable=False),
    Column("sealed", LargeBinary),
    Column("spenders", JSON),
    Index("uq_clusters_request_key", "account_id", "request_key", unique=True),
)

decisions = Table(
    "decisions",
    metadata,
    Column("cluster_id", String(64), primary_key=True),
    Column("at_ns", Whole, primary_key=True),
    Column("engine", Whole, nullable=False),
    Column("record", LargeBinary, nullable=False),
)

workloads = Table(
    "workloads",
    metadata,
    Column("workload_id", String(64), primary_key=True),
    Column("cluster_id", String(64), ForeignKey("clusters.cluster_id"), nullable=False, index=True),
    Column("host_id", String(64), nullable=False),
    Column("host_name", String(128), nullable=False),
    Column("runtime", String(20), nullable=False),
    Column("image", Text, nullable=False),
    Column("slots", JSON, nullable=False),
    Column("cpus", Whole, nullable=False),
    Column("memory_bytes", Whole, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("phase", String(20), nullable=False),
    Column("detail", Text, nullable=False),
    Column("exit_code", Whole),
    Column("running_ns", Whole, nullable=False),
    Column("ports", JSON, nullable=False),
    Column("create_command", String(64)),
    Column("delete_command", String(64)),
    Column("lost_since_ns", Whole),
    Column("ended_at_ns", Whole),
    Column("is_released", Boolean, nullable=False),
    Column("rank", Whole, nullable=False, server_default="0"),
    Column("address", String(64)),
    Column("start_command", String(64)),
    Column("replaced_at_ns", Whole),
    Column("is_past", Boolean, nullable=False, server_default="0"),
    Column("results", JSON(none_as_null=True)),
)

service_traffic = Table(
    "service_traffic",
    metadata,
    Column("cluster_id", String(64), ForeignKey("clusters.cluster_id"), primary_key=True),
    Column("connections", Whole, nullable=False),
    Column("bytes_in", Whole, nullable=False),
    Column("bytes_out", Whole, nullable=False),
)
templates = Table(
    "templates",
    metadata,
    Column("account_id", String(64), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("request", JSON, nullable=False),
    Column("saved_at_ns", Whole, nullable=False),
    Column("sealed", LargeBinary),
)
volume_uses = Table(
    "volume_uses",
    metadata,
    Column("volume_id", String(64), primary_key=True),
    Column("cluster_id", String(64), primary_key=True, index=True),
    Column("writes", Boolean, nullable=False),
)
# What a version before wrote, with its values in clear; records/earlier_repository.py seals it at the start.
Index(
    "ix_clusters_plain",
    clusters.c.cluster_id,
    sqlite_where=clusters.c.sealed.is_(None),
    postgresql_where=clusters.c.sealed.is_(None),
)
# What has not ended, by account: what quotas count. With all that they read, or SQLite would look through all clusters
# that an account ever had.
Index(
    "ix_clusters_living",
    clusters.c.account_id,
    clusters.c.phase,
    clusters.c.cluster_id,
    clusters.c.tier,
    clusters.c.price_per_hour,
    clusters.c.ended_at_ns,
    sqlite_where=clusters.c.ended_at_ns.is_(None),
    postgresql_where=clusters.c.ended_at_ns.is_(None),
)
# What still holds slots, in one small index: everything that is asked often asks for these only.
Index(
    "ix_workloads_held",
    workloads.c.host_id,
    sqlite_where=workloads.c.is_released.is_(False),
    postgresql_where=workloads.c.is_released.is_(False),
)
