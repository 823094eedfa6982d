"""Samples that come in any order, before or after rollups: every chart is what its samples say, summed by hand here."""

import os
import random

import numpy as np
import pytest

from tests.unit.telemetry.world import BOOT, HOST, Telemetry, batch, record
from windrow_master.telemetry import history_roll
from windrow_master.telemetry.decode import Rows
from windrow_master.telemetry.history_roll import spans_of
from windrow_master.telemetry.history_sql import (
    FIVE_MS,
    HOUR_MS,
    LEVELS,
    MINUTE_MS,
    TYPES,
    WIDE,
    column,
    metrics_of,
    suffix,
)
from windrow_master.telemetry.model import GroupQuery, Place, SeriesKey, SeriesQuery
from windrow_proto.ids import HostId
from windrow_proto.metrics import Scope
from windrow_proto.units import HOUR, MILLISECOND, MINUTE, SECOND

POWER, ENERGY, FAN = 6, 7, 12
UNKNOWN = 9_999
"""Of a newer agent."""
HOSTS = (HOST, HostId("host_2"), HostId("host_3"))
PLACES = [(host, gpu) for host in HOSTS for gpu in ("GPU-1", "GPU-2")]
STEPS_MS = (20_000, MINUTE_MS, 90_000, FIVE_MS, 2 * FIVE_MS, HOUR_MS)
ROUNDS = 14


@pytest.fixture(autouse=True)
def _in_small_parts(monkeypatch):
    """Late samples are rolled up a few rows at a time, so that spans are cut in the middle."""
    monkeypatch.setattr(history_roll, "LATE_ROWS", 7)


