"""Columns and indexes to delete old records, and to restore a backup."""

import sqlalchemy as sa
from alembic import op

revision = "0027_growth"
down_revision = "0026_sealed_env"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; nothing was restored before it."""
    with op.batch_alter_table("members") as members:
        members.add_column(sa.Column("restored_at_ns", sa.BigInteger()))
    with op.batch_alter_table("terms") as terms:
        terms.add_column(sa.Column("backup_at_ns", sa.BigInteger()))


def downgrade() -> None:
    """Lead back to the revision before."""
    with op.batch_alter_table("terms") as terms:
        terms.drop_column("backup_at_ns")
    with op.batch_alter_table("members") as members:
        members.drop_column("restored_at_ns")
