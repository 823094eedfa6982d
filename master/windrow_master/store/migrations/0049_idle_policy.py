"""For how long new machines of a project may be unused."""

import sqlalchemy as sa
from alembic import op

revision = "0049_idle_policy"
down_revision = "0048_maintenance"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("spending_limits", sa.Column("idle_ns", sa.BigInteger(), nullable=True))
