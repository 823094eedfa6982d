"""Computes the running time that may be charged from signed receipts, whatever their order, repetition or loss. Pure.

signed     the longest running time that any valid receipt names (each names all of it so far)
lease      until - from: the Master never charges time that it did not allow
possible   last receipt - start, by the Master's own clock, less the silence of its host past 60 s; a second or two more
cut        end that was wished for + 10 s - start: a host that ignores the wish is not paid for that

billable = min(signed, lease, possible, cut), and it never shrinks: the first three only grow, and the last one is
after all that was charged when it is set. No word of a host about time counts for more than the Master saw pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from windrow_master.market.model import Rental, RentalLine
from windrow_proto.ids import ClusterId, HostId
from windrow_proto.model import Receipt
from windrow_proto.units import HOUR, SECOND, Microcents, charge, money_text

SILENCE_GRACE_NS: Final = 60 * SECOND
"""The silence of its host that is charged (design.md section 12), once receipts come that cover it."""
END_GRACE_NS: Final = 10 * SECOND
"""Charged after the wish to end it: as long as a program is given to end by itself."""
CLOCKS_NS: Final = 2 * SECOND
"""By which the Master's clock may run behind a host's before the host's signature counts for less."""
SETTLE_NS: Final = 20 * SECOND
"""After the cut: for the last receipt of a host that did end it."""
FLAGGED_NS: Final = 10 * SECOND
"""A receipt that names so much more than is possible is no matter of clocks."""


class Flaw(StrEnum):
    """The reason why a receipt counts for nothing."""

    OTHER_HOST = "it comes from a host that does not run this workload"
    OTHER_CLUSTER = "it names another machine"
    OTHER_SLOTS = "its slots or tokens are not those that were granted"
    MALFORMED = "its number or running time is out of range"
    AFTER_FINAL = "its number is above that of the final receipt"


@dataclass(frozen=True, slots=True)
class Reading:
    """One receipt accepted for one line, and when the Master received it."""

    receipt: Receipt
    received_at_ns: int


def flaw_of(line: RentalLine, cluster_id: ClusterId, host_id: HostId, receipt: Receipt) -> Flaw | None:
    """Return the flaw of a receipt whose signature already holds; None when it counts."""
    if host_id != line.host_id:
        return Flaw.OTHER_HOST
    if receipt.cluster_id != cluster_id:
        return Flaw.OTHER_CLUSTER
    granted = {(slot.slot_id, slot.token) for slot in line.slots}
    if {(slot.slot_id, slot.token) for slot in receipt.slots} != granted:
        return Flaw.OTHER_SLOTS
    if receipt.number < 1 or receipt.running_ns < 0:
        return Flaw.MALFORMED
    if line.final_number is not None and receipt.number > line.final_number:
        return Flaw.AFTER_FINAL
    return None


def read(line: RentalLine, reading: Reading) -> RentalLine:
    """The line after one more receipt, which must be new to it and without flaw."""
    receipt, at_ns = reading.receipt, reading.received_at_ns
    line = heard(line, at_ns)
    runs_from_ns = max(line.lease_from_ns, at_ns - max(0, receipt.running_ns))
    if line.runs_from_ns is not None:
        runs_from_ns = min(line.runs_from_ns, runs_from_ns)
    known = line.first_number is not None and line.last_number is not None
    first = min(line.first_number, receipt.number) if line.first_number is not None else receipt.number
    last = max(line.last_number, receipt.number) if line.last_number is not None else receipt.number
    after = replace(
        line,
        signed_ns=max(line.signed_ns, receipt.running_ns),
        seen_at_ns=max(line.seen_at_ns, at_ns),
        runs_from_ns=runs_from_ns,
        receipts=line.receipts + 1,
        first_number=first,
        last_number=last,
        started_at_ns=line.started_at_ns if known else receipt.started_wall_ns,
    )
    if not receipt.final:
        return after
    return replace(after, final_number=receipt.number, end_reason=receipt.end_reason, exit_code=receipt.exit_code)


def measured(line: RentalLine, at_ns: int) -> RentalLine:
    """The line of work that no host signs, a run at a service: by the Master's own clock, within its lease."""
    at_ns = max(line.seen_at_ns, min(at_ns, line.lease_until_ns))
    began_ns = line.lease_from_ns
    signed_ns = max(line.signed_ns, at_ns - began_ns)
    return replace(line, signed_ns=signed_ns, seen_at_ns=at_ns, runs_from_ns=began_ns, started_at_ns=began_ns)


def silent(line: RentalLine, now_ns: int) -> RentalLine:
    """The line once its host is not heard of: since its last receipt, or since the grace before now."""
    if line.is_final or line.silent_since_ns is not None or line.receipts == 0:
        return line
    return replace(line, silent_since_ns=min(now_ns, max(line.seen_at_ns, now_ns - SILENCE_GRACE_NS)))


def heard(line: RentalLine, now_ns: int) -> RentalLine:
    """The line once its host is heard of again: what was more than the grace is nobody's to pay, receipts or not."""
    if line.silent_since_ns is None:
        return line
    beyond_ns = max(0, now_ns - line.silent_since_ns - SILENCE_GRACE_NS)
    return replace(line, silent_ns=line.silent_ns + beyond_ns, silent_since_ns=None)


def renewed(line: RentalLine, until_ns: int) -> RentalLine:
    """The line after its lease was renewed; a lease never shrinks, and a finished line is not renewed."""
    if line.is_final or until_ns <= line.lease_until_ns:
        return line
    return replace(line, lease_until_ns=until_ns)


