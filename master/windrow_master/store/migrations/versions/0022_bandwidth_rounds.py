"""Bandwidth measurements of hosts, round by round and region by region."""

import sqlalchemy as sa
from alembic import op

revision = "0022_bandwidth_rounds"
down_revision = "0021_stopped_clusters"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; of what was measured until now only the newest is known."""
    op.create_table(
        "bandwidth_rounds",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("nonce", sa.String(length=64), nullable=False),
        sa.Column("region", sa.String(length=128), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("up_bps", sa.BigInteger(), nullable=False),
        sa.Column("down_bps", sa.BigInteger(), nullable=False),
        sa.Column("relays", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_bandwidth_rounds_host_id_hosts")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_bandwidth_rounds")),
    )
    one = ["host_id", "nonce", "region"]
    op.create_index("ix_bandwidth_rounds_round", "bandwidth_rounds", one, unique=True)


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_table("bandwidth_rounds")
