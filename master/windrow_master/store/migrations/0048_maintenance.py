"""Maintenance windows: the hosts of each, from when until when."""

import sqlalchemy as sa
from alembic import op

revision = "0048_maintenance"
down_revision = "0047_report_schedules"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "maintenance_windows",
        sa.Column("window_id", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("hosts", sa.JSON(), nullable=False),
        sa.Column("from_ns", sa.BigInteger(), nullable=False),
        sa.Column("until_ns", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_by", sa.String(length=200), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("started_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("ended_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("drained", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("window_id", name=op.f("pk_maintenance_windows")),
    )
    op.create_index(op.f("ix_maintenance_windows_ended_at_ns"), "maintenance_windows", ["ended_at_ns"])
