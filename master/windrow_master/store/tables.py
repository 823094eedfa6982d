"""The store's own tables: terms, audit, events, operations, remembered answers."""

from sqlalchemy import JSON, CheckConstraint, Column, ForeignKey, Index, LargeBinary, String, Table, Text

from windrow_master.store.schema import Serial, Whole, metadata

terms = Table(
    "terms",
    metadata,
    Column("epoch", Serial, primary_key=True, autoincrement=False),
    Column("started_at_ns", Whole, nullable=False),
    Column("stopped_at_ns", Whole),
    Column("version", String(64), nullable=False),
    Column("backup_at_ns", Whole),
)

leader = Table(
    "leader",
    metadata,
    Column("seat", Whole, primary_key=True, autoincrement=False),
    # Unique, so that PostgreSQL takes it for a key: who changes the epoch waits for every transaction that checked it,
    # while a beat waits for none.
    Column("epoch", Whole, nullable=False, unique=True),
    Column("beat", Whole, nullable=False),
    Column("holder", String(200), nullable=False),
    Column("address", String(300), nullable=False),
    CheckConstraint("seat = 1", name="one_seat"),
)
"""The one row that says who leads; `beat` grows while the leader lives."""

audit = Table(
    "audit",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("at_ns", Whole, nullable=False),
    Column("epoch", Whole, nullable=False),
    Column("actor", String(200), nullable=False),
    Column("action", String(100), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("reason", Text, nullable=False),
    Column("fields", JSON, nullable=False),
    Column("chain", LargeBinary(32), nullable=False),
    Index(None, "subject", "number"),
)

events = Table(
    "events",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("id", String(64), nullable=False, unique=True),
    Column("at_ns", Whole, nullable=False),
    Column("kind", String(100), nullable=False),
    Column("actor", String(200), nullable=False),
    Column("text", Text, nullable=False),
    Column("fields", JSON, nullable=False),
)

event_subjects = Table(
    "event_subjects",
    metadata,
    Column("subject", String(200), primary_key=True),
    Column("event_number", Serial, ForeignKey("events.number", ondelete="CASCADE"), primary_key=True, index=True),
)

operations = Table(
    "operations",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("kind", String(100), nullable=False),
    Column("subject", String(200), nullable=False, index=True),
    Column("account_id", String(64), nullable=False),
    Column("begun_by", String(128)),
    Column("state", String(20), nullable=False),
    Column("error_code", String(64)),
    Column("error_detail", Text),
    Column("created_at_ns", Whole, nullable=False),
    Column("done_at_ns", Whole),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("account_id", String(64), primary_key=True),
    Column("key", String(200), primary_key=True),
    Column("request_sha256", LargeBinary(32), nullable=False),
    Column("epoch", Whole, nullable=False),
    Column("created_at_ns", Whole, nullable=False, index=True),
    Column("status", Whole),
    Column("headers", JSON),
    Column("body", LargeBinary),
)
