"""Slots that are parts of a card: which card, which profile, how much of it, and what keeps them apart."""

import sqlalchemy as sa
from alembic import op

revision = "0010_slices"
down_revision = "0009_verifications"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one; every card was offered whole until now."""
    with op.batch_alter_table("slots") as slots:
        slots.add_column(sa.Column("isolation", sa.String(length=12), nullable=False, server_default="whole"))
        slots.add_column(sa.Column("card_uuid", sa.String(length=128), nullable=True))
        slots.add_column(sa.Column("profile", sa.String(length=32), nullable=True))
        slots.add_column(sa.Column("share_milli", sa.BigInteger(), nullable=False, server_default="1000"))
    op.execute(sa.text("UPDATE slots SET isolation = 'unspecified' WHERE gpu_uuid IS NULL"))
    op.execute(sa.text("UPDATE slots SET card_uuid = gpu_uuid"))


def downgrade() -> None:
    """Lead back to the revision before."""
    with op.batch_alter_table("slots") as slots:
        for column in ("share_milli", "profile", "card_uuid", "isolation"):
            slots.drop_column(column)
