"""Who began a long action, and may read it."""

import sqlalchemy as sa
from alembic import op

revision = "0043_begun_by"
down_revision = "0042_ends"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("operations", sa.Column("begun_by", sa.String(length=128), nullable=True))
