"""The traffic of each service over HTTPS."""

import sqlalchemy as sa
from alembic import op

revision = "0007_service_traffic"
down_revision = "0006_used_generation"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "service_traffic",
        sa.Column("cluster_id", sa.String(length=64), nullable=False),
        sa.Column("connections", sa.BigInteger(), nullable=False),
        sa.Column("bytes_in", sa.BigInteger(), nullable=False),
        sa.Column("bytes_out", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["cluster_id"], ["clusters.cluster_id"], name=op.f("fk_service_traffic_cluster_id_clusters")
        ),
        sa.PrimaryKeyConstraint("cluster_id", name=op.f("pk_service_traffic")),
    )


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_table("service_traffic")
