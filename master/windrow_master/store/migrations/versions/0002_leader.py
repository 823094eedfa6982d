"""Leader: one row says which Master leads, by the epoch that every write transaction checks."""

import sqlalchemy as sa
from alembic import op

revision = "0002_leader"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; the last term's epoch is the seat's."""
    op.create_table(
        "leader",
        sa.Column("seat", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(length=200), nullable=False),
        sa.Column("address", sa.String(length=300), nullable=False),
        sa.CheckConstraint("seat = 1", name=op.f("ck_leader_one_seat")),
        sa.PrimaryKeyConstraint("seat", name=op.f("pk_leader")),
        sa.UniqueConstraint("epoch", name=op.f("uq_leader_epoch")),
    )
    op.execute(
        "INSERT INTO leader (seat, epoch, beat, holder, address) "
        "SELECT 1, COALESCE(MAX(epoch), 0), 0, '', '' FROM terms"
    )


def downgrade() -> None:
    """Lead back to the revision before; the terms keep every epoch."""
    op.drop_table("leader")
