"""Decides what the spending limits of projects and tokens leave: for a new lease, for a hold, for a charge. Pure.

    may be charged     limit - charged
    may be set aside   limit - charged - held by all leases that count for it

Charges come out of holds, so that what runs never costs more than a limit. A month is one of the calendar in UTC; a
charge counts for the month in which the ledger posts it, and what is held when one ends counts for the next one.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from windrow_master.identity.model import SpenderKind
from windrow_master.market.model import NOTHING, Rental
from windrow_proto.errors import SpendingLimitReached
from windrow_proto.ids import AccountId
from windrow_proto.units import DAY, Microcents, money_text, parse_time, time_text


class Limit(StrEnum):
    """The kinds of limits, by their fields."""

    HOURLY = "max_hourly_cost"
    MONTHLY = "max_monthly_cost"
    TOTAL = "max_total_cost"
    LEASES = "max_leases"

    @property
    def flag(self) -> str:
        """Its option on a command line."""
        return "--" + self.value.removesuffix("_cost").replace("_", "-")


_WORDS: Final = {Limit.MONTHLY: "a month (UTC)", Limit.TOTAL: "in all"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a spender may spend; None: as much as there is. max_hourly_cost: the price per hour of all that runs at
    once. max_leases: rented clusters at once. idle_ns: of a new machine that was asked for without an idle time of its
    own."""

    max_hourly_cost: Microcents | None = None
    max_monthly_cost: Microcents | None = None
    max_total_cost: Microcents | None = None
    max_leases: int | None = None
    idle_ns: int | None = None


NO_LIMITS: Final = Limits()
MARKS: Final = (50, 80, 95)
"""Percent of a limit or budget at which whoever spends is told."""


@dataclass(frozen=True, slots=True)
class SpendingLimit:
    """The limits of one project, token or service account, and what was charged that counts for them: in all, and in
    the month that it was last charged in. account_id: its project."""

    spender_id: str
    account_id: AccountId
    name: str
    limits: Limits
    spent: Microcents
    month: str
    month_spent: Microcents
    set_at_ns: int
    set_by: str

    @property
    def whose(self) -> str:
        """In a sentence."""
        return f"the {SpenderKind.of(self.spender_id).words} {self.name}"


@dataclass(frozen=True, slots=True)
class Use:
    """What the leases that count for a limit take now. held: set aside and not charged yet; hourly_cost: the price per
    hour of those that are not being ended, leases: their number."""

    held: Microcents = NOTHING
    hourly_cost: Microcents = NOTHING
    leases: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request takes more. hold: to set aside first."""

    hourly_cost: Microcents
    hold: Microcents
    leases: int = 1


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that a rental may cost in all, and the limit that says so, in words."""

    amount: Microcents
    words: str


Used = tuple[SpendingLimit, Use]
"""A limit and what is taken of it."""


def month_of(now_ns: int) -> str:
    """The calendar month of a wall time in UTC, such as 2026-05."""
    return time_text(now_ns)[:7]


def month_began_ns(now_ns: int) -> int:
    """When it began, in wall time."""
    return parse_time(f"{month_of(now_ns)}-01T00:00:00Z")


def month_ends_ns(now_ns: int) -> int:
    """When it ends, in wall time."""
    return month_began_ns(month_began_ns(now_ns) + 32 * DAY)


def spent_in_month(one: SpendingLimit, now_ns: int) -> Microcents:
    """What was charged in the month of this wall time."""
    return one.month_spent if one.month == month_of(now_ns) else NOTHING


def charged(one: SpendingLimit, amount: Microcents, now_ns: int) -> SpendingLimit:
    """The row after a charge that counts for it."""
    in_month = Microcents(spent_in_month(one, now_ns) + amount)
    return replace(one, spent=Microcents(one.spent + amount), month=month_of(now_ns), month_spent=in_month)


def mark_passed(before: Microcents, after: Microcents, most: Microcents) -> int | None:
    """The highest mark, in percent, that a charge has reached; None: none that was not reached before."""
    passed = [mark for mark in MARKS if before * 100 < most * mark <= after * 100]
    return max(passed, default=None)


