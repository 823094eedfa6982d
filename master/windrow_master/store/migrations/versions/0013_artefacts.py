"""Owners of artefacts."""

import sqlalchemy as sa
from alembic import op

revision = "0013_artefacts"
down_revision = "0012_reliability"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; there were none."""
    op.create_table(
        "artefacts",
        sa.Column("artefact_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("owner_kind", sa.String(length=20), nullable=False),
        sa.Column("owner_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("object_key", sa.Text(), nullable=False),
        sa.Column("wrapped_key", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("artefact_id", name=op.f("pk_artefacts")),
        sa.UniqueConstraint("object_key", name=op.f("uq_artefacts_object_key")),
    )
    op.create_index(op.f("ix_artefacts_account_id"), "artefacts", ["account_id"])
    op.create_index(op.f("ix_artefacts_expires_at_ns"), "artefacts", ["expires_at_ns"])
    op.create_index("uq_artefacts_owner_name", "artefacts", ["owner_kind", "owner_id", "name"], unique=True)


def downgrade() -> None:
    """Lead back to the revision before; the objects stay where they are."""
    op.drop_table("artefacts")
