"""The values of purchases: a backend with its caps, a purchase, an entry of the book of costs. Pure.

Money is in microcents of the backend's currency, wall times end in `_at_ns` or `_since_ns`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from windrow_master.hybrid.backends.port import Finding, MachineOffer, PurchaseId, RefusedFor
from windrow_master.hybrid.purchases.states import FINAL, State
from windrow_proto.ids import AccountId, HostId
from windrow_proto.units import HOUR, MINUTE, SECOND, Microcents

BACKENDS_MAX: Final = 64
LIVING_MAX: Final = 1_000
"""Purchases of a backend that are not over, whatever its caps: each is looked at four times a minute."""
HOURS_MAX: Final = 24 * 31
NOTHING: Final = Microcents(0)
CONSOLE_MAX: Final = 16_384
"""Characters of a console that are kept, its last."""
ORPHAN_TTL_NS: Final = 30 * MINUTE
"""A machine whose agent has had no word of the Master for so long ends itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The most that a backend may cost and have at once; None: no cap. currency: ISO 4217, that of all its offers.
    per_hour: of all living machines together; per_day: from midnight to midnight, UTC; in_all: ever."""

    currency: str = "USD"
    per_hour: Microcents | None = None
    per_day: Microcents | None = None
    in_all: Microcents | None = None
    machines: int | None = None
    vcpus: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendRow:
    """A provider's account that this Market buys at. settings: what is no secret. sealed: its credentials, for the
    Master's key alone; None: it has none. margin_percent: of the operator, above the cost. findings: of the last
    check. swept_at_ns: end of the last sweep."""

    name: str
    kind: str
    settings: Mapping[str, str]
    sealed: bytes | None = field(default=None, repr=False)
    caps: Caps
    margin_percent: int = 0
    created_at_ns: int
    checked_at_ns: int | None = None
    findings: Sequence[Finding] = ()
    swept_at_ns: int | None = None

    @property
    def has_secrets(self) -> bool:
        """True if it has credentials of its own."""
        return self.sealed is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Buyer:
    """A project whose work may have machines bought at a backend. per_day, in_all: the most that they cost, as in Caps;
    one of the two is given."""

    backend: str
    account_id: AccountId
    per_day: Microcents | None = None
    in_all: Microcents | None = None
    created_at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """One machine that is bought, from the wish to the end.

    account_id: whose work it takes. bought_by: the actor who asked for it. ends_at_ns: it is ended then, at the latest.
    dearest_per_hour: the most that an hour may cost when it is asked for. reserved: its cost in the worst case.
    forecast: its cost as it was expected when it was wanted; None: nothing said how long its work takes. epoch: of the
    leader that asked. seen_at_ns: when a list last showed it alive; gone_since_ns: when the first of the lists
    was asked that have shown it gone without a break. idle_since_ns: without work since; idle_ns: the same of earlier
    times. reason: why it is ended, or was not had. refused_for: the provider's. console: the last that a machine wrote
    that never joined, without secrets. for_id: the job or machine that caused it; empty: an operator did. is_kept: it
    takes no other work until that has run there.
    """

    purchase_id: PurchaseId
    backend: str
    account_id: AccountId
    bought_by: str
    offer: MachineOffer
    state: State
    state_since_ns: int
    created_at_ns: int
    ends_at_ns: int
    dearest_per_hour: Microcents
    reserved: Microcents
    forecast: Microcents | None = None
    epoch: int = 0
    asked_at_ns: int | None = None
    machine_id: str = ""
    zone: str = ""
    launched_at_ns: int | None = None
    ended_at_ns: int | None = None
    host_id: HostId | None = None
    joined_at_ns: int | None = None
    seen_at_ns: int | None = None
    gone_since_ns: int | None = None
    idle_since_ns: int | None = None
    idle_ns: int = 0
    reason: str = ""
    refused_for: RefusedFor | None = None
    console: str = ""
    for_id: str = ""
    is_kept: bool = False

    @property
    def is_living(self) -> bool:
        """True while it may cost anything."""
        return self.state not in FINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """An entry of the book of costs. cost: what the provider asks, by its billing rule; paid: what the renters paid
    for the same machine, in the market's money. A purchase that was believed over and was not has a further entry."""

    number: int = 0
    purchase_id: PurchaseId
    backend: str
    account_id: AccountId
    at_ns: int
    from_ns: int
    to_ns: int
    billed_s: int
    idle_s: int
    cost: Microcents
    currency: str
    paid: Microcents


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """What a backend costs. per_hour: of its living machines; today, in_all: entries of the book and what the living
    have cost until now; reserved: what the living may cost in the worst case."""

    backend: str
    currency: str
    per_hour: Microcents = NOTHING
    today: Microcents = NOTHING
    in_all: Microcents = NOTHING
    reserved: Microcents = NOTHING
    living: int = 0
    vcpus: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Something that a sweep looked at. machine_id: or the id of a leftover."""

    machine_id: str
    purchase_id: PurchaseId
    said: str


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The result of a sweep. ended: of this market and of no living purchase, its end was asked for; left_alone: of a
    living purchase, or already gone; unknown: the provider refused, or did not answer about it."""

    ended: Sequence[Found] = ()
    left_alone: Sequence[Found] = ()
    unknown: Sequence[Found] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The times of purchases at a backend.

    list_lag_ns: of its lists. call_ns: a call that buys has an answer by then, or none. late_ns: so long after that the
    provider may still do what was asked. margin_ns: beside all of these. boot_ns: by then the agent has joined.
    idle_ns: a machine without work is ended after it; rest_ns: the least time that one without work is kept. drain_ns:
    work has so long to leave.
    """

    list_lag_ns: int = MINUTE
    call_ns: int = 2 * MINUTE
    late_ns: int = 2 * MINUTE
    margin_ns: int = MINUTE
    boot_ns: int = 15 * MINUTE
    idle_ns: int = 30 * MINUTE
    rest_ns: int = 5 * MINUTE
    drain_ns: int = 2 * MINUTE

    @property
    def doubt_ns(self) -> int:
        """So long after it was asked for, a machine that no list shows was never made."""
        return self.list_lag_ns + self.call_ns + self.late_ns + self.margin_ns


def run_host(purchase_id: PurchaseId) -> HostId:
    """The host id in the rental of a run, which has no host: its purchase's id."""
    return HostId(purchase_id)


OVERRUN_S: Final = ORPHAN_TTL_NS // SECOND
"""The most seconds past its end that a machine is paid for in the worst case: the Master is away then."""
HOUR_S: Final = HOUR // SECOND
