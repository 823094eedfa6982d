"""The tables of alerts, of their messages, of people's own rules and silences, and how far the events were read."""

from sqlalchemy import JSON, Boolean, Column, Float, ForeignKey, Index, String, Table, Text, UniqueConstraint

from windrow_master.store.schema import Serial, Whole, metadata

alerts = Table(
    "alerts",
    metadata,
    Column("alert_id", String(64), primary_key=True),
    Column("rule", String(100), nullable=False),
    Column("cause", String(200), nullable=False),
    Column("state", String(20), nullable=False),
    Column("severity", String(20), nullable=False),
    Column("title", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("remedy", Text, nullable=False),
    Column("opened_at_ns", Whole, nullable=False),
    Column("settle_ns", Whole, nullable=False),
    Column("fires_at_ns", Whole),
    Column("fired_at_ns", Whole),
    Column("acked_at_ns", Whole),
    Column("acked_by", String(200), nullable=False),
    Column("silenced_until_ns", Whole),
    Column("settles_at_ns", Whole),
    Column("escalate_ns", Whole),
    Column("escalates_at_ns", Whole),
    Column("escalations", Whole, nullable=False),
    Column("resolved_at_ns", Whole, index=True),
    Column("due_at_ns", Whole, index=True),
    Column("flaps", Whole, nullable=False),
    Column("assignee", String(200), nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("subject_count", Whole, nullable=False),
    Column("wider", String(200), nullable=False),
    Column("fields", JSON, nullable=False),
)
# Of one cause and rule one alert is open.
Index(
    "uq_alerts_open",
    alerts.c.rule,
    alerts.c.cause,
    unique=True,
    sqlite_where=alerts.c.resolved_at_ns.is_(None),
    postgresql_where=alerts.c.resolved_at_ns.is_(None),
)
Index(
    "ix_alerts_wider",
    alerts.c.rule,
    alerts.c.wider,
    sqlite_where=alerts.c.resolved_at_ns.is_(None),
    postgresql_where=alerts.c.resolved_at_ns.is_(None),
)

alert_subjects = Table(
    "alert_subjects",
    metadata,
    Column("alert_id", String(64), ForeignKey("alerts.alert_id", ondelete="CASCADE"), primary_key=True),
    Column("rule", String(100), primary_key=True),
    Column("cause", String(200), primary_key=True),
    Column("subject", String(200), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("since_ns", Whole, nullable=False),
    Column("cleared_at_ns", Whole),
    Column("held", JSON(none_as_null=True)),
)
"""held: what another alert would say, which this one holds back."""
# What has the trouble now, by its cause: what is over asks for it.
Index(
    "ix_alert_subjects_now",
    alert_subjects.c.cause,
    alert_subjects.c.rule,
    sqlite_where=alert_subjects.c.cleared_at_ns.is_(None),
    postgresql_where=alert_subjects.c.cleared_at_ns.is_(None),
)

alert_audiences = Table(
    "alert_audiences",
    metadata,
    Column("audience", String(64), primary_key=True),
    Column("alert_id", String(64), ForeignKey("alerts.alert_id", ondelete="CASCADE"), primary_key=True, index=True),
)

alert_notes = Table(
    "alert_notes",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("alert_id", String(64), ForeignKey("alerts.alert_id", ondelete="CASCADE"), nullable=False, index=True),
    Column("at_ns", Whole, nullable=False),
    Column("actor", String(200), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("text", Text, nullable=False),
)

alert_messages = Table(
    "alert_messages",
    metadata,
    Column("number", Serial, primary_key=True),
    Column("message_id", String(100), nullable=False),
    Column("alert_id", String(64), ForeignKey("alerts.alert_id", ondelete="CASCADE"), nullable=False, index=True),
    Column("at_ns", Whole, nullable=False),
    Column("body", JSON, nullable=False),
    UniqueConstraint("message_id"),
    sqlite_autoincrement=True,  # a number is never given again: readers keep theirs
)
inbox = Table(
    "inbox",
    metadata,
    Column("audience", String(64), primary_key=True),
    Column("number", Serial, ForeignKey("alert_messages.number", ondelete="CASCADE"), primary_key=True, index=True),
)
"""The messages of each audience."""
inbox_marks = Table(
    "inbox_marks",
    metadata,
    Column("reader", String(200), primary_key=True),
    Column("read_number", Whole, nullable=False),
)

alert_rules = Table(
    "alert_rules",
    metadata,
    Column("rule_id", String(64), primary_key=True),
    Column("owner", String(64), nullable=False, index=True),
    Column("name", String(100), nullable=False),
    Column("event_kind", String(100)),
    Column("metric", String(100)),
    Column("scope", JSON, nullable=False),
    Column("comparison", String(2), nullable=False),
    Column("threshold", Float, nullable=False),
    Column("duration_ns", Whole, nullable=False),
    Column("severity", String(20), nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("created_by", String(200), nullable=False),
)

alert_silences = Table(
    "alert_silences",
    metadata,
    Column("silence_id", String(64), primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("rule", String(100)),
    Column("cause", String(200)),
    Column("from_ns", Whole, nullable=False),
    Column("until_ns", Whole, nullable=False, index=True),
    Column("reason", Text, nullable=False),
    Column("created_by", String(200), nullable=False),
    Column("created_at_ns", Whole, nullable=False),
)

maintenance_windows = Table(
    "maintenance_windows",
    metadata,
    Column("window_id", String(64), primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("hosts", JSON, nullable=False),
    Column("from_ns", Whole, nullable=False),
    Column("until_ns", Whole, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_by", String(200), nullable=False),
    Column("created_at_ns", Whole, nullable=False),
    Column("started_at_ns", Whole),
    Column("ended_at_ns", Whole, index=True),
    Column("drained", JSON, nullable=False),
)

watch_cursor = Table(
    "watch_cursor",
    metadata,
    Column("reader", String(32), primary_key=True),
    Column("number", Whole, nullable=False),
)
"""The last event that was read, of each reader."""
