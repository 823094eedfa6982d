"""Named secrets of projects."""

import sqlalchemy as sa
from alembic import op

revision = "0037_secrets"
down_revision = "0036_people"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "secrets",
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(length=128), nullable=False),
        sa.Column("updated_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("updated_by", sa.String(length=128), nullable=False),
        sa.Column("last_used_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("last_used_by", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("account_id", "name", name=op.f("pk_secrets")),
    )
