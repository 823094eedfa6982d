"""The registry of compute resources."""

import sqlalchemy as sa
from alembic import op

revision = "0032_resources"
down_revision = "0031_rental_budget"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "resources",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("resource_id", sa.String(length=128), nullable=False),
        sa.Column("declared", sa.JSON(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_resources")),
        sa.UniqueConstraint("resource_id", name=op.f("uq_resources_resource_id")),
        sqlite_autoincrement=True,
    )
