"""Accesses that people took out of service."""

import sqlalchemy as sa
from alembic import op

revision = "0005_access_drains"
down_revision = "0004_sessions"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; every Access serves."""
    op.create_table(
        "access_drains",
        sa.Column("access_id", sa.String(length=128), nullable=False),
        sa.Column("region", sa.String(length=128), nullable=False),
        sa.Column("address", sa.String(length=128), nullable=False),
        sa.Column("drained_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("access_id", name=op.f("pk_access_drains")),
    )


def downgrade() -> None:
    """Lead back to the revision before: every Access serves again."""
    op.drop_table("access_drains")
