"""Bytes that a job's attempts keep: they count against the quota of its account."""

import sqlalchemy as sa
from alembic import op

revision = "0029_job_files"
down_revision = "0028_retention"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("jobs", sa.Column("kept_bytes", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_column("jobs", "kept_bytes")
