"""The number of GPUs in each state over time: sums of looks, in spans of five minutes and of an hour."""

import sqlalchemy as sa
from alembic import op

revision = "0044_fleet_counts"
down_revision = "0043_begun_by"
branch_labels = None
depends_on = None

COUNTS = ("looks", "rented", "idle", "paused", "faulty", "offline")


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "fleet_counts",
        sa.Column("span_s", sa.BigInteger(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in COUNTS),
        sa.PrimaryKeyConstraint("span_s", "at_ns", name=op.f("pk_fleet_counts")),
    )
