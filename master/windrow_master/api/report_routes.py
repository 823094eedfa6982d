"""Routes of reports: sums by two dimensions, the rows below a figure, statements, and reports that are sent by mail."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Depends, Query, Response
from pydantic import Field

from windrow_master.api import answers
from windrow_master.api.answers import Money, Out, Read, Time
from windrow_master.api.auth import Reach
from windrow_master.api.bodies import Body
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.headers import POLICY
from windrow_master.api.paging import Cursor, Limit, page_of, read_number, write_cursor
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.market.model import RentalId, receipt_of
from windrow_master.reports.asking import Asked, words_of
from windrow_master.reports.model import SEEN, UNITS, Cell, Dimension, Measure, Report, SourceRow, Values, View
from windrow_master.reports.output import POSTED, csv_text, report_page, statement_page, value_text
from windrow_proto.units import CURRENCY_TEST

route = Routes("reports")

Value = Annotated[str | None, Query(max_length=128, description="Only this; `none`: only what has none")]
Format = Annotated[
    Literal["json", "csv", "html"], Query(description="CSV for spreadsheets; HTML: one page that is ready to print")
]
Words = Annotated[str, Query(max_length=200)]


async def period_of(
    period: Annotated[str, Query(max_length=40, description="2026-11, last-month, ...; default: this-month")] = "",
    first: Annotated[str, Query(alias="from", max_length=10, description="First day, in place of a period")] = "",
    last: Annotated[str, Query(alias="to", max_length=10, description="Last day; default: today")] = "",
    time_zone: Annotated[str, Query(max_length=64, description="Of the days, such as Europe/Berlin")] = "UTC",
    view: Annotated[str, Query(max_length=20, description="`project`, `hosts` or `all`; default: by your roles")] = "",
) -> Asked:
    """The period of a report, and whose figures it has."""
    return Asked(period=period, first=first, last=last, time_zone=time_zone, view=view)


async def asked_of(
    period: Annotated[Asked, Depends(period_of)],
    measure: Annotated[Words, Query(description=f"Commas between them: {', '.join(Measure)}")] = "",
    by: Annotated[Words, Query(description=f"At most two, with a comma: {', '.join(Dimension)}")] = "",
    organisation: Value = None,
    project: Value = None,
    provider: Value = None,
    host: Value = None,
    tier: Value = None,
    model: Value = None,
    region: Value = None,
    kind: Value = None,
    day: Value = None,
) -> Asked:
    """The query of a report."""
    given = dict(zip(Dimension, (organisation, project, provider, host, tier, model, region, kind, day), strict=True))
    filters = {one.value: value for one, value in given.items() if value is not None}
    return _changed(period, measures=measure, by=by, filters=filters)


def _changed(asked: Asked, **values: Any) -> Asked:
    return Asked(**{name: getattr(asked, name) for name in Asked.__dataclass_fields__} | values)


Wanted = Annotated[Asked, Depends(asked_of)]
Figures = Annotated[
    dict[str, str | None],
    Field(description="By measure: money as a decimal text, hours of GPUs, a ratio, or a count; null of no time"),
]


class KeyOut(Out):
    """One key of a sum."""

    id: Annotated[str | None, Field(description="Null: it has none")]
    name: str


class CellOut(Out):
    """The sums of one combination of keys."""

    keys: list[KeyOut]
    values: Figures
    rows: Annotated[str, Field(description="The path of the rows that these are the sums of")]


class ReportOut(Out):
    """Sums of a period. Those of the cells add up to the totals, whatever they are divided by."""

    measures: list[str]
    units: Annotated[dict[str, str], Field(description="By measure: money, GPU hours, ratio or incidents")]
    by: list[str]
    view: str
    first_day: str
    last_day: str
    time_zone: str
    currency: str
    test_money: bool
    totals: Figures
    cells: Annotated[list[CellOut], Field(description="By day, or the greatest of the first measure first")]


class SourceRowOut(Out):
    """A row that a figure is the sum of: what one host ran of a rental, the time of a slot, or an incident."""

    source: str
    id: Annotated[str, Field(description="Of the rental, the slot, or what had the incident")]
    name: str
    workload_id: str | None
    at: Annotated[Time, Field(description="When it began, or the begin of the period")]
    keys: Annotated[dict[str, str], Field(description="By dimension")]
    values: Figures
    receipt: Annotated[str | None, Field(description="The path of its receipt, with receipts and transfers")]


class RowsOut(answers.Page[SourceRowOut]):
    """A page of such rows."""

    count: Annotated[int, Field(description="Of all pages")]


class TransfersOut(Out):
    """What the ledger posted of one kind."""

    kind: str
    kind_title: Annotated[str, Field(description="The kind in words"), Read(lambda one: POSTED.get(one.kind, one.kind))]
    given: Money
    got: Money


class StatementOut(Out):
    """The statement of a project, a provider or everybody."""

    view: str
    name: str
    reports: list[ReportOut]
    transfers: Annotated[list[TransfersOut], Field(description="By when they were posted, seconds after what they pay")]


class ScheduleBody(Body):
    """A report that is sent to you by mail."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    cron: Annotated[str, Field(max_length=100, description="Minute, hour, day, month, weekday: `0 7 1 * *`")]
    time_zone: Annotated[str, Field(max_length=64)] = "UTC"
    measure: Annotated[str, Field(max_length=200)] = ""
    by: Annotated[str, Field(max_length=200)] = ""
    period: Annotated[str, Field(max_length=40, description="As it is when the mail is sent")] = "last-month"
    view: Annotated[str, Field(max_length=20)] = ""
    filters: Annotated[dict[str, str], Field(default_factory=dict, max_length=9, description="Values by dimension")]


