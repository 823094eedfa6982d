"""Backends that machines are bought at, what was bought, and the book of its costs."""

import sqlalchemy as sa
from alembic import op

revision = "0056_purchases"
down_revision = "0055_decisions"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "backends",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.Column("caps", sa.JSON(), nullable=False),
        sa.Column("margin_percent", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("checked_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("findings", sa.JSON(), nullable=False),
        sa.Column("swept_at_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_backends")),
    )
    op.create_table(
        "purchases",
        sa.Column("purchase_id", sa.String(64), nullable=False),
        sa.Column("backend", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("machine_id", sa.String(128), nullable=False),
        *(sa.Column(name, sa.String(64), nullable=True) for name in ("host_id", "living_at", "living_host")),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("purchase_id", name=op.f("pk_purchases")),
    )
    op.create_table(
        "purchase_costs",
        sa.Column("number", _NUMBER, nullable=False),
        sa.Column("purchase_id", sa.String(64), nullable=False),
        sa.Column("backend", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(64), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("at_ns", "from_ns", "to_ns")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("billed_s", "idle_s", "cost")),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("paid", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_purchase_costs")),
        sqlite_autoincrement=True,
    )
    for table, columns in (
        ("purchases", ["host_id"]),
        ("purchases", ["living_at"]),
        ("purchases", ["living_host"]),
        ("purchases", ["account_id", "purchase_id"]),
        ("purchase_costs", ["purchase_id"]),
        ("purchase_costs", ["backend", "at_ns"]),
    ):
        op.create_index(f"ix_{table}_{'_'.join(columns)}", table, columns)
