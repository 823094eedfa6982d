"""Routes of what a project, or all of them, spent and earned in a month."""

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from windrow_master.api.answers import Amount, Money, Out, Read, Time, Written
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.route import Routes
from windrow_master.billing.gpu_time import Share
from windrow_master.billing.service import Earnings, Usage
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import INSTALLATION_ROLES, Principal
from windrow_master.market.months import FORECAST_METHOD, day_text
from windrow_master.market.occupancy import LOST, Times
from windrow_proto.errors import Forbidden
from windrow_proto.ids import AccountId
from windrow_proto.units import CURRENCY_TEST, SECOND, Microcents, money_text

route = Routes("market")

MonthGiven = Annotated[
    str | None,
    Query(pattern=r"^\d{4}-(0[1-9]|1[0-2])$", description="A month in UTC, such as 2026-11; default: this one"),
]
Scope = Annotated[
    Literal["project", "all"],
    Query(description="`all`: sums of all projects, for operators and auditors"),
]
Hours = Annotated[float, Written(lambda time_ns: round(time_ns / (3600 * SECOND), 2))]
Currency = Annotated[str, Read(lambda _: CURRENCY_TEST)]
TestMoney = Annotated[bool, Read(lambda _: True)]
MonthText = Annotated[str, Written(str)]
Months = Annotated[
    list[str],
    Field(description="Those that can be asked for, the latest first"),
    Written(lambda found: [str(one) for one in found]),
]
Days = Annotated[list[Money], Field(description="By day of the month, as `days` has them")]


class DaySpentOut(Out):
    """The cost of one UTC day."""

    day: str
    amount: Money


class ShareOut(Out):
    """The cost of one machine, job, GPU model, person or project in a month."""

    id: Annotated[str | None, Field(description="Null: what has none"), Read(lambda one: one.row.key or None)]
    name: str
    amount: Annotated[Money, Read("row.amount")]
    running_hours: Annotated[
        Hours, Field(description="Billed, of each host"), Read(lambda one: one.row.seconds * SECOND)
    ]
    days: Days


class SpendingOut(Out):
    """A month's spending. Amounts of the rows add up to those of the days, and these to `spent`. What goes on now
    (`per_hour` to `empty_at`) is of this moment, whatever the month."""

    month: MonthText
    months: Months
    by: str
    scope: str
    currency: Currency
    test_money: TestMoney
    spent: Money
    today: Annotated[Money, Field(description="0 in months that have passed")]
    forecast: Annotated[Amount, Field(description="At the month's end; null in months that have passed")]
    forecast_method: Annotated[str, Read(lambda _: FORECAST_METHOD)]
    limit: Annotated[Amount, Field(description="The project's spending limit for a month; null: none")]
    per_hour: Annotated[Money, Field(description="The price of all that runs now"), Read("now.per_hour")]
    running: Annotated[int, Field(description="Machines and clusters that run now"), Read("now.leases")]
    held: Annotated[Money, Field(description="Set aside for what runs now"), Read("now.held")]
    balance: Annotated[Amount, Field(description="Null for all projects")]
    empty_at: Annotated[
        Time | None, Field(description="When balance and hold are spent if nothing changes; null: never")
    ]
    days: list[DaySpentOut]
    rows: Annotated[list[ShareOut], Field(description="The greatest first; at most 200, the last one is the rest")]


class LostOut(Out):
    """The estimated earnings that were missed, by the reason, at the present price."""

    idle: Money
    paused: Money
    faulty: Money
    offline: Money


class GpuTimesOut(Out):
    """The hours of GPUs by state. Rented is what was billed; the others are estimates from recorded changes."""

    rented_hours: Hours
    idle_hours: Hours
    paused_hours: Hours
    faulty_hours: Hours
    offline_hours: Hours
    occupancy_ratio: Annotated[float | None, Field(description="Rented hours in all hours"), Read("occupancy")]
    lost: LostOut


class DayEarnedOut(Out):
    """The earnings of one UTC day."""

    day: str
    amount: Money
    occupancy_ratio: float | None


