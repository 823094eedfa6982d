"""Join tokens and members know for which purchase of a machine they were made."""

import sqlalchemy as sa
from alembic import op

revision = "0057_bought_hosts"
down_revision = "0056_purchases"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("join_tokens", sa.Column("purchase_id", sa.String(64), nullable=True))
    op.create_index(op.f("ix_join_tokens_purchase_id"), "join_tokens", ["purchase_id"])
    op.add_column("members", sa.Column("purchase_id", sa.String(64), nullable=True))
