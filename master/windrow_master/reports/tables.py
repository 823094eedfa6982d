"""The table of reports that are sent by mail."""

from sqlalchemy import JSON, Column, ForeignKey, String, Table, Text

from windrow_master.store.schema import Whole, metadata

report_schedules = Table(
    "report_schedules",
    metadata,
    Column("schedule_id", String(64), primary_key=True),
    Column("account_id", String(64), ForeignKey("accounts.id"), nullable=False, index=True),
    Column("user_id", String(64), ForeignKey("users.id"), nullable=False, index=True),
    Column("name", String(128), nullable=False),
    Column("cron", String(100), nullable=False),
    Column("time_zone", String(64), nullable=False),
    # The words of the query, as the API takes them.
    Column("query", JSON, nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("due_at_ns", Whole, nullable=False, index=True),
    Column("sent_at_ns", Whole),
    # Why the last one was not sent; empty: it was.
    Column("problem", Text, nullable=False),
)
