"""Routes that are kept, and the account that a bound host is dedicated to."""

import sqlalchemy as sa
from alembic import op

revision = "0034_routes"
down_revision = "0033_resource_bindings"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.add_column("resources", sa.Column("dedicated_to", sa.String(length=64), nullable=True))
    op.create_table(
        "routes",
        sa.Column("route_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("route_id", name=op.f("pk_routes")),
    )
    op.create_index("ix_routes_account_id_route_id", "routes", ["account_id", "route_id"])
