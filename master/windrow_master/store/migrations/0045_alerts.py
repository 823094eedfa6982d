"""Alerts, their messages, people's own rules and silences."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0045_alerts"
down_revision = "0044_fleet_counts"
branch_labels = None
depends_on = None

_column: Any = sa.Column
SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _words(name: str, size: int, **more: bool) -> Any:
    return sa.Column(name, sa.String(length=size), nullable=more.get("nullable", False))


def _whole(*names: str, nullable: bool = False) -> list[Any]:
    return [sa.Column(name, sa.BigInteger(), nullable=nullable) for name in names]


def _texts(*names: str) -> list[Any]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _of_alert(table: str) -> Any:
    name = op.f(f"fk_{table}_alert_id_alerts")
    return sa.ForeignKeyConstraint(["alert_id"], ["alerts.alert_id"], name=name, ondelete="CASCADE")


def upgrade() -> None:
    """Lead from the revision before to this one."""
    _alerts()
    _parts()
    _messages()
    op.create_table(
        "alert_rules",
        *(_words("rule_id", 64), _words("owner", 64), _words("name", 100)),
        *(_words("event_kind", 100, nullable=True), _words("metric", 100, nullable=True)),
        *(_column("scope", sa.JSON(), nullable=False), _words("comparison", 2)),
        *(_column("threshold", sa.Float(), nullable=False), *_whole("duration_ns"), _words("severity", 20)),
        *(*_whole("created_at_ns"), _words("created_by", 200)),
        sa.PrimaryKeyConstraint("rule_id", name=op.f("pk_alert_rules")),
    )
    op.create_index(op.f("ix_alert_rules_owner"), "alert_rules", ["owner"])
    op.create_table(
        "alert_silences",
        *(_words("silence_id", 64), _words("owner", 64)),
        *(_words("rule", 100, nullable=True), _words("cause", 200, nullable=True)),
        *(*_whole("from_ns", "until_ns"), *_texts("reason"), _words("created_by", 200), *_whole("created_at_ns")),
        sa.PrimaryKeyConstraint("silence_id", name=op.f("pk_alert_silences")),
    )
    op.create_index(op.f("ix_alert_silences_until_ns"), "alert_silences", ["until_ns"])
    op.create_table(
        "watch_cursor",
        *(_words("reader", 32), *_whole("number")),
        sa.PrimaryKeyConstraint("reader", name=op.f("pk_watch_cursor")),
    )


def _alerts() -> None:
    op.create_table(
        "alerts",
        *(_words("alert_id", 64), _words("rule", 100), _words("cause", 200), _words("state", 20)),
        *(_words("severity", 20), *_texts("title", "text", "remedy"), *_whole("opened_at_ns", "settle_ns")),
        *_whole("fires_at_ns", "fired_at_ns", "acked_at_ns", nullable=True),
        *(_words("acked_by", 200), *_whole("silenced_until_ns", "settles_at_ns", nullable=True)),
        *(*_whole("escalate_ns", "escalates_at_ns", nullable=True), *_whole("escalations")),
        *(*_whole("resolved_at_ns", "due_at_ns", nullable=True), *_whole("flaps"), _words("assignee", 200)),
        *(_column("simulated", sa.Boolean(), nullable=False), *_whole("subject_count"), _words("wider", 200)),
        _column("fields", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("alert_id", name=op.f("pk_alerts")),
    )
    op.create_index(op.f("ix_alerts_resolved_at_ns"), "alerts", ["resolved_at_ns"])
    op.create_index(op.f("ix_alerts_due_at_ns"), "alerts", ["due_at_ns"])
    is_open = sa.text("resolved_at_ns IS NULL")
    where: dict[str, Any] = {"sqlite_where": is_open, "postgresql_where": is_open}
    op.create_index("uq_alerts_open", "alerts", ["rule", "cause"], unique=True, **where)
    op.create_index("ix_alerts_wider", "alerts", ["rule", "wider"], **where)


def _parts() -> None:
    op.create_table(
        "alert_subjects",
        *(_words("alert_id", 64), _words("rule", 100), _words("cause", 200), _words("subject", 200)),
        *(_words("name", 200), *_whole("since_ns"), *_whole("cleared_at_ns", nullable=True)),
        _column("held", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("alert_id", "rule", "cause", "subject", name=op.f("pk_alert_subjects")),
        _of_alert("alert_subjects"),
    )
    is_now = sa.text("cleared_at_ns IS NULL")
    where: dict[str, Any] = {"sqlite_where": is_now, "postgresql_where": is_now}
    op.create_index("ix_alert_subjects_now", "alert_subjects", ["cause", "rule"], **where)
    op.create_table(
        "alert_audiences",
        *(_words("audience", 64), _words("alert_id", 64)),
        sa.PrimaryKeyConstraint("audience", "alert_id", name=op.f("pk_alert_audiences")),
        _of_alert("alert_audiences"),
    )
    op.create_index(op.f("ix_alert_audiences_alert_id"), "alert_audiences", ["alert_id"])
    op.create_table(
        "alert_notes",
        _column("number", SERIAL, nullable=False),
        *(_words("alert_id", 64), *_whole("at_ns"), _words("actor", 200), _words("kind", 20), *_texts("text")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_alert_notes")),
        _of_alert("alert_notes"),
    )
    op.create_index(op.f("ix_alert_notes_alert_id"), "alert_notes", ["alert_id"])


def _messages() -> None:
    op.create_table(
        "alert_messages",
        _column("number", SERIAL, nullable=False),
        *(_words("message_id", 100), _words("alert_id", 64), *_whole("at_ns")),
        _column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_alert_messages")),
        sa.UniqueConstraint("message_id", name=op.f("uq_alert_messages_message_id")),
        _of_alert("alert_messages"),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_alert_messages_alert_id"), "alert_messages", ["alert_id"])
    op.create_table(
        "inbox",
        *(_words("audience", 64), _column("number", SERIAL, nullable=False)),
        sa.PrimaryKeyConstraint("audience", "number", name=op.f("pk_inbox")),
        sa.ForeignKeyConstraint(
            ["number"],
            ["alert_messages.number"],
            name=op.f("fk_inbox_number_alert_messages"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(op.f("ix_inbox_number"), "inbox", ["number"])
    op.create_table(
        "inbox_marks",
        *(_words("reader", 200), *_whole("read_number")),
        sa.PrimaryKeyConstraint("reader", name=op.f("pk_inbox_marks")),
    )