class EarnedOut(Out):
    """What a month brought for one host, GPU, project or model."""

    id: str
    name: str
    host_id: str | None
    simulated: bool
    amount: Money
    fees: Money
    days: Days
    times: Annotated[GpuTimesOut | None, Field(description="Null where its GPUs are not here any more")]


class EarningsOut(Out):
    """A month's earnings, without the platform's share. Amounts of the rows add up to those of the days, and these to
    `earned`."""

    month: MonthText
    months: Months
    by: str
    scope: str
    currency: Currency
    test_money: TestMoney
    earned: Money
    today: Annotated[Money, Field(description="0 in months that have passed")]
    per_hour: Annotated[Money, Field(description="Earned by what runs now")]
    fees: Annotated[Money, Field(description="The platform's share, in sums of all projects")]
    days: list[DayEarnedOut]
    times: GpuTimesOut
    rows: list[EarnedOut]


@route.get("/usage", may=Permission.RENT_READ, answer=SpendingOut)
async def month_spent(
    services: Serving,
    principal: Asking,
    by: Annotated[
        Literal["machine", "job", "gpu", "person", "project"] | None,
        Query(description="Default: machine; of all projects: project, or gpu"),
    ] = None,
    month: MonthGiven = None,
    scope: Scope = "project",
) -> Any:
    """What the project spent in a month: by day and by machine, job, GPU model or person; the forecast, what runs, and
    what is left."""
    account_id = _of(principal, scope)
    by = by or ("machine" if account_id is not None else "project")
    found = await services.billing.usage(account_id, by, month)
    rows = [ShareOut.of(one, days=_amounts(one, found)) for one in found.shares]
    days = [{"day": day, "amount": amount} for day, amount in _days(found)]
    return SpendingOut.of(found, by=by, scope=scope, days=days, rows=rows)


@route.get("/earnings", may=Permission.LEDGER_READ, answer=EarningsOut)
async def month_earned(
    services: Serving,
    principal: Asking,
    by: Annotated[
        Literal["host", "gpu", "project", "model"] | None,
        Query(description="Default: host; of all projects: project, or model"),
    ] = None,
    month: MonthGiven = None,
    scope: Scope = "project",
) -> Any:
    """What the project's hosts earned in a month: by day and by host or GPU; how much of their time was rented, and
    what was lost."""
    account_id = _of(principal, scope)
    by = by or ("host" if account_id is not None else "project")
    found = await services.billing.earnings(account_id, by, month)
    days = [
        {"day": day, "amount": amount, "occupancy_ratio": ratio}
        for (day, amount), ratio in zip(_days(found), found.occupancy, strict=True)
    ]
    rows = [_earned(one, found) for one in found.shares]
    return EarningsOut.of(found, by=by, scope=scope, days=days, rows=rows, times=_times(found.times))


def _of(principal: Principal, scope: str) -> AccountId | None:
    """Whose sums are asked for; None: everybody's. Raises Forbidden."""
    if scope == "project":
        return principal.account_id
    if not principal.roles & INSTALLATION_ROLES:
        raise Forbidden("Only operators and auditors see the sums of all projects.")
    return None


def _days(found: Usage | Earnings) -> list[tuple[str, str]]:
    pairs = zip(found.days, found.amounts, strict=True)
    return [(day_text(day), money_text(Microcents(amount))) for day, amount in pairs]


def _amounts(one: Share, found: Usage | Earnings) -> list[str]:
    return [money_text(Microcents(one.row.days.get(day, 0))) for day in found.days]


def _earned(one: Share, found: Earnings) -> dict[str, Any]:
    times = None if one.times is None else _times(one.times)
    known = {"id": one.row.key, "amount": money_text(one.row.amount), "fees": money_text(one.row.fee)}
    return EarnedOut.of(one, **known, simulated=one.is_simulated, days=_amounts(one, found), times=times)


def _times(times: Times) -> dict[str, Any]:
    hours = {f"{state}_hours": round(time_ns / (3600 * SECOND), 2) for state, time_ns in times.by_state.items()}
    lost = {state.value: money_text(Microcents(times.lost[state])) for state in LOST}
    return GpuTimesOut.of(times, **hours, lost=lost)
