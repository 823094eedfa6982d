"""Writes reports as CSV that no spreadsheet takes for formulas, and as one HTML page that is ready to print. Pure."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from windrow_master.reports.days import Days
from windrow_master.reports.model import MONEY, UNITS, Cell, Dimension, Measure, Report, Values, ratio
from windrow_master.reports.service import Statement
from windrow_proto.units import CURRENCY_TEST, HOUR, Microcents, money_text

POSTED: Final = {
    "mint": "Credits added",
    "hold": "Holds",
    "charge": "Charges",
    "fee": "Platform fees",
    "void": "Holds given back",
    "move": "Credits moved",
    "write_off": "Written off",
}
"""Kinds of transfers for people."""
BARS_MAX: Final = 60
"""Bars of one chart on a page."""
_FORMULA: Final = "=+-@|%"
"""How a formula begins in spreadsheets."""
_UNSEEN: Final = frozenset("CZM")
"""Classes of characters that some spreadsheets strip before they look: controls, spaces, marks."""
_CONTROLS: Final = re.compile(r"[\u0000-\u0009\u000b\u000c\u000e-\u001f\u007f]")
_NUMBER: Final = re.compile(r"^-?\d+(\.\d+)?$")
STYLE: Final = """
body{font:13px/1.45 system-ui,sans-serif;color:#15201f;margin:24px;max-width:1000px}h1{font-size:20px}h2{font-size:15px}
table{border-collapse:collapse;width:100%;break-inside:auto}tr{break-inside:avoid}th,td{text-align:left;padding:3px 8px;
border-bottom:1px solid #d5dbdc}th{font-weight:600}.n{text-align:right;font-variant-numeric:tabular-nums}
.bar{display:block;height:9px;background:#0f766a;min-width:1px}td.b{width:22%}p{color:#4a5759}tfoot td{font-weight:600}
a{color:inherit}@media print{body{margin:0;max-width:none}.bar{print-color-adjust:exact}}
"""
Link = Callable[[Report, Cell], str]


def value_text(measure: Measure, values: Values) -> str:
    """A figure as a decimal text: money with all digits, hours with four, occupancy as a ratio, or empty."""
    if measure is Measure.OCCUPANCY:
        found = ratio(values)
        return "" if found is None else f"{found:.4f}"
    value = values.get(measure, 0)
    if measure in MONEY:
        return money_text(Microcents(value))
    return str(value) if measure is Measure.INCIDENTS else f"{value / HOUR:.4f}"


def csv_cell(text: str) -> str:
    """One cell: a text that a spreadsheet would compute is marked as text."""
    plain = _CONTROLS.sub("\ufffd", text)
    safe = f"'{plain}" if _is_formula(text) and not _NUMBER.match(text) else plain
    quoted = safe.replace('"', '""')
    return f'"{quoted}"' if re.search(r"[\",\r\n']", safe) else safe


def _is_formula(text: str) -> bool:
    """Return whether the first character that is seen begins a formula, in whatever width it is written."""
    first = next((one for one in text if unicodedata.category(one)[0] not in _UNSEEN), "")
    return first != "" and unicodedata.normalize("NFKC", first) in _FORMULA


def csv_text(report: Report) -> str:
    """A report as CSV (RFC 4180): for each dimension the key and its name, then the measures."""
    query = report.query
    head = [text for one in query.by for text in (one.value, f"{one}_name")] + [_column(one) for one in query.measures]
    lines = [head]
    for cell in report.cells:
        keys = [text for pair in zip(cell.keys, cell.names, strict=True) for text in pair]
        lines.append(keys + [value_text(one, cell.values) for one in query.measures])
    return "".join(",".join(map(csv_cell, line)) + "\r\n" for line in lines)


def _column(measure: Measure) -> str:
    """The name of a column with its unit."""
    if measure in MONEY:
        return f"{measure}_{CURRENCY_TEST}"
    return measure.value if measure in (Measure.INCIDENTS, Measure.OCCUPANCY) else f"{measure}_gpu_hours"


def _heading(measure: Measure) -> str:
    """The head of a column for people."""
    if measure in (Measure.INCIDENTS, Measure.OCCUPANCY):
        return measure.capitalize()
    return f"{measure.capitalize()} ({CURRENCY_TEST if measure in MONEY else UNITS[measure]})"


def report_page(report: Report, link: Link) -> str:
    """A report as a page of its own. link: the address of the rows of a cell."""
    return _page(_title(report), report.query.days, _section(report, link))


def statement_page(statement: Statement, link: Link) -> str:
    """A statement as a page of its own."""
    whose = {"project": "Spending of", "hosts": "Earnings of", "all": "All projects and hosts"}[statement.view]
    posted = "".join(
        f"<tr><td>{escape(POSTED.get(one.kind, one.kind))}"
        f"<td class=n>{money_text(one.given)}<td class=n>{money_text(one.got)}</tr>"
        for one in statement.transfers
    )
    ledger = (
        "<h2>The ledger in this period</h2><table><thead><tr><th>Transfers<th class=n>Out<th class=n>In</thead>"
        f"<tbody>{posted}</tbody></table><p>A charge is posted some seconds after the running time that it pays for; "
        "the reports above count it where that time lies.</p>"
    )
    sections = [f"<h2>{escape(_title(one))}</h2>{_section(one, link)}" for one in statement.reports]
    return _page(f"{whose} {statement.name}".strip(), statement.days, "".join(sections) + ledger)


def _title(report: Report) -> str:
    by = " and ".join(map(str, report.query.by))
    return f"{', '.join(map(str, report.query.measures))}{f' by {by}' if by else ''}".capitalize()


def _page(title: str, days: Days, body: str) -> str:
    period = f"{days.first} to {days.last}, days in {escape(days.zone)}. Money: {CURRENCY_TEST}, test money."
    return (
        f'<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style><h1>{escape(title)}</h1><p>{period}</p>{body}</html>\n"
    )


def _section(report: Report, link: Link) -> str:
    """A table whose first measure has bars, and the totals."""
    query = report.query
    sizes = [_size(query.measures[0], one.values) for one in report.cells]
    top = max(sizes, default=0) or 1
    has_bars = len(report.cells) <= BARS_MAX
    heads = [f"<th>{one.capitalize()}" for one in query.by] + [f"<th class=n>{_heading(one)}" for one in query.measures]
    rows = []
    for cell, size in zip(report.cells, sizes, strict=True):
        names = "".join(
            f"<td>{escape(name.replace('_', ' ') if one is Dimension.KIND else name) or 'none'}</td>"
            for one, name in zip(query.by, cell.names, strict=True)
        )
        texts = [value_text(one, cell.values) for one in query.measures]
        address = escape(link(report, cell))
        figures = "".join(f'<td class=n><a href="{address}">{text or "–"}</a></td>' for text in texts)
        bar = f'<td class=b><span class=bar style="width:{100 * size / top:.1f}%"></span></td>' if has_bars else ""
        rows.append(f"<tr>{names}{figures}{bar}</tr>")
    totals = "".join(f"<td class=n>{value_text(one, report.totals) or '–'}</td>" for one in query.measures)
    first = f"<td colspan={len(query.by)}>All</td>" if query.by else ""
    end = "<th>" if has_bars else ""
    return (
        f"<table><thead><tr>{''.join(heads)}{end}</thead><tbody>{''.join(rows)}</tbody>"
        f"<tfoot><tr>{first}{totals}</tr></tfoot></table>"
    )


def _size(measure: Measure, values: Values) -> float:
    return (ratio(values) or 0.0) if measure is Measure.OCCUPANCY else values.get(measure, 0)


def totals_text(report: Report) -> Sequence[str]:
    """The totals in words, one sentence each, for a mail."""
    units = {**UNITS, **dict.fromkeys(MONEY, CURRENCY_TEST), Measure.INCIDENTS: "", Measure.OCCUPANCY: ""}
    return [
        f"{one.capitalize()}: {value_text(one, report.totals) or 'none'} {units[one]}".rstrip()
        for one in report.query.measures
    ]
