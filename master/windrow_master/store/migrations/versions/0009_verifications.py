"""Results of challenges of cards, and when the next one is due."""

import sqlalchemy as sa
from alembic import op

revision = "0009_verifications"
down_revision = "0008_gpu_claims"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; every host is due at once."""
    op.create_table(
        "gpu_verifications",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("verification_id", sa.String(length=64), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("gpu_uuid", sa.String(length=128), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("device", sa.String(length=128), nullable=False),
        sa.Column("driver", sa.String(length=128), nullable=False),
        sa.Column("span_ns", sa.BigInteger(), nullable=True),
        sa.Column("pace", sa.String(length=20), nullable=True),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_gpu_verifications_host_id_hosts")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_gpu_verifications")),
    )
    card = ["host_id", "gpu_uuid", "number"]
    op.create_index("ix_gpu_verifications_card", "gpu_verifications", card, unique=False)
    op.add_column("hosts", sa.Column("verify_due_ns", sa.BigInteger(), nullable=True))
    op.add_column("hosts", sa.Column("verify_tries", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_column("hosts", "verify_tries")
    op.drop_column("hosts", "verify_due_ns")
    op.drop_table("gpu_verifications")
