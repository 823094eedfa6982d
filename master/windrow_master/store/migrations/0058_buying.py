"""Projects that may have machines bought, the searches of their work for places elsewhere, and what a machine is kept
for."""

import sqlalchemy as sa
from alembic import op

revision = "0058_buying"
down_revision = "0057_bought_hosts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "backend_buyers",
        sa.Column("backend", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(64), nullable=False),
        sa.Column("per_day", sa.BigInteger(), nullable=True),
        sa.Column("in_all", sa.BigInteger(), nullable=True),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("backend", "account_id", name=op.f("pk_backend_buyers")),
    )
    op.create_index(op.f("ix_backend_buyers_account_id"), "backend_buyers", ["account_id"])
    op.create_table(
        "searches",
        sa.Column("entry_id", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(64), nullable=False),
        sa.Column("living_of", sa.String(64), nullable=True),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("entry_id", name=op.f("pk_searches")),
    )
    op.create_index(op.f("ix_searches_account_id"), "searches", ["account_id"])
    op.create_index(op.f("ix_searches_living_of"), "searches", ["living_of"])
    op.add_column("purchases", sa.Column("kept_for", sa.String(64), nullable=True))
    op.create_index(op.f("ix_purchases_kept_for"), "purchases", ["kept_for"])