class ScheduleOut(Out):
    """A schedule of yours."""

    id: Annotated[str, Read("schedule_id")]
    name: str
    cron: str
    time_zone: str
    measure: Annotated[str, Read(lambda one: one.query["measures"])]
    by: Annotated[str, Read(lambda one: one.query["by"])]
    period: Annotated[str, Read(lambda one: one.query["period"])]
    view: Annotated[str, Read(lambda one: one.query["view"])]
    filters: Annotated[dict[str, str], Read(lambda one: one.query["filters"])]
    created_at: Time
    next_at: Annotated[Time, Read("due_at_ns")]
    sent_at: Time | None
    problem: Annotated[str | None, Field(description="Why the last one was not sent")]


@route.get("/reports", may=Permission.LEDGER_READ, answer=ReportOut)
async def report(services: Serving, principal: Asking, asked: Wanted, format: Format = "json") -> Any:
    """Sums of cost, earnings, hours of GPUs, occupancy or incidents by at most two dimensions."""
    scope = await services.reports.scope(principal, asked.wanted_view)
    found = await services.reports.report(asked.query(scope, services.reports.now_ns))
    if format == "csv":
        return Response(csv_text(found), media_type="text/csv")
    if format == "html":
        return _page(report_page(found, _linked(services)))
    return _report(found)


@route.get("/reports/rows", may=Permission.LEDGER_READ, answer=RowsOut)
async def report_rows(
    services: Serving, principal: Asking, asked: Wanted, limit: Limit = 100, cursor: Cursor = None
) -> Any:
    """The rows that the sums of a report are made of, the greatest first. `by` says nothing here."""
    scope = await services.reports.scope(principal, asked.wanted_view)
    query, begin = _changed(asked, by="").query(scope, services.reports.now_ns), read_number(cursor) or 0
    found, count = await services.reports.rows(query, begin, limit)
    end = begin + len(found)
    items = [_row(one, query.measures, scope.view) for one in found]
    return {"items": items, "next_cursor": write_cursor(str(end)) if end < count else None, "count": count}


