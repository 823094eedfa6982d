"""Whose spending limits a cluster counts for that waits for its place."""

import sqlalchemy as sa
from alembic import op

revision = "0053_waiting_clusters"
down_revision = "0052_job_queue"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("clusters", sa.Column("spenders", sa.JSON(), nullable=True))
