"""Who holds a job, since when it waits, and whether it comes first in its project."""

import sqlalchemy as sa
from alembic import op

revision = "0052_job_queue"
down_revision = "0051_host_place"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("jobs", sa.Column("held_by", sa.String(200), nullable=True))
    op.add_column("jobs", sa.Column("released_ns", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("is_top", sa.Boolean(), nullable=False, server_default="0"))
