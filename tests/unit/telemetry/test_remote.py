"""A metrics store may refuse, hang or vanish: nothing is lost that it may still take, nobody waits, and all is told."""

import asyncio
import http.server
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import asynccontextmanager

import cramjam
import pytest

from tests.master_support import ManualClock, SeededRng
from tests.support import metrics_stores
from tests.unit.telemetry.world import BOOT, HOST, batch, record
from tests.waiting import poll_async
from windrow_master.store.executors import InlineExecutor, ThreadExecutor
from windrow_master.telemetry.model import LogPosition, SeriesKey, SeriesQuery
from windrow_master.telemetry.remote.service import CYCLE_NS, RemoteView
from windrow_master.telemetry.remote.store import MetricsStore, parse_url
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.clock import SystemClock
from windrow_proto.disk_memory import MemoryDisk
from windrow_proto.errors import InvalidInput, Unavailable
from windrow_proto.units import SECOND

LOAD = SeriesKey(HOST, "", 101)


class Server(http.server.ThreadingHTTPServer):
    """A metrics store that answers as the test says."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Receiver)
        self.answer: Callable[[bytes], tuple[int, dict[str, str]]] = lambda body: (204, {})


class Receiver(http.server.BaseHTTPRequestHandler):
    """Answers as `server.answer(body)` says: (status, headers)."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Server)
        status, headers = self.server.answer(bytes(cramjam.snappy.decompress_raw(body)))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"words")

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@asynccontextmanager
async def running(service):
    """The service at work, ended and closed with the block."""
    try:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(service.run())
            yield
            task.cancel()
    finally:
        service.close()


class World:
    """A service whose charts and history are in one store."""

    def __init__(self, directory, url, clock=None, executor=InlineExecutor):
        self.disk, self.directory, self.told = MemoryDisk(), directory, []
        self.clock = clock or ManualClock()
        self.sequence = self.epoch = 0
        self.url, self.executor = url, executor
        self.reopen()

    def reopen(self):
        self.epoch += 1
        store = MetricsStore(parse_url(f"{self.url}/api/v1/write"), parse_url(self.url))
        log, history = f"{self.directory}/log", f"{self.directory}/history"
        self.view = RemoteView(self.disk, log, self.epoch, history, self.clock, SeededRng(), self.executor(), store)
        self.service = TelemetryService(
            self.disk,
            self.directory,
            self.epoch,
            self.clock,
            log_executor=InlineExecutor(),
            view_executor=InlineExecutor(),
            has_embedded=False,
            remote=self.view,
        )

        self.service.on_event(self.write_event)

    async def write_event(self, kind, text, fields):
        self.told.append((kind, fields["samples"]))

    async def send(self, *rows):
        self.sequence += 1
        await self.service.append(HOST, [record(self.sequence, batch(self.clock.wall_ns(), *rows), boot=BOOT)])


@pytest.fixture
def world(tmp_path, receiver):
    made = World(tmp_path, f"http://127.0.0.1:{receiver.server_port}")
    yield made
    made.service.close()


async def test_a_busy_store_is_asked_again_after_as_long_as_it_wants_and_gets_everything(world, receiver):
    receiver.answer = lambda body: (429, {"Retry-After": "17"})
    await world.send({("", 101): 5})
    assert await world.view.step() == 17 * SECOND
    assert world.view.cursor == LogPosition(0, 0, 0)
    receiver.answer = lambda body: (503, {})
    pauses = [await world.view.step() for _ in range(8)]
    assert all(pause > 0 for pause in pauses) and max(pauses) <= 60 * SECOND and pauses[4] > pauses[0]
    got: list[bytes] = []

    def take(body):
        got.append(body)
        return 204, {}

    receiver.answer = take
    await world.view.catch_up()
    assert len(got) == 1 and b"windrow_host_cpu_ratio" in got[0]
    assert world.view.figures.dropped_samples == 0


async def test_a_store_that_refuses_the_login_costs_no_sample(world, receiver):
    receiver.answer = lambda body: (401, {})
    await world.send({("", 101): 5})
    assert await world.view.step() > 0
    receiver.answer = lambda body: (204, {})
    await world.view.catch_up()
    assert (world.view.figures.samples, world.view.figures.dropped_samples) == (1, 0)


async def test_what_the_store_refuses_is_dropped_alone_counted_and_told(world, receiver):
    receiver.answer = lambda body: (400 if b"GPU-bad" in body else 204, {})
    await world.send({(f"GPU-{n}", 4): n for n in range(9)} | {("GPU-bad", 4): 1})
    await world.view.catch_up()
    assert (world.view.figures.samples, world.view.figures.dropped_samples) == (9, 1)
    await world.service.tell_events()
    assert world.told == [("history_samples_refused", "1")]
    await world.send({("", 101): 5})
    await world.view.catch_up()
    assert world.view.figures.samples == 10, "and it goes on behind them"


def _live(service):
    reading = service.live.get(HOST)
    assert reading is not None
    return reading.get("", 101)


