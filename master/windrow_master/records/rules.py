"""Retention rules: which of the Master's records are deleted, and when. Pure.

What is not in the table stays: accounts, members, clusters, rentals with their lines, and every transfer. A bill is
proven by its transfers, its lines' sums and the receipts that those sums come from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from windrow_proto.units import DAY, HOUR, MINUTE

AUDIT_DAYS: Final = 180
"""How long entries of the audit log stay in the database; then they are sealed into files beside it."""
EVENTS_DAYS: Final = 90
DAYS_MAX: Final = 3_650
EVENTS_MAX: Final = 2_000_000
"""Of all subjects; beyond, the oldest go at whatever age."""
WORTHLESS_NS: Final = 30 * DAY
"""The age at which secrets are deleted that open nothing any more, so that who tries one is told why until then:
tokens, sessions, sign-in links."""
DONE_NS: Final = 90 * DAY
"""The age at which ended records are deleted: operations, commands, receipts below the last one of a rental that is
paid."""
DECIDED_NS: Final = 30 * DAY
"""The age at which the reasons of placements are deleted, from the end of what was placed."""
ALERTS_NS: Final = 400 * DAY
"""The age at which resolved alerts go, with their messages: reports compare a month with that of a year before."""
EVERY_NS: Final = 6 * HOUR
"""Between two looks for the same."""
LOOK_NS: Final = MINUTE
ROWS_MAX: Final = 500
"""Let go of in one transaction: others that write wait some milliseconds for it."""
STEPS_MAX: Final = 20
"""Such transactions in one look; the rest in the next."""


class Record(StrEnum):
    """A kind of records."""

    EVENTS = "events"
    SESSIONS = "sessions"
    TOKENS = "api_tokens"
    SIGN_IN_LINKS = "sign_in_links"
    JOIN_TOKENS = "join_tokens"
    OPERATIONS = "operations"
    COMMANDS = "commands"
    RECEIPTS = "receipts"
    DECISIONS = "decisions"
    GAPS = "gaps"
    DEAD_LETTERS = "dead_letters"
    EMPTY_HOLDS = "empty_holds"
    ALERTS = "alerts"
    SILENCES = "alert_silences"
    DELIVERIES = "deliveries"
    MAINTENANCE = "maintenance_windows"


@dataclass(frozen=True, slots=True)
class RecordRetention:
    """The retention times that an operator may choose (docs/operating.md)."""

    audit_days: int = AUDIT_DAYS
    events_days: int = EVENTS_DAYS

    @property
    def shown(self) -> str:
        """For the log."""
        return f"audit_days={self.audit_days} events_days={self.events_days}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of records and how long they stay after their end, or where they have none after they were made."""

    what: Record
    kept_ns: int


def rules(retention: RecordRetention) -> Sequence[Rule]:
    """The table. Sessions before the tokens that they were begun with, join tokens before those that asked for them."""
    return (
        Rule(Record.EVENTS, retention.events_days * DAY),
        Rule(Record.SESSIONS, WORTHLESS_NS),
        Rule(Record.SIGN_IN_LINKS, WORTHLESS_NS),
        Rule(Record.JOIN_TOKENS, WORTHLESS_NS),
        Rule(Record.TOKENS, WORTHLESS_NS),
        Rule(Record.OPERATIONS, DONE_NS),
        Rule(Record.COMMANDS, DONE_NS),
        Rule(Record.RECEIPTS, DONE_NS),
        Rule(Record.DECISIONS, DECIDED_NS),
        Rule(Record.GAPS, DONE_NS),
        Rule(Record.DEAD_LETTERS, DONE_NS),
        Rule(Record.EMPTY_HOLDS, 0),
        Rule(Record.ALERTS, ALERTS_NS),
        Rule(Record.SILENCES, DONE_NS),
        Rule(Record.DELIVERIES, DONE_NS),
        Rule(Record.MAINTENANCE, DONE_NS),
    )
