"""Channels that alerts are delivered to, deliveries, and the mail that users want without a channel."""

import sqlalchemy as sa
from alembic import op

revision = "0046_channels"
down_revision = "0045_alerts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Lead from the revision before to this one."""
    op.create_table(
        "channels",
        sa.Column("channel_id", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("shown", sa.String(length=320), nullable=False),
        sa.Column("min_severity", sa.String(length=20), nullable=False),
        sa.Column("rules", sa.JSON(), nullable=False),
        sa.Column("quiet", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("digest_minutes", sa.BigInteger(), nullable=True),
        sa.Column("created_by", sa.String(length=128), nullable=False),
        sa.Column("created_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("disabled_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("rotated_at_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("channel_id", name=op.f("pk_channels")),
    )
    op.create_index(op.f("ix_channels_owner"), "channels", ["owner"])
    op.create_table(
        "deliveries",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("delivery_id", sa.String(length=64), nullable=False),
        sa.Column("message_id", sa.String(length=128), nullable=False),
        sa.Column("channel_id", sa.String(length=96), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("object_key", sa.String(length=512), nullable=False),
        sa.Column("message", sa.JSON(), nullable=False),
        sa.Column("batch", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("tries", sa.BigInteger(), nullable=False),
        sa.Column("due_at_ns", sa.BigInteger(), nullable=True),
        sa.Column("last_answer", sa.String(length=300), nullable=False),
        sa.Column("first_at_ns", sa.BigInteger(), nullable=False),
        sa.Column("done_at_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("delivery_id", name=op.f("uq_deliveries_delivery_id")),
        sa.UniqueConstraint("message_id", "channel_id", name=op.f("uq_deliveries_message_id_channel_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_deliveries_due_at_ns"), "deliveries", ["due_at_ns"])
    op.create_index(op.f("ix_deliveries_done_at_ns"), "deliveries", ["done_at_ns"])
    order = ["channel_id", "object_key", "due_at_ns"]
    op.create_index("ix_deliveries_channel_id_object_key_due_at_ns", "deliveries", order)
    op.create_index("ix_deliveries_owner_number", "deliveries", ["owner", "number"])
    op.create_table(
        "alert_mail",
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("level", sa.String(length=20), nullable=False),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_alert_mail")),
    )