def ended(line: RentalLine, at_ns: int) -> RentalLine:
    """The line once another has taken its place: its lease covers nothing after `at_ns`. All that it was charged for
    lies before, so what may be charged does not shrink."""
    return line if line.is_final else replace(line, lease_until_ns=min(line.lease_until_ns, at_ns))


def cut(line: RentalLine, now_ns: int) -> RentalLine:
    """The line once its end is wished for; the first wish counts."""
    if line.is_final or line.cut_at_ns is not None:
        return line
    return replace(line, cut_at_ns=now_ns + END_GRACE_NS)


def billable_ns(line: RentalLine) -> int:
    """The running time that may be charged so far (the module's text says how)."""
    return max(0, min(line.signed_ns, line.lease_until_ns - line.lease_from_ns, _possible_ns(line)))


def _possible_ns(line: RentalLine) -> int:
    start_ns = line.lease_from_ns if line.runs_from_ns is None else line.runs_from_ns
    possible = line.seen_at_ns - start_ns - line.silent_ns + CLOCKS_NS
    return possible if line.cut_at_ns is None else min(possible, line.cut_at_ns - start_ns)


def is_settled(line: RentalLine, now_ns: int, close_grace_ns: int) -> bool:
    """Return whether nothing more of it can be charged: its last receipt is there, its host has signed well beyond
    its cut, or its lease lapsed without a word."""
    is_beyond = line.cut_at_ns is not None and line.seen_at_ns >= line.cut_at_ns + SETTLE_NS
    return line.is_final or is_beyond or now_ns >= line.lease_until_ns + close_grace_ns


def is_impossible(line: RentalLine, reading: Reading) -> bool:
    """Return whether a receipt names far more than has passed by the Master's own clock since the slots were leased."""
    return reading.receipt.running_ns > reading.received_at_ns - line.lease_from_ns + FLAGGED_NS


def note(line: RentalLine) -> str:
    """Return why less is charged than its host has signed, in words; empty: all of it is, but for what clocks differ
    by. What neither the budget, a spending limit nor the funds covered is told, too, once nothing more of it can
    come."""
    unpaid = Microcents(charge(line.price_per_hour, billable_ns(line)) - line.charged)
    said = f"not charged: {money_text(unpaid)} beyond the budget, a spending limit or the funds"
    beyond = said if line.is_final and unpaid > 0 else ""
    return "; ".join(filter(None, (_unbilled(line), beyond)))


def _unbilled(line: RentalLine) -> str:
    less_ns = line.signed_ns - billable_ns(line)
    if less_ns < SECOND:
        return ""
    parts = []
    if line.silent_ns >= SECOND:
        parts.append(f"{line.silent_ns // SECOND} s in which its host was not heard of")
    if line.cut_at_ns is not None and less_ns - line.silent_ns >= SECOND:
        parts.append(f"what it signed beyond {END_GRACE_NS // SECOND} s after the end was asked for")
    elif less_ns - line.silent_ns >= SECOND:
        parts.append("what it signed beyond the time that passed by the Master's own clock")
    what = " and ".join(parts) or "what it signed beyond its lease"
    return f"its host signed {line.signed_ns // SECOND} s; not charged: {what}"


def shown_start_ns(line: RentalLine) -> int | None:
    """Return when it started, as its host says where that can be, else by the Master's own clock."""
    said, own = line.started_at_ns, line.runs_from_ns
    if said is None or own is None:
        return said
    is_near = line.lease_from_ns - SILENCE_GRACE_NS <= said <= line.seen_at_ns + SILENCE_GRACE_NS
    return said if is_near else own


def paid_ns(rental: Rental, lines: Sequence[RentalLine], now_ns: int) -> int | None:
    """For how long all that still runs of a rental is funded from now; None: for ever, at no price.

    What the lines may have run since the last word of each is spoken for already. Rounded down, in the renter's favour.
    """
    running = [line for line in lines if not line.is_final and line.lease_until_ns > now_ns]
    price = sum(line.price_per_hour for line in running)
    if price == 0:
        return None
    owed = sum(line.price_per_hour * unreported_ns(line, now_ns) for line in running)
    return max(0, rental.held_left * HOUR - owed) // price


def unreported_ns(line: RentalLine, now_ns: int) -> int:
    """Return how long the work may have run since its last word: what of the hold is already spoken for, at most."""
    return 0 if line.is_final or line.receipts == 0 else max(0, now_ns - line.seen_at_ns)


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of a rental so far, microcents: by its receipts, and by our own clock. began_ns: since when."""

    charged: int
    by_clock: int
    began_ns: int | None = None


def spent_of(rental: Rental | None, lines: Sequence[RentalLine], now_ns: int) -> Spent:
    """Return the cost of a rental so far. Receipts come every 10 s and later where a link is down, so each line's
    running time by our own clock is told, too: never by what its host says of clocks."""
    clock, began = 0, list[int]()
    for line in lines:
        if line.runs_from_ns is None:
            continue
        began.append(line.runs_from_ns)
        until_ns = min(now_ns, line.lease_until_ns, now_ns if line.cut_at_ns is None else line.cut_at_ns)
        passed_ns = max(0, until_ns - line.runs_from_ns)
        clock += -(-line.price_per_hour * (min(line.signed_ns, passed_ns) if line.is_final else passed_ns) // HOUR)
    return Spent(Microcents(0) if rental is None else rental.charged, clock, min(began, default=None))
