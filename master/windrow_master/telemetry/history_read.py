"""Puts the questions of charts to the files of history and makes points of what they answer.

Knows of a file only that it has cursors which execute SQL; DuckDB itself is behind duckdb_view.py.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from windrow_master.telemetry import history_sql as sql
from windrow_master.telemetry.model import GroupPoints, GroupQuery, Place, SeriesKey, SeriesPoints, SeriesQuery
from windrow_proto.metrics import BY_NUMBER

Devices = dict[Place, int]
"""The number of each device in one file."""


class Connection(Protocol):
    """An open file, as far as it is asked here."""

    def cursor(self) -> Any:
        """A connection of one's own to the same file."""


Source = tuple[Connection, Devices]


def points(sources: Sequence[Source], query: SeriesQuery, now_ms: int) -> tuple[SeriesPoints, ...]:
    """Points of each series; later sources win."""
    steps = -(-(query.to_ms - query.from_ms) // query.step_ms)
    found: dict[SeriesKey, list[float | None]] = {key: [None] * steps for key in query.keys}
    for connection, numbers in sources:
        _points_of(connection, numbers, query, now_ms, found)
    return tuple(
        SeriesPoints(key, tuple((query.from_ms + n * query.step_ms, value) for n, value in enumerate(values)))
        for key, values in found.items()
    )


def _points_of(
    source: Connection,
    numbers: Devices,
    query: SeriesQuery,
    now_ms: int,
    found: dict[SeriesKey, list[float | None]],
) -> None:
    asked = {
        (numbers[key.host_id, key.device], key.metric): key
        for key in query.keys
        if (key.host_id, key.device) in numbers
    }
    if not asked:
        return
    level = sql.level_for(query.step_ms, query.from_ms, now_ms)
    devices, metrics = {device for device, _ in asked}, {metric for _, metric in asked}
    condition = [*devices, *metrics, query.from_ms, query.to_ms]
    parameters: list[Any] = [query.from_ms, query.step_ms, *condition * sql.copies(level)]
    rows = source.cursor().execute(sql.points(level, len(devices), len(metrics)), parameters).fetchall()
    for device, number, step, mean, high in rows:
        key = asked.get((device, number))
        if key is None:
            continue  # another metric of that device was asked, and this one of another
        metric = BY_NUMBER.get(key.metric)
        value = high if metric is not None and metric.counter else mean
        found[key][step] = value * (metric.scale if metric is not None else 1.0)


def means(sources: Sequence[Source], query: GroupQuery, now_ms: int) -> GroupPoints:
    """Means over groups of devices; later sources win."""
    steps = -(-(query.to_ms - query.from_ms) // query.step_ms)
    names = sorted(set(query.groups.values()))
    found: dict[str, list[float | None]] = {name: [None] * steps for name in names}
    places = {name: place for place, name in enumerate(names)}
    metric = BY_NUMBER.get(query.metric)
    level = sql.level_for(query.step_ms, query.from_ms, now_ms)
    text = sql.means(level, query.metric, query.from_ms, query.to_ms, query.step_ms)
    for connection, numbers in sources:
        members = [(numbers[place], places[name]) for place, name in query.groups.items() if place in numbers]
        if not members:
            continue
        cursor = connection.cursor()
        columns = np.array(members, dtype=np.int32)
        cursor.register("members", {"device": columns[:, 0].copy(), "named": columns[:, 1].copy()})
        for named, step, mean in cursor.execute(text).fetchall():
            found[names[named]][step] = mean * (metric.scale if metric is not None else 1.0)
    at = [query.from_ms + n * query.step_ms for n in range(steps)]
    return {name: tuple(zip(at, values, strict=True)) for name, values in found.items()}
