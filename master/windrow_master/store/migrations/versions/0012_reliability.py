"""The reliability record of each host."""

import sqlalchemy as sa
from alembic import op

revision = "0012_reliability"
down_revision = "0011_proofs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; nothing was counted of any host."""
    weights: list[sa.Column[float]] = [
        sa.Column(name, sa.Double(), nullable=False) for name in ("good", "bad", "faults", "aborts")
    ]
    op.create_table(
        "host_reliability",
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("since_ns", sa.BigInteger(), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        *weights,
        sa.Column("figure", sa.Double(), nullable=True),
        sa.Column("event_number", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_host_reliability_host_id_hosts")),
        sa.PrimaryKeyConstraint("host_id", name=op.f("pk_host_reliability")),
    )


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_table("host_reliability")
