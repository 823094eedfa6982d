"""The tables of channels, of deliveries, and of the mail that users want without a channel."""

from sqlalchemy import JSON, Column, Index, LargeBinary, String, Table, UniqueConstraint

from windrow_master.store.schema import Serial, Whole, metadata

channels = Table(
    "channels",
    metadata,
    Column("channel_id", String(64), primary_key=True),
    Column("owner", String(64), nullable=False, index=True),
    Column("kind", String(20), nullable=False),
    Column("name", String(128), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("shown", String(320), nullable=False),
    Column("min_severity", String(20), nullable=False),
    Column("rules", JSON, nullable=False),
    Column("quiet", JSON(none_as_null=True)),
    Column("digest_minutes", Whole),
    Column("created_by", String(128), nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("disabled_at_ns", Whole),
    Column("rotated_at_ns", Whole),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("delivery_id", String(64), nullable=False, unique=True),
    Column("message_id", String(128), nullable=False),
    Column("channel_id", String(96), nullable=False),
    Column("owner", String(64), nullable=False),
    Column("object_key", String(512), nullable=False),
    Column("message", JSON, nullable=False),
    Column("batch", String(64), nullable=False),
    Column("state", String(20), nullable=False),
    Column("tries", Whole, nullable=False),
    Column("due_at_ns", Whole, index=True),
    Column("last_answer", String(300), nullable=False),
    Column("first_at_ns", Whole, nullable=False),
    Column("done_at_ns", Whole, index=True),
    UniqueConstraint("message_id", "channel_id"),
    Index("ix_deliveries_channel_id_object_key_due_at_ns", "channel_id", "object_key", "due_at_ns"),
    Index("ix_deliveries_owner_number", "owner", "number"),
    sqlite_autoincrement=True,  # the number of a deleted one is not given again
)

alert_mail = Table(
    "alert_mail",
    metadata,
    Column("user_id", String(64), primary_key=True),
    Column("level", String(20), nullable=False),
)
