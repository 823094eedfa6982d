"""Clusters over several hosts: which member a workload is, where the others reach it, and whether it was replaced."""

import sqlalchemy as sa
from alembic import op

revision = "0015_members"
down_revision = "0014_jobs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; every cluster had one member until now, of rank 0."""
    with op.batch_alter_table("clusters") as clusters:
        clusters.add_column(sa.Column("first_port", sa.BigInteger(), nullable=True))
        clusters.add_column(sa.Column("restarts", sa.BigInteger(), nullable=False, server_default="0"))
        clusters.add_column(sa.Column("secret", sa.String(length=128), nullable=True))
    with op.batch_alter_table("workloads") as workloads:
        workloads.add_column(sa.Column("rank", sa.BigInteger(), nullable=False, server_default="0"))
        workloads.add_column(sa.Column("address", sa.String(length=64), nullable=True))
        workloads.add_column(sa.Column("start_command", sa.String(length=64), nullable=True))
        workloads.add_column(sa.Column("replaced_at_ns", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Lead back to the revision before."""
    with op.batch_alter_table("workloads") as workloads:
        for column in ("replaced_at_ns", "start_command", "address", "rank"):
            workloads.drop_column(column)
    with op.batch_alter_table("clusters") as clusters:
        for column in ("secret", "restarts", "first_port"):
            clusters.drop_column(column)
