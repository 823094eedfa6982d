"""Reports as files: no spreadsheet computes a name, no page runs one."""

from datetime import date

import pytest

from windrow_master.reports.days import Days
from windrow_master.reports.model import Cell, Dimension, Measure, Query, Report, Scope, View
from windrow_master.reports.output import csv_cell, csv_text, report_page, value_text
from windrow_proto.units import HOUR, MICROCENTS_PER_UNIT

DAYS = Days(date(2025, 11, 1), date(2025, 11, 30))


def report(name):
    query = Query(
        scope=Scope(View.ALL), measures=(Measure.COST, Measure.HELD), by=(Dimension.PROJECT,), days=DAYS, filters={}
    )
    values = {Measure.COST: 5 * MICROCENTS_PER_UNIT // 4, Measure.HELD: 3 * HOUR}
    return Report(query, [Cell(("account_1",), (name,), values)], values)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1+2", "@x", "|x", "%x", "\t=1", "\r=1", "＝1", "\ufe66\u0661"])
def test_a_name_that_is_a_formula_is_marked_as_text(name):
    cell = csv_cell(name)
    assert cell.startswith(("\"'", "'"))
    assert name.strip("\t\r") in cell


@pytest.mark.parametrize("unseen", "\u200b\u2060\u00ad\u202a\u2066\u061c\u180e\ufe00\u00a0\u3000")
def test_a_formula_behind_what_is_not_seen_is_marked_too(unseen):
    assert csv_cell(unseen + "=1").startswith("\"'")
    assert csv_cell(unseen + "lab") == unseen + "lab"


def test_a_number_and_a_name_are_written_as_they_are():
    assert [csv_cell(one) for one in ("-1.5", "12", "lab", "a,b", 'a"b')] == ["-1.5", "12", "lab", '"a,b"', '"a""b"']
    assert csv_text(report("lab")).splitlines() == [
        "project,project_name,cost_TEST,held_gpu_hours",
        "account_1,lab,1.25,3.0000",
    ]


def test_a_page_is_whole_by_itself_and_runs_nothing():
    page = report_page(report("<script>alert(1)</script>"), lambda found, cell: 'https://m/reports?project="x"&rows=1')
    assert "<script" not in page and "&lt;script&gt;" in page
    assert 'href="https://m/reports?project=&quot;x&quot;&amp;rows=1"' in page
    assert "src=" not in page and "@import" not in page and page.startswith("<!doctype html>")


def test_figures_are_told_with_all_their_digits():
    values = {Measure.COST: 1, Measure.HELD: HOUR, Measure.OFFERED: 4 * HOUR, Measure.INCIDENTS: 2}
    said = [value_text(one, values) for one in (Measure.COST, Measure.HELD, Measure.OCCUPANCY, Measure.INCIDENTS)]
    assert said == [value_text(Measure.COST, values), "1.0000", "0.2500", "2"] and said[0].endswith("1")
    assert value_text(Measure.OCCUPANCY, {}) == ""
