"""Leases: each holding of a slot is a row, with one open holding per slot and no token twice."""

import sqlalchemy as sa
from alembic import op

revision = "0003_leases"
down_revision = "0002_leader"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; what is held now becomes an open holding."""
    op.create_table(
        "grants",
        sa.Column("slot_id", sa.String(length=128), nullable=False),
        sa.Column("token", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("holder", sa.String(length=64), nullable=False),
        sa.Column("granted_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("ended_at_ns", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["slot_id"], ["slots.slot_id"], name=op.f("fk_grants_slot_id_slots")),
        sa.PrimaryKeyConstraint("slot_id", "token", name=op.f("pk_grants")),
    )
    op.create_index(op.f("ix_grants_holder"), "grants", ["holder"])
    op.create_index(
        "uq_grants_open",
        "grants",
        ["slot_id"],
        unique=True,
        sqlite_where=sa.text("ended_at_ns IS NULL"),
        postgresql_where=sa.text("ended_at_ns IS NULL"),
    )
    op.execute(
        "INSERT INTO grants (slot_id, token, holder, granted_at_ns) "
        "SELECT slot_id, token, holder, changed_at_ns FROM slots WHERE holder IS NOT NULL"
    )


def downgrade() -> None:
    """Lead back to the revision before; who holds a slot stands in its own row as well."""
    op.drop_index("uq_grants_open", table_name="grants")
    op.drop_index(op.f("ix_grants_holder"), table_name="grants")
    op.drop_table("grants")
