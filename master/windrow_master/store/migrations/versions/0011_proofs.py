"""Results of the Master's own test rentals of hosts, when each host is due next, and since when it is listed."""

import sqlalchemy as sa
from alembic import op

revision = "0011_proofs"
down_revision = "0010_slices"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; every host is due for its first proof."""
    op.create_table(
        "host_proofs",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("proof_id", sa.String(length=64), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("cluster_id", sa.String(length=64), nullable=True),
        sa.Column("ended_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.String(length=20), nullable=True),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("steps", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_host_proofs_host_id_hosts")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_host_proofs")),
        sa.UniqueConstraint("proof_id", name=op.f("uq_host_proofs_proof_id")),
    )
    op.create_index("ix_host_proofs_host", "host_proofs", ["host_id", "number"], unique=False)
    op.add_column("hosts", sa.Column("listed_at_ns", sa.BigInteger(), nullable=True))
    op.add_column("hosts", sa.Column("proof", sa.JSON(), nullable=True))
    op.add_column("hosts", sa.Column("proof_due_ns", sa.BigInteger(), nullable=True))
    op.add_column("hosts", sa.Column("proof_tries", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Lead back to the revision before."""
    for name in ("proof_tries", "proof_due_ns", "proof", "listed_at_ns"):
        op.drop_column("hosts", name)
    op.drop_table("host_proofs")
