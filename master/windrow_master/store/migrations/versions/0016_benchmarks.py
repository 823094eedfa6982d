"""Figures of cards that test rentals measured from inside."""

import sqlalchemy as sa
from alembic import op

revision = "0016_benchmarks"
down_revision = "0015_members"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; nothing was measured until now."""
    op.create_table(
        "gpu_benchmarks",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("host_id", sa.String(length=64), nullable=False),
        sa.Column("gpu_uuid", sa.String(length=128), nullable=False),
        sa.Column("proof_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("unit", sa.String(length=32), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["host_id"], ["hosts.host_id"], name=op.f("fk_gpu_benchmarks_host_id_hosts")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_gpu_benchmarks")),
    )
    figure = ["host_id", "gpu_uuid", "name", "number"]
    op.create_index("ix_gpu_benchmarks_figure", "gpu_benchmarks", figure, unique=False)


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_table("gpu_benchmarks")
