"""The route of the console's first page: the state of the fleet, the earnings, and the latest events."""

from asyncio import Lock
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from fastapi import Query
from pydantic import BaseModel, Field

from windrow_master.api import overview
from windrow_master.api.answers import EventOut
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.event_names import event_json, names_in
from windrow_master.api.event_severity import INFO_BEGINNINGS, LOUD, EventSeverity, is_at_least, severity_of
from windrow_master.api.fleet_feed import feed_of
from windrow_master.api.overview import Earnings, Tally
from windrow_master.api.route import Routes
from windrow_master.api.visibility import oversees
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal, Role
from windrow_master.market.limits import month_began_ns
from windrow_master.market.model import LedgerAccount, account_of
from windrow_master.sift import sift
from windrow_master.store.model import EventRow
from windrow_master.store.unit import UnitOfWork
from windrow_proto.units import CURRENCY_TEST, DAY, Microcents, money_text, time_text

route = Routes("overview")

EVENTS_SHOWN = 8
"""More would be the page of events."""
EVENTS_LOOKED_AT = 2_000
"""The newest, among which the last ones are looked for."""

Own = Annotated[bool, Query(description="As for an account that oversees nothing: revenue and troubles of one's own")]

_EARNINGS: WeakKeyDictionary[object, tuple[Earnings, Lock]] = WeakKeyDictionary()
"""The folded earnings of each served ledger, so that a glance reads only the rows since the last one."""


class UseCounts(BaseModel):
    """The number in each state; their sum is `total`."""

    total: int
    idle: int
    rented: int
    faulty: int
    offline: int
    paused: int


class TierCounts(BaseModel):
    """One tier, real and simulated apart."""

    tier: str
    simulated: bool
    hosts: UseCounts
    gpus: UseCounts


class DayAmount(BaseModel):
    """The earnings of one UTC day."""

    day: str
    amount: str


class Revenue(BaseModel):
    """The earnings of providers and the platform by the ledger, in UTC days. `all`: everybody's; `own`: the asking
    account's."""

    scope: str
    currency: str
    test_money: bool
    today: str
    last_7_days: str
    last_30_days: str
    this_month: str
    days: Annotated[list[DayAmount], Field(description=f"The last {overview.DAYS}, oldest first")]


class Rates(BaseModel):
    """The hourly earnings at the asked prices: of rented slots, and of idle ones if they were rented. Real hosts
    only, and of them those in the scope of `revenue`."""

    rented: str
    idle: str


class OverviewOut(BaseModel):
    """The installation at a glance. `events`: the last ones beside everyday work, empty for those who may not see all
    of them. `revenue`: null for an account that neither has hosts nor is a provider."""

    at: str
    hosts: UseCounts
    gpus: UseCounts
    simulated_hosts: int
    simulated_gpus: int
    tiers: list[TierCounts]
    per_hour: Rates
    revenue: Revenue | None
    accesses: int
    events: list[EventOut]


@route.get("/overview", may=Permission.FLEET_READ, answer=OverviewOut)
async def overview_now(services: Serving, principal: Asking, own: Own = False) -> Any:
    """The installation at a glance: counts by tier, revenue, what happened last."""
    feed = feed_of(services)
    sees_all = oversees(principal) and not own
    account = principal.account_id
    sums = overview.glance(services.fleet.view, await feed.book(), None if sees_all else account)
    has_revenue = (
        sees_all
        or Role.PROVIDER in principal.roles
        or any(entry.host.owner_account == account for entry in services.fleet.view)
    )
    events = await services.store.read(lambda uow: _last_events(services, uow, principal)) if sees_all else ()
    return {
        "at": time_text(services.clock.wall_ns()),
        "hosts": counts_json(sums.hosts),
        "gpus": counts_json(sums.gpus),
        "simulated_hosts": sums.simulated_hosts,
        "simulated_gpus": sums.simulated_gpus,
        "tiers": [
            {
                "tier": one.tier,
                "simulated": one.simulated,
                "hosts": counts_json(one.hosts),
                "gpus": counts_json(one.gpus),
            }
            for _, one in sorted(sums.tiers.items())
        ],
        "per_hour": {
            "rented": money_text(Microcents(sums.rented_per_hour)),
            "idle": money_text(Microcents(sums.idle_per_hour)),
        },
        "revenue": await _revenue(services, principal, sees_all) if has_revenue else None,
        "accesses": len({access["access_id"] for access in services.health.accesses()}),
        "events": [event_json(row, names) for row, names in events],
    }


def _last_events(services: Services, uow: UnitOfWork, principal: Principal) -> list[tuple[EventRow, Mapping[str, str]]]:
    """The latest beside everyday work, with the names in them."""
    newest = uow.events.newest(limit=1)
    first = newest[0].number - EVENTS_LOOKED_AT if newest else None

    def rows(last: EventRow | None, size: int) -> Sequence[EventRow]:
        before = None if last is None else last.number
        return uow.events.newest(None, before, size, first=first, but=INFO_BEGINNINGS, but_for=LOUD)

    found, _ = sift(
        rows, lambda row: is_at_least(severity_of(row.kind, row.fields), EventSeverity.NOTICE), EVENTS_SHOWN, None
    )
    return [(row, names_in(services, uow, principal, [row])) for row in found]


def counts_json(tally: Tally) -> dict[str, int]:
    """Return the number in each state, and their sum."""
    return {"total": sum(tally.counts.values()), **{state.value: count for state, count in tally.counts.items()}}


async def earned(services: Services, account: LedgerAccount | None) -> list[tuple[int, Microcents]]:
    """The earnings of the last DAYS UTC days, oldest first, of one ledger account or of all: start of the day and
    sum."""
    earnings, turn = _EARNINGS.setdefault(services.store, (Earnings(), Lock()))
    async with turn:  # two that fold the same rows would count them twice
        now_ns = services.clock.wall_ns()
        since_ns = (now_ns // DAY - overview.DAYS + 1) * DAY
        number, sums = await services.market.earned_after(earnings.number, since_ns)
        earnings.fold(number, sums, now_ns)
        return earnings.days(account, now_ns)


async def _revenue(services: Services, principal: Principal, sees_all: bool) -> dict[str, Any]:
    days = await earned(services, None if sees_all else account_of(principal.account_id))
    return {
        "scope": "all" if sees_all else "own",
        "currency": CURRENCY_TEST,
        "test_money": True,
        "today": money_text(days[-1][1]),
        "last_7_days": _sum(days[-7:]),
        "last_30_days": _sum(days[-30:]),
        "this_month": _sum([one for one in days if one[0] >= month_began_ns(services.clock.wall_ns())]),
        "days": [{"day": time_text(start_ns)[:10], "amount": money_text(amount)} for start_ns, amount in days],
    }


def _sum(days: Sequence[tuple[int, Microcents]]) -> str:
    return money_text(Microcents(sum(amount for _, amount in days)))
