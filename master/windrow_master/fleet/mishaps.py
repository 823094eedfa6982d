"""Decides which recorded events count against a host's reliability. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from windrow_master.fleet import reliability
from windrow_master.fleet.conditions import is_fault
from windrow_master.fleet.model import Mishap
from windrow_master.fleet.reliability import Record

KINDS: Final = ("command.done", "condition.raised", "host.lost", "workload.lost")
"""Kinds of events that may count against a host."""
OWN_ERRORS: Final = frozenset({"disk_full", "runtime_unavailable", "storage_failed"})
"""Of a start that failed: what is the host's, and no renter's."""


def counts(kind: str, actor: str, host_id: str) -> bool:
    """Return whether an event may be held against this host: the Master concluded it, or the host said it of itself."""
    return kind in KINDS and (not actor.startswith("host/") or actor == f"host/{host_id}")


def fault_of(kind: str, fields: Mapping[str, object]) -> bool:
    """Return whether an event is a fault of the host's own: of a card, or of a start."""
    if kind == "condition.raised":
        return is_fault(str(fields.get("code", "")))
    return kind == "command.done" and fields.get("kind") == "create" and fields.get("error") in OWN_ERRORS


def abort_of(kind: str, fields: Mapping[str, object]) -> bool:
    """Return whether an event is a lease that the host broke off: a workload that is gone, or silence while it was
    leased."""
    return kind == "workload.lost" or (kind == "host.lost" and str(fields.get("held", "0")) != "0")


def after_mishaps(record: Record, events: Iterable[Mishap], now_ns: int) -> Record:
    """The record after these events."""
    for one in events:
        if not counts(one.kind, one.actor, one.host_id):
            continue
        if fault_of(one.kind, one.fields):
            record = reliability.with_fault(record, now_ns)
        if abort_of(one.kind, one.fields):
            record = reliability.with_abort(record, now_ns)
    return record
