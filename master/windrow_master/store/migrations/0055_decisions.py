"""Records of why work runs where it runs, in a table of their own: each start of a cluster has one."""

import sqlalchemy as sa
from alembic import op

revision = "0055_decisions"
down_revision = "0054_shares_and_quotas"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "decisions",
        sa.Column("cluster_id", sa.String(64), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("engine", sa.BigInteger(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("cluster_id", "at_ns", name=op.f("pk_decisions")),
    )
    op.execute(
        "INSERT INTO decisions (cluster_id, at_ns, engine, record) "
        "SELECT cluster_id, created_at_ns, 1, decision FROM clusters WHERE length(decision) > 0"
    )
    op.drop_column("clusters", "decision")
