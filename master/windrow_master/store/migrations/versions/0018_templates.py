"""Requests for clusters that an account keeps by name."""

import sqlalchemy as sa
from alembic import op

revision = "0018_templates"
down_revision = "0017_networks"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "templates",
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("saved_at_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "name", name=op.f("pk_templates")),
    )


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_table("templates")