async def test_a_restart_sends_again_only_what_was_not_taken_whole(world, receiver):
    seen: Counter[bytes] = Counter()
    receiver.answer = lambda body: (seen.update([body]), (204, {}))[1]
    await world.send({("", 101): 5})
    await world.view.catch_up()
    world.service.close()
    world.reopen()
    await world.send({("", 101): 6})
    await world.view.catch_up()
    assert sorted(seen.values()) == [1, 1]


async def test_a_lost_cursor_sends_the_log_again_from_its_beginning(world, receiver):
    await world.send({("", 101): 5})
    await world.view.catch_up()
    world.service.close()
    (name,) = [n for n in world.disk.list(f"{world.directory}/history") if n.startswith("remote-")]
    world.disk.truncate(f"{world.directory}/history/{name}", 3)
    world.reopen()
    await world.view.catch_up()
    assert world.view.figures.samples == 1


async def test_no_segment_goes_before_the_store_has_it(world, receiver):
    receiver.answer = lambda body: (503, {})
    await world.send({("", 101): 5})
    world.service.log._log.roll()
    await world.send({("", 101): 6})
    world.clock.advance(100 * 3600 * SECOND)
    await world.view.step()
    world.service.log.run_retention([view.cursor for view in world.service.views])
    await world.send({("", 101): 7})
    assert world.service.log.figures.dropped_segments == 0


async def test_a_store_that_is_stopped_costs_charts_only_and_they_say_so_soon(tmp_path):
    with metrics_stores.victoriametrics() as server:
        world = World(tmp_path, server.read_url, SystemClock(), ThreadExecutor)
        async with running(world.service):
            await world.send({("", 101): 5})
            await poll_async(lambda: world.view.figures.samples == 1)
            os.kill(server.process.pid, signal.SIGSTOP)
            for n in range(20):
                await world.send({("", 101): n})
            assert world.service.have(HOST, BOOT).count == 21, "acknowledged all the while"
            assert _live(world.service) == 0.019
            query = SeriesQuery((LOAD,), 0, 10_000, 1000)
            with pytest.raises(Unavailable, match="history is unavailable"):
                await world.service.series(query)
            with pytest.raises(Unavailable, match="a moment ago"):
                await world.service.series(query)
            os.kill(server.process.pid, signal.SIGCONT)
            await poll_async(lambda: world.view.cursor == world.service.log._marked_through, 60.0)
            assert world.view.figures.dropped_samples == 0


async def test_a_question_that_hangs_in_duckdb_holds_up_nobody_else(tmp_path, monkeypatch):
    monkeypatch.setattr("windrow_master.telemetry.duckdb_view.QUERY_DEADLINE_NS", SECOND // 20)
    release, clock = threading.Event(), SystemClock()
    service = TelemetryService(
        MemoryDisk(), tmp_path, 1, clock, log_executor=InlineExecutor(), view_executor=ThreadExecutor()
    )
    try:
        await service.view.catch_up()
        sources = service.view._sources
        monkeypatch.setattr(service.view, "_sources", lambda: (release.wait(30), sources())[1])
        for reason in ("in time", "earlier question"):
            with pytest.raises(Unavailable, match=reason):
                await service.series(SeriesQuery((LOAD,), 0, 10_000, 1000))
        await service.append(HOST, [record(1, batch(clock.wall_ns(), {("", 101): 5}))])
        assert _live(service) == 0.005
        release.set()
        await poll_async(lambda: not service.view._stuck)
        monkeypatch.undo()
        assert len(await service.series(SeriesQuery((LOAD,), 0, 10_000, 1000))) == 1
    finally:
        release.set()
        service.close()


async def test_a_writer_that_hangs_in_duckdb_holds_up_no_ack(tmp_path, monkeypatch):
    release, clock = threading.Event(), SystemClock()
    service = TelemetryService(
        MemoryDisk(), tmp_path, 1, clock, log_executor=InlineExecutor(), view_executor=ThreadExecutor()
    )
    monkeypatch.setattr(service.view, "_cycle", lambda: release.wait(30) and 0)
    async with running(service):
        for n in range(1, 6):
            await service.append(HOST, [record(n, batch(clock.wall_ns(), {("", 101): n}))])
        assert service.have(HOST, BOOT).count == 5
        with pytest.raises(Unavailable):
            await service.series(SeriesQuery((LOAD,), 0, 10_000, 1000))
        release.set()


def test_a_url_is_shown_without_its_secrets_and_nothing_else_is_accepted():
    url = parse_url("https://reader:p%40ss@metrics.example:8428/select/0/prometheus/")
    assert url.shown == "https://metrics.example:8428/select/0/prometheus"
    assert url.authorization == "Basic cmVhZGVyOnBAc3M="
    assert parse_url("http://h/x", "tok").authorization == "Bearer tok"
    for text in ("ftp://h", "http://", "http://h/?a=b", "http://h:x/", "file:///etc/passwd"):
        with pytest.raises(InvalidInput):
            parse_url(text)


async def test_an_idle_view_comes_back_every_second(world):
    assert await world.view.step() == CYCLE_NS