@route.get("/reports/statement", may=Permission.LEDGER_READ, answer=StatementOut)
async def statement(
    services: Serving,
    principal: Asking,
    asked: Annotated[Asked, Depends(period_of)],
    format: Annotated[Literal["json", "html"], Query()] = "json",
) -> Any:
    """The statement of a month or another period: what the project spent, what its hosts earned, or everything."""
    scope = await services.reports.scope(principal, asked.wanted_view)
    days = asked.query(scope, services.reports.now_ns).days
    found = await services.reports.statement(principal, scope, days)
    if format == "html":
        return _page(statement_page(found, _linked(services)))
    return StatementOut.of(found, reports=[_report(one) for one in found.reports])


@route.get("/report-schedules", may=Permission.LEDGER_READ, answer=answers.Page[ScheduleOut])
async def schedules(services: Serving, principal: Asking, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """The reports that are sent to you by mail, of this project."""
    found = await services.report_schedules.list(principal)
    return page_of(found, limit, cursor, ScheduleOut.of, lambda one: one.schedule_id)


@route.post("/report-schedules", may=Permission.LEDGER_READ, answer=ScheduleOut, status_code=201)
async def add_schedule(services: Serving, principal: Asking, body: ScheduleBody) -> Any:
    """Have a report sent to your mail address, with what your roles show then."""
    asked = Asked(
        measures=body.measure,
        by=body.by,
        period=body.period,
        time_zone=body.time_zone,
        view=body.view,
        filters=body.filters,
    )
    return ScheduleOut.of(await services.report_schedules.add(principal, body.name, body.cron, asked))


@route.delete("/report-schedules/{schedule_id}", may=Permission.LEDGER_READ, reach=Reach.OWN, status_code=204)
async def remove_schedule(services: Serving, principal: Asking, schedule_id: str) -> Response:
    """Send this report no more."""
    await services.report_schedules.remove(principal, schedule_id)
    return Response(status_code=204)


def _report(found: Report) -> dict[str, Any]:
    query = found.query
    return {
        "measures": list(query.measures),
        "units": {one.value: UNITS[one] for one in query.measures},
        "by": list(query.by),
        "view": query.scope.view,
        "first_day": query.days.first.isoformat(),
        "last_day": query.days.last.isoformat(),
        "time_zone": query.days.zone,
        "currency": CURRENCY_TEST,
        "test_money": True,
        "totals": _figures(query.measures, found.totals),
        "cells": [_cell(found, one) for one in found.cells],
    }


def _cell(found: Report, cell: Cell) -> dict[str, Any]:
    words = words_of(found.query, dict(zip(found.query.by, cell.keys, strict=True)))
    return {
        "keys": [{"id": key or None, "name": name} for key, name in zip(cell.keys, cell.names, strict=True)],
        "values": _figures(found.query.measures, cell.values),
        "rows": f"/api/v1/reports/rows?{urlencode(words)}",
    }


def _figures(measures: tuple[Measure, ...], values: Values) -> Mapping[str, str | None]:
    return {one.value: value_text(one, values) or None for one in measures}


def _row(one: SourceRow, measures: tuple[Measure, ...], view: View) -> dict[str, Any]:
    shown = {name.value: key for name, key in one.keys.items() if name in SEEN[view][1]}
    is_rental = bool(one.workload_id) and view is not View.HOSTS  # whose receipt is its renter's
    receipt = f"/api/v1/receipts/{receipt_of(RentalId(one.id))}" if is_rental else None
    return SourceRowOut.of(one, keys=shown, values=_figures(measures, one.values), receipt=receipt)


def _linked(services: Services) -> Any:
    """The address of the rows of a cell in the console."""

    def link(found: Report, cell: Cell) -> str:
        words = words_of(found.query, dict(zip(found.query.by, cell.keys, strict=True)))
        return f"{services.https_url}/reports?{urlencode({**words, 'rows': '1'})}"

    return link


def _page(text: str) -> Response:
    policy = f"{POLICY}; style-src 'unsafe-inline'"
    return Response(text, media_type="text/html", headers={"Content-Security-Policy": policy})
