"""The network mode of a cluster over several hosts, and its reason."""

import sqlalchemy as sa
from alembic import op

revision = "0017_networks"
down_revision = "0016_benchmarks"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; what there was met directly, and nobody wrote down why."""
    with op.batch_alter_table("clusters") as clusters:
        clusters.add_column(sa.Column("network", sa.String(length=20), nullable=True))
        clusters.add_column(sa.Column("network_reason", sa.Text(), nullable=True))


def downgrade() -> None:
    """Lead back to the revision before."""
    with op.batch_alter_table("clusters") as clusters:
        for column in ("network_reason", "network"):
            clusters.drop_column(column)
