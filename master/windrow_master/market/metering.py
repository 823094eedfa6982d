"""From signed receipts to the running time that may be charged, whatever their order, repetition or loss.

signed     the longest running time that any valid receipt names (each names all of it so far)
lease      until - from: the Master never charges time that it did not allow
seen       last word by a relay + 60 s - from: nobody pays for silence that no receipt covers; a late receipt heals it

billable = min(signed, lease, seen), and it never shrinks, because each of the three only grows
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from windrow_master.market.model import Rental, RentalLine
from windrow_proto.ids import ClusterId, HostId
from windrow_proto.model import Receipt
from windrow_proto.units import HOUR, SECOND

SILENCE_GRACE_NS: Final = 60 * SECOND
"""How far past the last word of a host running time may count (design.md section 12)."""


class Flaw(StrEnum):
    """Why a receipt counts for nothing."""

    OTHER_HOST = "it comes from a host that does not run this workload"
    OTHER_CLUSTER = "it names another cluster"
    OTHER_SLOTS = "its slots or tokens are not those that were granted"
    MALFORMED = "its number or running time is out of range"
    AFTER_FINAL = "its number is above that of the final receipt"


@dataclass(frozen=True, slots=True)
class Reading:
    """One receipt accepted for one line, and when the Master received it."""

    receipt: Receipt
    received_at_ns: int


def flaw_of(line: RentalLine, cluster_id: ClusterId, host_id: HostId, receipt: Receipt) -> Flaw | None:
    """What is wrong with a receipt whose signature already holds; None when it counts."""
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
    receipt = reading.receipt
    known = line.first_number is not None and line.last_number is not None
    first = min(line.first_number, receipt.number) if line.first_number is not None else receipt.number
    last = max(line.last_number, receipt.number) if line.last_number is not None else receipt.number
    after = replace(
        line,
        signed_ns=max(line.signed_ns, receipt.running_ns),
        seen_at_ns=max(line.seen_at_ns, reading.received_at_ns),
        receipts=line.receipts + 1,
        first_number=first,
        last_number=last,
        started_at_ns=line.started_at_ns if known else receipt.started_wall_ns,
    )
    if not receipt.final:
        return after
    return replace(after, final_number=receipt.number, end_reason=receipt.end_reason, exit_code=receipt.exit_code)


def seen(line: RentalLine, at_ns: int) -> RentalLine:
    """The line after any proven word of its host."""
    return line if at_ns <= line.seen_at_ns else replace(line, seen_at_ns=at_ns)


def renewed(line: RentalLine, until_ns: int) -> RentalLine:
    """The line after its lease was renewed; a lease never shrinks, and a finished line is not renewed."""
    if line.is_final or until_ns <= line.lease_until_ns:
        return line
    return replace(line, lease_until_ns=until_ns)


def ended(line: RentalLine, at_ns: int) -> RentalLine:
    """The line once another has taken its place: its lease covers nothing after `at_ns`. All that it was charged for
    lies before, so what may be charged does not shrink."""
    return line if line.is_final else replace(line, lease_until_ns=min(line.lease_until_ns, at_ns))


def billable_ns(line: RentalLine) -> int:
    """The running time that may be charged so far (the module's text says how)."""
    lease = line.lease_until_ns - line.lease_from_ns
    watched = line.seen_at_ns + SILENCE_GRACE_NS - line.lease_from_ns
    return max(0, min(line.signed_ns, lease, watched))


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
    """How long the work may have run since its last word: what of the hold is already spoken for, at most."""
    return 0 if line.is_final or line.receipts == 0 else max(0, now_ns - line.seen_at_ns)
