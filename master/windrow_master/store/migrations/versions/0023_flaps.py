"""The number of times each host fell silent, as it was worth when it was last counted."""

import sqlalchemy as sa
from alembic import op

revision = "0023_flaps"
down_revision = "0022_bandwidth_rounds"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; nobody has been counted yet."""
    with op.batch_alter_table("hosts") as hosts:
        hosts.add_column(sa.Column("flaps", sa.Double(), nullable=False, server_default="0"))
        hosts.add_column(sa.Column("flaps_at_ns", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Lead back to the revision before."""
    with op.batch_alter_table("hosts") as hosts:
        hosts.drop_column("flaps_at_ns")
        hosts.drop_column("flaps")
