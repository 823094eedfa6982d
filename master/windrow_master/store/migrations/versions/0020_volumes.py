"""Volumes, and which clusters have them."""

import sqlalchemy as sa
from alembic import op

revision = "0020_volumes"
down_revision = "0019_login_of_jobs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "volumes",
        sa.Column("volume_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("max_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.Column("saved_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("volume_id", name=op.f("pk_volumes")),
    )
    op.create_index("uq_volumes_name", "volumes", ["account_id", "name"], unique=True)
    op.create_table(
        "volume_uses",
        sa.Column("volume_id", sa.String(length=64), nullable=False),
        sa.Column("cluster_id", sa.String(length=64), nullable=False),
        sa.Column("writes", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("volume_id", "cluster_id", name=op.f("pk_volume_uses")),
    )


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_table("volume_uses")
    op.drop_index("uq_volumes_name", table_name="volumes")
    op.drop_table("volumes")
