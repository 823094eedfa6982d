"""The host that stands behind a registered resource."""

import sqlalchemy as sa
from alembic import op

revision = "0033_resource_bindings"
down_revision = "0032_resources"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("resources", sa.Column("bound_host", sa.String(length=64), nullable=True))
    op.create_index(op.f("ix_resources_bound_host"), "resources", ["bound_host"], unique=True)
