"""The most that a rental is charged; rentals from before have no such limit."""

import sqlalchemy as sa
from alembic import op

revision = "0031_rental_budget"
down_revision = "0030_indexes_of_looks"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("rentals", sa.Column("budget", sa.BigInteger(), nullable=True))
