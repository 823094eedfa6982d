"""Fencing of the slots of this host: the highest token seen per slot, and deadlines of leases on the monotonic clock.
Pure.

A token lower than the highest seen is fenced; the same token belongs to the workload that brought it first. A lease
ends at the earlier of `lease_until` (the Master was not heard for too long) and `paid_until` (the hold is used up).
Highest tokens are never forgotten; the shell stores them before anything starts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from windrow_proto.ids import SlotId, WorkloadId
from windrow_proto.model import DeleteSpec, LeaseRenewal, SlotGrant, WorkloadSpec

LAPSED: Final = "lease_lapsed"
"""End reason: no renewal came."""
UNPAID: Final = "unpaid"
"""End reason: what was funded is used up."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One workload's right to its slots. Deadlines in monotonic nanoseconds; None: never."""

    workload_id: WorkloadId
    token: int
    lease_until_ns: int | None
    paid_until_ns: int | None

    @property
    def ends_ns(self) -> int | None:
        """The earlier deadline; None: never."""
        deadlines = [deadline for deadline in (self.lease_until_ns, self.paid_until_ns) if deadline is not None]
        return min(deadlines, default=None)


@dataclass(frozen=True, slots=True)
class SlotMark:
    """The highest token seen for a slot and the workload that brought it."""

    token: int
    workload_id: WorkloadId


@dataclass(frozen=True, slots=True)
class Lapse:
    """A workload whose time is over, and which of its two deadlines it was."""

    workload_id: WorkloadId
    reason: str


@dataclass(frozen=True, slots=True)
class FencedBy:
    """Why a create or delete is too old: this slot has seen a higher token."""

    slot_id: SlotId
    offered: int
    highest: int

    @property
    def detail(self) -> str:
        """One sentence for the Master and for people."""
        return f"slot {self.slot_id} has seen token {self.highest}; this command carries {self.offered}"


@dataclass(frozen=True, slots=True)
class LeaseBook:
    """All marks and leases of one host."""

    marks: Mapping[SlotId, SlotMark] = field(default_factory=dict)
    leases: Mapping[WorkloadId, Lease] = field(default_factory=dict)


def fence(book: LeaseBook, workload_id: WorkloadId, slots: tuple[SlotGrant, ...]) -> FencedBy | None:
    """Which grant is too old, or carries a token that another workload holds; None: none is."""
    for slot in slots:
        mark = book.marks.get(slot.slot_id)
        if mark is None or slot.token > mark.token:
            continue
        if slot.token < mark.token or mark.workload_id != workload_id:
            return FencedBy(slot.slot_id, slot.token, mark.token)
    return None


def fence_delete(book: LeaseBook, spec: DeleteSpec) -> FencedBy | None:
    """Refuses a delete that is too old: only if its own workload is known under a higher token."""
    for slot in spec.slots:
        mark = book.marks.get(slot.slot_id)
        if mark is not None and mark.workload_id == spec.workload_id and slot.token < mark.token:
            return FencedBy(slot.slot_id, slot.token, mark.token)
    return None


def mark(book: LeaseBook, workload_id: WorkloadId, slots: tuple[SlotGrant, ...]) -> LeaseBook:
    """Remember the tokens of these grants where they are the highest so far."""
    marks = dict(book.marks)
    for slot in slots:
        known = marks.get(slot.slot_id)
        if known is None or slot.token > known.token:
            marks[slot.slot_id] = SlotMark(slot.token, workload_id)
    return replace(book, marks=marks)


def grant(book: LeaseBook, spec: WorkloadSpec, now_ns: int) -> LeaseBook:
    """Begin a workload's lease; its durations count from `now_ns`, monotonic, when the command was received.

    A duration of zero or less means that deadline is not set. A lease that is there already stays as it is.
    """
    if spec.workload_id in book.leases:
        return book
    lease = Lease(
        spec.workload_id,
        max((slot.token for slot in spec.slots), default=0),
        now_ns + spec.lease_ns if spec.lease_ns > 0 else None,
        now_ns + spec.paid_ns if spec.paid_ns > 0 else None,
    )
    return replace(book, leases={**book.leases, spec.workload_id: lease})


def renew(book: LeaseBook, renewal: LeaseRenewal, now_ns: int) -> LeaseBook:
    """Set a lease's deadlines anew from `now_ns`. Unknown workloads and tokens other than the lease's change nothing.

    The Master may also shorten: what it says last counts. A zero or negative duration ends the lease now.
    """
    lease = book.leases.get(renewal.workload_id)
    if lease is None or renewal.token != lease.token:
        return book
    renewed = replace(
        lease, lease_until_ns=now_ns + max(0, renewal.lease_ns), paid_until_ns=now_ns + max(0, renewal.paid_ns)
    )
    return replace(book, leases={**book.leases, renewal.workload_id: renewed})


def release(book: LeaseBook, workload_id: WorkloadId) -> LeaseBook:
    """Forget a lease; the marks stay."""
    return replace(book, leases={key: lease for key, lease in book.leases.items() if key != workload_id})


def lapsed(book: LeaseBook, now_ns: int) -> tuple[Lapse, ...]:
    """Every workload whose time is over at `now_ns`, by id."""
    found = []
    for workload_id, lease in sorted(book.leases.items()):
        if lease.ends_ns is None or now_ns < lease.ends_ns:
            continue
        unpaid = lease.paid_until_ns is not None and lease.paid_until_ns == lease.ends_ns
        found.append(Lapse(workload_id, UNPAID if unpaid else LAPSED))
    return tuple(found)


def next_deadline_ns(book: LeaseBook) -> int | None:
    """The earliest end of any lease, monotonic; None: there is none."""
    return min((lease.ends_ns for lease in book.leases.values() if lease.ends_ns is not None), default=None)