class World(Telemetry):
    """Telemetry, and beside it all that was ever sent and told, kept plainly."""

    def __init__(self, directory, seed):
        super().__init__(directory)
        self.chance = random.Random(seed)
        self.clock.advance(HOUR - self.clock.wall_ns() % HOUR)
        self.start_ms = self.now_ms()
        self.samples = []
        self.told = {}
        self.sequence = 0

    def now_ms(self):
        return self.clock.wall_ns() // MILLISECOND

    async def live_on(self):
        """Some minutes in which batches come, now and from long ago, and tiers change."""
        self.clock.advance(self.chance.randrange(61 * SECOND, 20 * MINUTE, SECOND))
        for place in PLACES:
            if self.chance.random() < 0.3 or place not in self.tiers:
                self.tiers[place] = self.chance.choice(["h100/A", "h100/B", "a100/A"])
        for _ in range(self.chance.randrange(8)):
            await self.batch()
        if self.chance.random() < 0.2:
            self.service.view.close()
            self.reopen()
        await self.service.view.catch_up()
        for place in {place for place, *_ in self.samples}:
            known = self.told.setdefault(place, [(0, self.tiers[place])])
            if known[-1][1] != self.tiers[place]:
                known.append((self.now_ms(), self.tiers[place]))

    async def batch(self):
        host = self.chance.choice(HOSTS)
        late_ms = self.chance.choice([0, 5_000, 70_000, 400_000, self.now_ms() - self.start_ms])
        at_ms = max(self.start_ms, self.now_ms() - late_ms)
        rows = []
        for second in range(self.chance.randrange(1, 90)):
            row = {}
            for place in (one for one in PLACES if one[0] == host):
                for metric in (POWER, ENERGY):
                    value = self.chance.choice([None, self.chance.randrange(0, 7000)])
                    row[place[1], metric] = value
                    if value is not None:
                        self.samples.append((place, metric, at_ms + second * 1000, value))
            rows.append(row)
        self.sequence += 1
        body = batch(at_ms * MILLISECOND, *rows)
        await self.service.append(host, [record(self.sequence, body, boot=BOOT)])

    def tier(self, place, at_ms):
        return [tier for from_ms, tier in self.told[place] if from_ms <= at_ms][-1]

    def means_of_series(self, metric, from_ms, to_ms, step_ms):
        """(Place, beginning of the step) to its values, averaged or the highest."""
        found: dict[tuple[Place, int], list[int]] = {}
        for place, number, at_ms, value in self.samples:
            if number == metric and from_ms <= at_ms < to_ms:
                found.setdefault((place, from_ms + (at_ms - from_ms) // step_ms * step_ms), []).append(value)
        return {
            key: max(values) if metric == ENERGY else sum(values) / len(values) / 10 for key, values in found.items()
        }

    def means_of_tiers(self, from_ms, to_ms, step_ms):
        span_ms = FIVE_MS if step_ms % FIVE_MS == 0 and from_ms % FIVE_MS == 0 else step_ms
        found: dict[tuple[str, int], list[float]] = {}
        for (place, at_ms), mean in self.means_of_series(POWER, from_ms, to_ms, span_ms).items():
            step = from_ms + (at_ms - from_ms) // step_ms * step_ms
            found.setdefault((self.tier(place, at_ms), step), []).append(mean)
        return {key: sum(means) / len(means) for key, means in found.items()}


def said(points):
    return {at_ms: value for at_ms, value in points if value is not None}


@pytest.mark.parametrize("seed", range(4 if os.environ.get("TORTURE") else 1))
async def test_every_chart_equals_what_its_samples_say(tmp_path, seed):
    w = World(tmp_path, seed)
    for _ in range(ROUNDS):
        await w.live_on()
        for step_ms in STEPS_MS:
            from_ms = w.start_ms + w.chance.randrange(0, 3) * step_ms
            to_ms = from_ms + -(-max(1, w.now_ms() + 90_000 - from_ms) // step_ms) * step_ms
            fleet = await w.service.grouped(GroupQuery(POWER, from_ms, to_ms, step_ms))
            wanted = w.means_of_tiers(from_ms, to_ms, step_ms)
            shown = {(tier, at_ms): value for tier, points in fleet.items() for at_ms, value in said(points).items()}
            assert shown == {key: pytest.approx(value, rel=1e-9) for key, value in wanted.items()}
            for metric in (POWER, ENERGY):
                keys = tuple(SeriesKey(*place, metric) for place in PLACES)
                series = await w.service.series(SeriesQuery(keys, from_ms, to_ms, step_ms))
                found = {
                    ((one.key.host_id, one.key.device), at_ms): value
                    for one in series
                    for at_ms, value in said(one.points).items()
                }
                alone = w.means_of_series(metric, from_ms, to_ms, step_ms)
                assert found == {key: pytest.approx(value, rel=1e-9) for key, value in alone.items()}
    assert banded(w) > 10, "what was asked was rolled up, most of it"
    w.service.view.close()


def banded(w):
    return w.service.view._connection.execute("SELECT count(*) FROM band").fetchone()[0]


async def test_a_file_of_a_version_with_a_row_per_series_says_the_same(tmp_path):
    t = Telemetry(tmp_path)
    t.clock.advance(HOUR - t.clock.wall_ns() % HOUR)
    start_ms = t.clock.wall_ns() // MILLISECOND
    for n in range(130):
        first = {("GPU-1", POWER): n, ("GPU-1", ENERGY): None if n % 3 else n, ("", UNKNOWN): n}
        body = batch(t.clock.wall_ns() + n * MINUTE, first, {("GPU-1", POWER): n + 2, ("GPU-1", ENERGY): 2 * n})
        await t.send(n + 1, body)
    t.clock.advance(140 * MINUTE)
    t.tiers = {(HOST, "GPU-1"): "h100/A"}
    await t.service.view.catch_up()
    keys = tuple(SeriesKey(HOST, *of) for of in (("GPU-1", POWER), ("GPU-1", ENERGY), ("", UNKNOWN)))
    queries = [
        ("grouped", GroupQuery(POWER, start_ms, start_ms + 3 * HOUR_MS, FIVE_MS)),
        *(("series", SeriesQuery(keys, start_ms, start_ms + 3 * HOUR_MS, step_ms)) for step_ms in (MINUTE_MS, HOUR_MS)),
    ]
    wanted = [await getattr(t.service, ask)(query) for ask, query in queries]
    assert sum(value is not None for one in wanted[1] for _, value in one.points) > 300

    file = t.service.view._connection
    assert file is not None
    kept = "metric BIGINT NOT NULL, at_ms BIGINT, low BIGINT, high BIGINT, total DOUBLE, count BIGINT NOT NULL"
    for level in LEVELS:
        file.execute(f"CREATE TABLE {level.name} (device INTEGER NOT NULL, {kept})")
        for scope in (*Scope, None):
            for metric in metrics_of(scope) if scope is not None else (None,):
                named = ", ".join(f"{name}{suffix(metric)}" for name in TYPES)
                number = "metric" if metric is None else metric
                file.execute(
                    f"INSERT INTO {level.name} SELECT device, {number}, at_ms, {named} FROM {level.table(scope)}"
                    f" WHERE count{suffix(metric)} > 0"
                )
            file.execute(f"DROP TABLE {level.table(scope)}")
    file.execute(f"ALTER TABLE {WIDE[Scope.GPU]} DROP COLUMN {column(FAN)}")
    t.service.view.close()
    t.reopen()
    t.tiers = {(HOST, "GPU-1"): "h100/A"}
    await t.service.view.catch_up()

    assert [await getattr(t.service, ask)(query) for ask, query in queries] == wanted
    t.service.view.close()


def test_spans_add_up_exactly_where_numbers_are_whole_and_leave_out_what_was_not_read():
    huge = 2**62
    values = np.array([1, 5, 3, -2, huge, huge, huge, 9], dtype=np.int64)
    absent = np.array([0, 1, 0, 0, 0, 0, 0, 1], dtype=np.bool_)
    rows = Rows(
        device=np.array([1, 1, 1, 1, 2, 2, 2, 3], dtype=np.int64),
        at_ms=np.array([10, 20, 70_000, 71_000, 0, 1, 59_999, 5], dtype=np.int64),
        columns={POWER: values},
        absent={POWER: absent},
    )
    found = spans_of(rows, MINUTE_MS, is_named=True)
    assert found["device"].tolist() == [1, 1, 2, 3] and found["at_ms"].tolist() == [0, MINUTE_MS, 0, 0]
    assert found[f"count{suffix(POWER)}"].tolist() == [1, 2, 3, 0]
    assert found[f"low{suffix(POWER)}"].tolist() == [1, -2, huge, None]
    assert found[f"high{suffix(POWER)}"].tolist() == [1, 3, huge, None]
    assert found[f"total{suffix(POWER)}"].tolist() == [1.0, 1.0, 3.0 * huge, None]
