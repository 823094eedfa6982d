"""`windrow report`: what it asks, its table, files and rows, and schedules."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from windrow.cli import reports
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config

REPORT = {
    "measures": ["cost"], "units": {"cost": "money"}, "by": ["model"], "view": "project", "first_day": "2026-11-01",
    "last_day": "2026-11-30", "time_zone": "UTC", "currency": "TEST", "test_money": True, "totals": {"cost": "4.25"},
    "cells": [{"keys": [{"id": "h100", "name": "h100"}], "values": {"cost": "4.00"}, "rows": "/api/v1/reports/rows"},
              {"keys": [{"id": None, "name": ""}], "values": {"cost": "0.25"}, "rows": "/api/v1/reports/rows"}],
}  # fmt: skip
ROW = {
    "source": "rentals", "id": "rental_1", "name": "train", "workload_id": "workload_1", "keys": {"host": "host_1"},
    "at": "2026-11-01T00:00:00.000Z", "values": {"cost": "4.00"}, "receipt": "/api/v1/receipts/receipt_1",
}  # fmt: skip
SCHEDULE = {"id": "schedule_1", "name": "Week", "cron": "0 7 * * 1", "next_at": "2026-11-30T07:00:00.000Z"}
FORMS = {"csv": "model,cost_TEST\r\nh100,4.00\r\n", "html": "<!doctype html>"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, Any]]:
    """What the Master was asked."""
    found: list[tuple[str, str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        path = request.url.raw_path.decode().removeprefix("/api/v1")
        found.append((request.method, path, json.loads(request.content) if request.content else None))
        form = request.url.params.get("format")
        if form is not None:
            return httpx2.Response(200, text=FORMS[form])
        if path.startswith("/report-schedules"):
            listed = {"items": [SCHEDULE], "next_cursor": None}
            return httpx2.Response(200, json=listed if request.method == "GET" else SCHEDULE)
        if path.startswith("/reports/rows"):
            return httpx2.Response(200, json={"items": [ROW], "next_cursor": None, "count": 1})
        said = {
            "view": "project",
            "reports": [REPORT],
            "transfers": [{"kind": "charge", "kind_title": "Charges", "given": "4.25", "got": "0.00"}],
        }
        return httpx2.Response(200, json=said if path.startswith("/reports/statement") else REPORT)

    transport = httpx2.MockTransport(answer)
    monkeypatch.setattr(reports, "client", lambda context: Client(Config("http://master", "wt_x"), transport))
    return found


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == code, done.output + str(done.exception)
    return done.stdout


def test_a_report_is_a_table_of_whole_amounts(asked: list[Any]) -> None:
    said = run("report", "--by", "model", "--from", "2026-11-01", "--tz", "Europe/Berlin", "--where", "kind=job,host=h")
    assert said.splitlines() == ["MODEL\tCOST", "h100\t4.00", "none\t0.25"]
    words = "by=model&from=2026-11-01&time_zone=Europe%2FBerlin&kind=job&host=h"
    assert asked == [("GET", f"/reports?{words}", None)]
    assert json.loads(run("report", "--json")) == REPORT and asked[-1][1] == "/reports?by=day"


def test_a_report_is_a_file_and_its_rows_a_list(asked: list[Any], tmp_path: Path) -> None:
    assert run("report", "--by", "model", "--csv").replace("\r\n", "\n") == FORMS["csv"].replace("\r\n", "\n")
    for words in (("report",), ("report", "statement")):
        run(*words, "--html", str(tmp_path / "page.html"))
        assert (tmp_path / "page.html").read_text() == FORMS["html"]
    assert run("report", "--rows", "--period", "2026-11").splitlines()[1].startswith("rentals\ttrain\t")
    assert asked[-1][1].startswith("/reports/rows?") and "period=2026-11" in asked[-1][1]
    assert "Charges  4.25 out, 0.00 in" in run("report", "statement")
    assert run("report", "--where", "colour=red", code=1) == "" and len(asked) == 5


def test_a_schedule_is_added_with_the_words_of_its_report_and_removed_by_name(asked: list[Any]) -> None:
    run("report", "schedule", "add", "Week", "--by", "model", "--cron", "0 7 * * 1", "--where", "kind=job")
    body = {"name": "Week", "cron": "0 7 * * 1", "by": "model", "filters": {"kind": "job"}}
    assert asked == [("POST", "/report-schedules", body)]
    run("report", "schedule", "rm", "Week")
    assert asked[-1][:2] == ("DELETE", "/report-schedules/schedule_1")
    run("report", "schedule", "rm", "Month", code=1)
