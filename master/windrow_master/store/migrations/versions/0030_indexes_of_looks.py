"""Indexes of clusters by phase and of volumes by cluster: what a look needs is found without reading all rows."""

from alembic import op

revision = "0030_indexes_of_looks"
down_revision = "0029_job_files"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_index("ix_clusters_phase", "clusters", ["phase"])
    op.create_index("ix_volume_uses_cluster_id", "volume_uses", ["cluster_id"])


def downgrade() -> None:
    """Lead back to the revision before."""
    op.drop_index("ix_volume_uses_cluster_id", "volume_uses")
    op.drop_index("ix_clusters_phase", "clusters")
