"""The pretend Master's months: a project that rents two machines and owns a host, and the sums of all projects."""

from decimal import Decimal
from typing import Any

from fastapi import FastAPI

from tests.browser.pretend_world import Json, World, at
from windrow_master.market.months import FORECAST_METHOD, Month, day_text
from windrow_proto.units import DAY, parse_time

NAMES = {
    "machine": (("cluster_1", "training <b>run</b>"), ("cluster_2", "notebook")),
    "job": (("job_1", "nightly"), (None, "Machines without a job")),
    "gpu": (("h100", "h100"), ("cpu", "CPUs")),
    "person": (("user_1", "ada"), ("service_1", "ci")),
    "project": (("account_1", "first account"), ("account_2", "another account")),
    "host": (("host_1", "rack7-node1"), ("host_2", "rack7-node2")),
    "model": (("h100", "h100"), ("a100", "a100")),
}
LOST = {"idle": "12.50", "paused": "0.00", "faulty": "3.25", "offline": "0.75"}


def billing_routes(app: FastAPI, world: World) -> None:
    """What a month cost and brought; nothing where there are no hosts."""

    @app.get("/api/v1/usage")
    async def usage(by: str = "", month: str = "", scope: str = "project") -> Json:
        said, rows = _month(world, by or "machine", month, scope)
        spent = _sum(said["days"])
        own: Json = {"balance": "99.91", "empty_at": at(-2 * 86_400), "limit": str(Decimal(spent) + 10)}
        own = own if scope == "project" else dict.fromkeys(own)
        running = {"per_hour": "1.74", "running": 2, "held": "0.43"} | own
        forecast = {"forecast": None if month else str(Decimal(spent) + 30), "forecast_method": FORECAST_METHOD}
        rows = [one | {"running_hours": 12.5} for one in rows]
        return said | running | forecast | {"spent": spent, "rows": rows}

    @app.get("/api/v1/earnings")
    async def earnings(by: str = "", month: str = "", scope: str = "project") -> Json:
        said, rows = _month(world, by or "host", month, scope)
        hours: Json = dict.fromkeys(("paused_hours", "faulty_hours", "offline_hours"), 4.25)
        times = hours | {"rented_hours": 300.0, "idle_hours": 100.0, "occupancy_ratio": 0.73, "lost": LOST}
        more = {"fees": "0.10", "host_id": None, "simulated": False, "times": times}
        days = [one | {"occupancy_ratio": (number % 10) / 10} for number, one in enumerate(said["days"])]
        sums = {"earned": _sum(days), "per_hour": "1.65", "fees": "0.20", "times": times}
        return said | sums | {"days": days, "rows": [one | more for one in rows]}

    @app.get("/api/v1/reports")
    async def reports(measure: str = "cost", by: str = "day", view: str = "all", period: str = "") -> Json:
        days = [] if period == "last-week" or not world.hosts else ["2026-11-01", "2026-11-02", "2026-11-03"]
        keys: list[list[Json]] = [[{"id": day, "name": day}] for day in days]
        if "," in by or by not in ("", "day"):
            named: list[Json] = [{"id": "account_1", "name": "first <b>account</b>"}, {"id": None, "name": ""}]
            keys = [[one, *key] if by == "project,day" else [*key, one] for key in keys for one in named]
            keys = keys if "," in by else [[one] for one in named if days]
        values = [{measure: f"{number % 5}.2500"} for number in range(len(keys))]
        words = "measure=cost&from=2026-11-01&to=2026-11-03&time_zone=UTC&view=all"
        cells = [
            {"keys": key, "values": value, "rows": f"/api/v1/reports/rows?{words}&number={number}"}
            for number, (key, value) in enumerate(zip(keys, values, strict=True))
        ]
        unit = "money" if measure == "cost" else "GPU hours"
        total = str(sum((Decimal(one[measure]) for one in values), Decimal()))
        said = {"measures": [measure], "units": {measure: unit}, "by": [one for one in by.split(",") if one]}
        said |= {"first_day": "2026-11-01", "last_day": "2026-11-03", "time_zone": "UTC", "currency": "CRD"}
        return said | {"view": view, "test_money": True, "totals": {measure: total}, "cells": cells}

    @app.get("/api/v1/reports/rows")
    async def report_rows() -> Json:
        row: Json = {"source": "rentals", "id": "rental_1", "name": "training <b>run</b>", "workload_id": "workload_1"}
        row |= {"at": at(), "keys": {"host": "host_1", "tier": "h100/A"}, "values": {"cost": "0.25"}}
        return {"items": [row | {"receipt": "/api/v1/receipts/receipt_1"}], "next_cursor": None, "count": 1}

    @app.get("/api/v1/report-schedules")
    async def report_schedules() -> Json:
        return {"items": [], "next_cursor": None}


def _month(world: World, by: str, month: str, scope: str) -> tuple[Json, list[Json]]:
    now_ns = parse_time(at())
    now = Month.of(now_ns)
    before = Month.of((now.days.start - 1) * DAY)
    days = [day_text(day) for day in (Month.parse(month) if month else now).days if day * DAY <= now_ns]
    is_empty = not world.hosts or month == str(before)
    rows: list[Json] = [
        {"id": id_, "name": name, "days": [f"{(share + at_day) % 7}.25" for at_day in range(len(days))]}
        for share, (id_, name) in enumerate(NAMES[by])
    ]
    rows = [] if is_empty else [one | {"amount": str(sum(map(Decimal, one["days"])))} for one in rows]
    amounts = [str(sum((Decimal(one["days"][number]) for one in rows), Decimal("0.00"))) for number in range(len(days))]
    said: dict[str, Any] = {"month": month or str(now), "months": [str(now), str(before)], "by": by, "scope": scope}
    said |= {"currency": "CRD", "test_money": True, "today": amounts[-1]}
    return said | {"days": [{"day": d, "amount": a} for d, a in zip(days, amounts, strict=True)]}, rows


def _sum(days: list[Json]) -> str:
    return str(sum(Decimal(one["amount"]) for one in days))