def marks_passed(before: SpendingLimit, after: SpendingLimit, now_ns: int) -> list[tuple[Limit, int, Microcents]]:
    """The limits of money of which a charge has reached a mark: kind, percent, amount of the limit."""
    spent = (
        (Limit.MONTHLY, before.limits.max_monthly_cost, spent_in_month(before, now_ns), after.month_spent),
        (Limit.TOTAL, before.limits.max_total_cost, before.spent, after.spent),
    )
    found = [(kind, mark_passed(was, now, most), most) for kind, most, was, now in spent if most]
    return [(kind, mark, most) for kind, mark, most in found if mark is not None]


def _money(one: SpendingLimit, now_ns: int) -> list[tuple[Microcents, Limit, Microcents]]:
    """For each limit of money what may still be charged, below zero where one was lowered; with its amount."""
    kinds = (
        (Limit.MONTHLY, one.limits.max_monthly_cost, spent_in_month(one, now_ns)),
        (Limit.TOTAL, one.limits.max_total_cost, one.spent),
    )
    return [(Microcents(most - spent), kind, most) for kind, most, spent in kinds if most is not None]


def chargeable(limits: Iterable[SpendingLimit], now_ns: int) -> Microcents | None:
    """The most that all of these let be charged now; None: they say nothing about it."""
    left = (amount for one in limits for amount, _, _ in _money(one, now_ns))
    least = min(left, default=None)
    return None if least is None else Microcents(max(0, least))


def holdable(used: Iterable[Used], now_ns: int) -> Microcents | None:
    """The most that may be set aside beside what is held; None: no limit."""
    left = (amount - use.held for one, use in used for amount, _, _ in _money(one, now_ns))
    least = min(left, default=None)
    return None if least is None else Microcents(max(0, least))


def cap(rental: Rental, used: Iterable[Used], now_ns: int) -> Cap | None:
    """The most that a rental may cost by the limit that leaves it least: what it holds and may still be given, but no
    more than may be charged. None: no limit of money."""
    found: list[Cap] = []
    for one, use in used:
        for amount, kind, most in _money(one, now_ns):
            more = min(rental.held_left + max(0, amount - use.held), max(0, amount))
            found.append(Cap(Microcents(rental.charged + more), _named(one, kind, money_text(most))))
    return min(found, key=lambda each: each.amount, default=None)


def check(one: SpendingLimit, use: Use, asked: Asked, now_ns: int) -> None:
    """Raises SpendingLimitReached where a request would pass one of these limits."""
    most, leases = one.limits.max_hourly_cost, one.limits.max_leases
    if leases is not None and asked.leases and use.leases + asked.leases > leases:
        _refuse(one, Limit.LEASES, str(leases), str(max(0, leases - use.leases)), "another one was asked for")
    if most is not None and asked.hourly_cost > 0 and use.hourly_cost + asked.hourly_cost > most:
        left = money_text(Microcents(max(0, most - use.hourly_cost)))
        _refuse(one, Limit.HOURLY, money_text(most), left, f"this costs {money_text(asked.hourly_cost)} an hour")
    for amount, kind, limit in _money(one, now_ns):
        room = Microcents(max(0, amount - use.held))
        if asked.hold > room:
            why = f"15 minutes of this need {money_text(asked.hold)}"
            _refuse(one, kind, money_text(limit), money_text(room), why)


def _named(one: SpendingLimit, kind: Limit, most: str) -> str:
    if kind is Limit.LEASES:
        words = f"{most} lease{'' if most == '1' else 's'} at once"
    else:
        words = f"{most} {_WORDS.get(kind, 'an hour for all that runs at once')}"
    return f"the limit of {one.whose}, {words}"


def _refuse(one: SpendingLimit, kind: Limit, most: str, left: str, why: str) -> None:
    named = _named(one, kind, most)
    said = f"{named[0].upper()}{named[1:]}, leaves {left}; {why}."
    raise SpendingLimitReached(f"{said} {_way(one, kind)}", subject=one.spender_id)


def _way(one: SpendingLimit, kind: Limit) -> str:
    """Who can raise a limit, and how."""
    of = SpenderKind.of(one.spender_id)
    who = {
        SpenderKind.PROJECT: "An admin of the project or of its organisation, or an operator",
        SpenderKind.TOKEN: "The token's user, signed in, or an admin of the project",
        SpenderKind.SERVICE_ACCOUNT: "An admin of the project or of its organisation",
    }[of]
    option = f"--{of.value.replace('_', '-')} {one.spender_id}"
    return f"{who} can raise it: windrow limit set {option} {kind.flag} {'N' if kind is Limit.LEASES else 'AMOUNT'}"
