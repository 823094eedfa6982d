"""Spending limits of projects, tokens and service accounts, and whose tokens rentals and jobs count for."""

import sqlalchemy as sa
from alembic import op

revision = "0041_spending_limits"
down_revision = "0040_device_and_service"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "spending_limits",
        sa.Column("spender_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("max_hourly_cost", sa.BigInteger(), nullable=True),
        sa.Column("max_monthly_cost", sa.BigInteger(), nullable=True),
        sa.Column("max_total_cost", sa.BigInteger(), nullable=True),
        sa.Column("max_leases", sa.BigInteger(), nullable=True),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("month_spent", sa.BigInteger(), nullable=False),
        sa.Column("set_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("set_by", sa.String(length=128), nullable=False),
        sa.PrimaryKeyConstraint("spender_id", name=op.f("pk_spending_limits")),
    )
    op.create_index(op.f("ix_spending_limits_account_id"), "spending_limits", ["account_id"])
    op.add_column("rentals", sa.Column("spenders", sa.JSON(), nullable=True))
    op.add_column("jobs", sa.Column("spenders", sa.JSON(), nullable=True))
