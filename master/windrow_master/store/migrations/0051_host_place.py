"""Country and labels of hosts, as their owners say them."""

import sqlalchemy as sa
from alembic import op

revision = "0051_host_place"
down_revision = "0050_slot_sizes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("hosts", sa.Column("country", sa.String(2), nullable=True))
    op.add_column("hosts", sa.Column("labels", sa.JSON(), nullable=True))
