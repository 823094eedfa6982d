"""Time limits of rentals, how their commands ended, and what is kept of them."""

import sqlalchemy as sa
from alembic import op

revision = "0025_rentals"
down_revision = "0024_accounts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one: of earlier work nothing is kept."""
    with op.batch_alter_table("workloads") as workloads:
        workloads.add_column(sa.Column("results", sa.JSON(none_as_null=True), nullable=True))
    with op.batch_alter_table("rental_lines") as lines:
        lines.add_column(sa.Column("runs_from_ns", sa.BigInteger(), nullable=True))
        lines.add_column(sa.Column("cut_at_ns", sa.BigInteger(), nullable=True))
        lines.add_column(sa.Column("silent_ns", sa.BigInteger(), nullable=False, server_default="0"))
        lines.add_column(sa.Column("silent_since_ns", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Lead back to the revision before."""
    with op.batch_alter_table("rental_lines") as lines:
        for name in ("silent_since_ns", "silent_ns", "cut_at_ns", "runs_from_ns"):
            lines.drop_column(name)
    with op.batch_alter_table("workloads") as workloads:
        workloads.drop_column("results")
