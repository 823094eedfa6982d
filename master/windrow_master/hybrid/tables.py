"""The tables of registered resources and of kept routes."""

from sqlalchemy import JSON, Column, Float, Index, LargeBinary, String, Table

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
    Column("dedicated_to", String(64)),
    sqlite_autoincrement=True,  # the number of a deleted one is not given again
)

routes = Table(
    "routes",
    metadata,
    Column("route_id", String(64), primary_key=True),
    Column("account_id", String(64), nullable=False),
    Column("at_ns", Whole, nullable=False),
    Column("record", LargeBinary, nullable=False),
    Column("hours", Float),
    Column("chosen", String(512)),
    Column("taken", JSON(none_as_null=True)),
    Column("job_id", String(64)),
    Index("ix_routes_account_id_route_id", "account_id", "route_id"),
)
