"""The certificate with which each member has been heard, so that an older one is refused by every later Master."""

import sqlalchemy as sa
from alembic import op

revision = "0006_used_generation"
down_revision = "0005_access_drains"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; of members from before it is not known."""
    with op.batch_alter_table("members") as members:
        members.add_column(sa.Column("used_generation", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Lead back to the revision before."""
    with op.batch_alter_table("members") as members:
        members.drop_column("used_generation")
