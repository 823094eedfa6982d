"""Says how much an event matters to a person who looks after the market. Pure.

error     something is broken or lost
warning   a person should look at it
notice    something worth knowing has changed
info      everyday work: measurements, commands, starts and ends
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from windrow_proto.conditions import ConditionCode, Effect, Severity, find


class EventSeverity(StrEnum):
    """How much an event matters."""

    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"


RANKS: Final[Mapping[str, int]] = {str(one): rank for rank, one in enumerate(EventSeverity)}
_ERRORS: Final = frozenset(
    {
        *("agent.storage_damaged", "cluster.failed", "gpu.ecc_uncorrected", "gpu.lost", "host.lost"),
        *("host.quarantined", "host.verify_failed", "job.failed", "job.lost", "mail.given_up", "workload.lost"),
    }
)
_WARNINGS: Final = frozenset(
    {
        *("access.kept_back", "account.suspended", "cluster.degraded", "cluster.results_cut", "delivery.given_up"),
        *("fleet.not_heard", "gpu.recovery_action", "gpu.stripped", "gpu.unavailable", "gpu.xid", "host.kept_back"),
        *("host.link_misused", "host.misuse", "host.proof_failed", "host.reports_too_much", "host.unverified"),
        *("job.impossible", "job.refused", "receipt.impossible", "receipt.refused", "rental.funds_low"),
        *("host.leaving", "rental.unpaid", "slot.not_clean", "spool.gap", "workload.orphan"),
    }
)
INFO_BEGINNINGS: Final = (
    *(
        "alert.",
        "bandwidth.",
        "cluster.",
        "command.",
        "host.proving",
        "host.suspect",
        "host.verifying",
        "job.",
        "join_token.",
        "maintenance.",
    ),
    *("rental.closed", "slot.tier", "terminal.", "token.", "tunnel.", "volume.", "workload."),
)
"""How the kinds of events begin that go with everyday work, but for those above."""
LOUD: Final = tuple(
    sorted(kind for kind in _ERRORS | _WARNINGS if kind.startswith(INFO_BEGINNINGS)),
)
"""Kinds that begin so, and are more than info all the same."""


def severity_of(kind: str, fields: Mapping[str, object]) -> EventSeverity:
    """How much an event of this kind, with these fields, matters."""
    if kind in ("condition.raised", "condition.cleared"):
        return _of_condition(find(str(fields.get("code", ""))), is_over=kind == "condition.cleared")
    if kind == "gpu.xid" and fields.get("blame") == "host":
        return EventSeverity.ERROR
    if kind in _ERRORS:
        return EventSeverity.ERROR
    if kind in _WARNINGS:
        return EventSeverity.WARNING
    return EventSeverity.INFO if kind.startswith(INFO_BEGINNINGS) else EventSeverity.NOTICE


def is_at_least(severity: str, wanted: str | None) -> bool:
    """Return whether this matters as much as is wanted; None: everything is wanted."""
    return wanted is None or RANKS.get(severity, 0) >= RANKS[wanted]


def _of_condition(known: ConditionCode | None, *, is_over: bool) -> EventSeverity:
    if known is not None and known.severity is Severity.INFO:
        return EventSeverity.INFO
    if is_over:
        return EventSeverity.NOTICE
    is_bad = known is not None and (known.severity is Severity.PAGE or known.effect is Effect.FAULT)
    return EventSeverity.ERROR if is_bad else EventSeverity.WARNING
