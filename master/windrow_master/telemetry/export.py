"""Writes points of history as CSV: one line a point, safe to open in a spreadsheet. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from windrow_master.telemetry.model import SeriesKey, SeriesPoints, SeriesQuery
from windrow_proto.metrics import BY_NUMBER
from windrow_proto.units import MILLISECOND, time_text

HEADER: Final = ("time", "host", "host_name", "gpu", "metric", "unit", "value")
POINTS_MAX: Final = 2_000_000
"""Of one export, absent ones included."""
POINTS_PER_PART: Final = 50_000
"""Asked for and sent at a time: what an export holds in memory."""
FORMULA: Final = re.compile(r"[\s\x00-\x1f\u200b-\u200f\ufeff]*[=+\-@|%\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""Characters that a spreadsheet takes for the beginning of a formula, after those that some strip (as
console/src/tables/csv.ts)."""

Row = tuple[int, str, str, str, str, str, float]
"""Wall milliseconds, host, its name, GPU ("" the host), metric, unit, value."""


def parts(query: SeriesQuery) -> Iterator[SeriesQuery]:
    """The same question in pieces that follow each other, each of bounded size."""
    span = max(1, POINTS_PER_PART // max(1, len(query.keys))) * query.step_ms
    for from_ms in range(query.from_ms, query.to_ms, span):
        yield SeriesQuery(query.keys, from_ms, min(query.to_ms, from_ms + span), query.step_ms)


def points_in(query: SeriesQuery) -> int:
    """Return how many points it asks for."""
    return len(query.keys) * -(-(query.to_ms - query.from_ms) // query.step_ms)


def rows(found: Sequence[SeriesPoints], host_name: str) -> Iterator[Row]:
    """A row for each value that there is."""
    for series in found:
        name, unit = _named(series.key)
        for at_ms, value in series.points:
            if value is not None:
                yield at_ms, series.key.host_id, host_name, series.key.device, name, unit, value


def csv_text(lines: Iterable[Row]) -> str:
    """Rows as RFC 4180 lines, instants in UTC."""
    return "".join(
        f"{time_text(at_ms * MILLISECOND)},{','.join(map(cell, texts))},{value!r}\r\n" for at_ms, *texts, value in lines
    )


def header() -> str:
    """The first line."""
    return ",".join(HEADER) + "\r\n"


def cell(value: object) -> str:
    """A text in quotes where it needs them; one that would begin a formula begins with an apostrophe instead."""
    text = str(value)
    if FORMULA.match(text):
        text = "'" + text
    if any(c in text for c in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _named(key: SeriesKey) -> tuple[str, str]:
    known = BY_NUMBER.get(key.metric)
    return (known.name, known.unit) if known is not None else (f"metric_{key.metric}", "1")
