"""Rules of shares, quotas, and what has not ended of an account, which quotas count."""

import sqlalchemy as sa
from alembic import op

revision = "0054_shares_and_quotas"
down_revision = "0053_waiting_clusters"
branch_labels = None
depends_on = None

_LIVING = sa.text("ended_at_ns IS NULL")


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "share_rules",
        sa.Column("node_id", sa.String(64), nullable=False),
        sa.Column("guarantee", sa.BigInteger(), nullable=False),
        sa.Column("ceiling", sa.BigInteger(), nullable=False),
        sa.Column("weight", sa.BigInteger(), nullable=False),
        sa.Column("is_borrowing", sa.Boolean(), nullable=False),
        sa.Column("may_use_urgent", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("node_id", name=op.f("pk_share_rules")),
    )
    op.create_table(
        "quotas",
        sa.Column("node_id", sa.String(64), nullable=False),
        sa.Column("item", sa.String(20), nullable=False),
        sa.Column("tier", sa.String(64), nullable=False),
        sa.Column("level", sa.String(20), nullable=False),
        sa.Column("limit", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "item", "tier", name=op.f("pk_quotas")),
    )
    read = ["account_id", "phase", "cluster_id", "tier", "price_per_hour", "ended_at_ns"]
    for name, table, columns in (
        ("ix_clusters_living", "clusters", read),
        ("ix_jobs_living_of", "jobs", ["account_id", "state"]),
    ):
        op.create_index(name, table, columns, sqlite_where=_LIVING, postgresql_where=_LIVING)
