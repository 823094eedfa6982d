"""Every view of history promises the same: DuckDB, VictoriaMetrics and Prometheus give the same series for one log."""

import time
from collections.abc import AsyncIterator
from contextlib import contextmanager

import pytest

from tests.master_support import ManualClock, SeededRng
from tests.support import metrics_stores
from tests.unit.telemetry.world import BOOT, HOST, batch, record
from windrow_master.store.executors import InlineExecutor
from windrow_master.telemetry.model import GPU_USE, GroupQuery, SeriesKey, SeriesQuery
from windrow_master.telemetry.remote.service import RemoteView
from windrow_master.telemetry.remote.store import MetricsStore, parse_url
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.ids import BootId, HostId
from windrow_proto.units import MILLISECOND, MINUTE

POWER, ENERGY, CPU, CORES = 6, 7, 101, 201
MINUTE_MS = MINUTE // MILLISECOND
TIERS = {(HOST, "GPU-1"): "h100/A", (HOST, "GPU-2"): "h100/A", (HOST, "GPU-3"): "a100/B"}


class History:
    """One telemetry service with one view that answers, on a log in memory. `start_ms`: a whole hour ago, about."""

    def __init__(self, tmp_path, server):
        self.disk, self.server, self.directory = MemoryDisk(), server, tmp_path
        now_ns = time.time_ns()
        self.clock = ManualClock(now_ns)
        self.start_ms = (now_ns // MINUTE - 30) * MINUTE_MS
        self.epoch = self.sequence = 0
        self.tiers_told = 0 if server is None else len(TIERS)
        self.reopen()

    def reopen(self):
        self.epoch += 1
        remote = None
        if self.server is not None:
            remote = RemoteView(
                self.disk,
                f"{self.directory}/log",
                self.epoch,
                f"{self.directory}/history",
                self.clock,
                SeededRng(),
                InlineExecutor(),
                MetricsStore(parse_url(self.server.write_url), parse_url(self.server.read_url)),
                tiers=lambda: TIERS,
            )
        self.service = TelemetryService(
            self.disk,
            self.directory,
            self.epoch,
            self.clock,
            log_executor=InlineExecutor(),
            view_executor=InlineExecutor(),
            has_embedded=remote is None,
            remote=remote,
            tiers=lambda: TIERS,
        )

    async def send(self, at_ms, *rows, host=HOST, boot=BOOT):
        self.sequence += 1
        body = batch(at_ms * MILLISECOND, *rows)
        await self.service.append(host, [record(self.sequence, body, boot=boot)])

    async def settle(self):
        await self.service.charts.catch_up()
        if self.server is not None:
            self.server.settle()

    async def ask(self, keys, from_ms, to_ms, step_ms):
        found = await self.service.series(SeriesQuery(tuple(keys), from_ms, to_ms, step_ms))
        assert [points.key for points in found] == list(keys)
        return [[value for _, value in points.points] for points in found]


@contextmanager
def nothing():
    yield None


KINDS = {"duckdb": nothing, "victoriametrics": metrics_stores.victoriametrics, "prometheus": metrics_stores.prometheus}


@pytest.fixture(scope="module", params=list(KINDS))
def server(request):
    with KINDS[request.param]() as running:
        yield running


@pytest.fixture
async def h(tmp_path, server) -> AsyncIterator[History]:
    history = History(tmp_path, server)
    yield history
    history.service.close()


def host(n):
    """A host of this test alone: the servers are shared by the tests of a module."""
    return HostId(f"host_{n}_{time.monotonic_ns()}")


async def test_a_step_is_the_mean_of_a_gauge_and_the_highest_of_a_counter(h):
    one = host(1)
    rows = [{("GPU-1", POWER): 1000 + 10 * n, ("GPU-1", ENERGY): 50 + n, ("", CPU): 7 * n} for n in range(6)]
    await h.send(h.start_ms, *rows, host=one)
    await h.settle()
    keys = [SeriesKey(one, "GPU-1", POWER), SeriesKey(one, "GPU-1", ENERGY), SeriesKey(one, "", CPU)]
    power, energy, cpu = await h.ask(keys, h.start_ms, h.start_ms + 8000, 2000)
    assert power == [pytest.approx(100.5), pytest.approx(102.5), pytest.approx(104.5), None]
    assert energy == [51, 53, 55, None]
    assert cpu == [pytest.approx(0.0035), pytest.approx(0.0175), pytest.approx(0.0315), None]


async def test_a_step_begins_with_its_first_millisecond_and_ends_before_the_next(h):
    one = host(2)
    await h.send(h.start_ms, *({("GPU-1", POWER): 10 * n} for n in range(4)), host=one)
    await h.settle()
    key = SeriesKey(one, "GPU-1", POWER)
    assert await h.ask([key], h.start_ms + 1000, h.start_ms + 3000, 1000) == [[1.0, 2.0]]


async def test_long_steps_say_the_same_as_short_ones(h):
    one = host(3)
    for n in range(0, 240, 5):
        rows = [{("GPU-1", POWER): 100 * n + m, ("GPU-1", ENERGY): n + m} for m in range(5)]
        await h.send(h.start_ms + n * 1000 + 300, *rows, host=one)
    await h.settle()
    keys = [SeriesKey(one, "GPU-1", POWER), SeriesKey(one, "GPU-1", ENERGY)]
    minutes = await h.ask(keys, h.start_ms, h.start_ms + 5 * MINUTE_MS, MINUTE_MS)
    thirds = await h.ask(keys, h.start_ms, h.start_ms + 5 * MINUTE_MS, 20_000)
    power = [sum(thirds[0][3 * n : 3 * n + 3]) / 3 for n in range(4)]
    assert minutes[0] == [*map(pytest.approx, power), None]
    assert minutes[1] == [max(thirds[1][3 * n : 3 * n + 3]) for n in range(4)] + [None]


async def test_absent_is_nothing_and_never_zero(h):
    one = host(4)
    await h.send(h.start_ms, {("GPU-1", POWER): 10}, {("GPU-1", POWER): None}, {("GPU-1", POWER): 0}, host=one)
    await h.settle()
    keys = [SeriesKey(one, "GPU-1", POWER), SeriesKey(one, "GPU-9", POWER), SeriesKey(host(5), "", CPU)]
    found = await h.ask(keys, h.start_ms, h.start_ms + 3000, 1000)
    assert found == [[1.0, None, 0.0], [None] * 3, [None] * 3]


async def test_a_late_batch_is_in_its_place(h):
    one = host(6)
    await h.send(h.start_ms + 60_000, {("GPU-1", POWER): 30}, host=one)
    await h.settle()
    await h.send(h.start_ms, {("GPU-1", POWER): 10}, host=one, boot=BootId(b"late-late-late-1"))
    await h.settle()
    key = SeriesKey(one, "GPU-1", POWER)
    assert await h.ask([key], h.start_ms, h.start_ms + 120_000, 60_000) == [[1.0, 3.0]]


async def test_a_restart_in_a_new_term_goes_on_where_the_view_was(h):
    one = host(7)
    for n in range(3):
        await h.send(h.start_ms + n * 1000, {("GPU-1", POWER): 10 * n}, host=one)
    await h.settle()
    h.service.close()
    h.reopen()
    await h.send(h.start_ms + 3000, {("GPU-1", POWER): 30}, host=one)
    await h.settle()
    assert h.service.health().rows - h.tiers_told == 1
    key = SeriesKey(one, "GPU-1", POWER)
    assert await h.ask([key], h.start_ms, h.start_ms + 4000, 1000) == [[0.0, 1.0, 2.0, 3.0]]


async def test_whatever_a_gpu_is_called_it_is_one_series_and_no_query(h):
    one = host(8)
    hostile = '"} or vector(7) #\\.*'
    await h.send(h.start_ms, {(hostile, POWER): 10, ("GPU-1", POWER): 20}, host=one)
    await h.settle()
    keys = [SeriesKey(one, hostile, POWER), SeriesKey(one, ".*", POWER), SeriesKey(one, "GPU-1", POWER)]
    assert await h.ask(keys, h.start_ms, h.start_ms + 1000, 1000) == [[1.0], [None], [2.0]]
    assert await h.ask(keys[:1], h.start_ms, h.start_ms + MINUTE_MS, MINUTE_MS) == [[1.0]]


async def test_what_a_workload_uses_is_found_under_its_id(h):
    one = host(10)
    await h.send(h.start_ms, {("workload_1", CORES): 1500, ("workload_2", CORES): 500, ("GPU-1", POWER): 20}, host=one)
    await h.settle()
    keys = [SeriesKey(one, work, CORES) for work in ("workload_1", "workload_2", "GPU-1")]
    assert await h.ask(keys, h.start_ms, h.start_ms + 1000, 1000) == [[1.5], [0.5], [None]]
    assert await h.ask(keys[:1], h.start_ms, h.start_ms + MINUTE_MS, MINUTE_MS) == [[1.5]]


async def test_a_tier_is_the_mean_of_its_gpus(h):
    at = h.clock.wall_ns() // MILLISECOND // MINUTE_MS * MINUTE_MS
    await h.send(at, {("GPU-1", POWER): 100, ("GPU-2", POWER): 300, ("GPU-3", POWER): 500})
    await h.settle()
    found = await h.service.grouped(GroupQuery(POWER, at, at + 2 * MINUTE_MS, MINUTE_MS))
    assert {name: points[0] for name, points in found.items()} == {"h100/A": (at, 20.0), "a100/B": (at, 50.0)}


async def test_how_busy_the_gpus_of_workloads_were_is_a_mean_of_the_time(h):
    one = host(11)
    for step, busy in enumerate((200, 600)):
        await h.send(h.start_ms + step * MINUTE_MS, {("workload_busy", GPU_USE): busy, ("GPU-1", POWER): 20}, host=one)
    await h.send(h.start_ms + 5 * MINUTE_MS, {("workload_later", GPU_USE): 1000}, host=one)
    await h.settle()
    found = await h.service.workload_use(h.start_ms, h.start_ms + 4 * MINUTE_MS)
    assert found["workload_busy"] == pytest.approx(0.4)
    assert "workload_later" not in found and "GPU-1" not in found
    assert (await h.service.workload_use(h.start_ms, h.start_ms + 9 * MINUTE_MS))["workload_later"] == pytest.approx(1)
