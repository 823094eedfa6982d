"""The view of history says what the log says, whatever happens to it, and says nothing where nothing was read."""

import asyncio

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.telemetry.world import BOOT, GPU, HOST, SECOND, Telemetry, batch, record
from windrow_master.telemetry import record as records
from windrow_master.telemetry.decode import Decoded, Decoder
from windrow_master.telemetry.history_sql import HOUR_MS, MINUTE_MS
from windrow_master.telemetry.model import GroupQuery, LogRecord, SeriesKey, SeriesQuery
from windrow_proto.errors import InvalidInput, Unavailable
from windrow_proto.ids import HostId
from windrow_proto.metrics import BY_NAME
from windrow_proto.model import Kind
from windrow_proto.samples import Sample, decode_batch, encode_batch
from windrow_proto.units import DAY, HOUR, KIB, MILLISECOND, MINUTE
from windrow_proto.v1 import host_pb2

LOAD = SeriesKey(HOST, "", 101)
CORES = BY_NAME["workload_cpu_cores"].number
TEMPERATURE = SeriesKey(HOST, GPU, 4)


@pytest.fixture
def t(tmp_path):
    made = Telemetry(tmp_path)
    yield made
    made.service.view.close()


async def ask(t, key, from_ms, to_ms, step_ms):
    (found,) = await t.service.series(SeriesQuery((key,), from_ms, to_ms, step_ms))
    return [value for _, value in found.points]


def now_ms(t):
    return t.clock.wall_ns() // MILLISECOND


async def test_a_chart_shows_means_per_step_in_the_metrics_unit_and_none_for_gaps(t):
    start = now_ms(t)
    rows = [{("", 101): 100, (GPU, 4): 50}, {("", 101): 300, (GPU, 4): None}, {("", 101): None, (GPU, 4): 54}]
    await t.send(1, batch(t.clock.wall_ns(), *rows))
    await t.service.view.catch_up()
    assert await ask(t, LOAD, start, start + 4000, 1000) == [0.1, 0.3, None, None]
    assert await ask(t, TEMPERATURE, start, start + 4000, 2000) == [50, 54]
    assert await ask(t, LOAD, start, start + 4000, 4000) == [0.2]
    assert await ask(t, SeriesKey(HOST, "GPU-9", 4), start, start + 1000, 1000) == [None]


async def test_of_a_workload_only_the_samples_with_figures_are_kept_and_30_days_later_nothing(t):
    start, work = now_ms(t), "workload_1"
    rows = [{("", 101): 100}, {("", 101): 100, (work, CORES): 1500}, {("", 101): 100}]
    await t.send(1, batch(t.clock.wall_ns(), *rows))
    await t.service.view.catch_up()
    assert t.service.view.health().rows == 4
    assert await ask(t, SeriesKey(HOST, work, CORES), start, start + 3000, 1000) == [None, 1.5, None]

    t.clock.advance(HOUR)
    await t.service.view.catch_up()
    month = start // HOUR_MS * HOUR_MS, start // HOUR_MS * HOUR_MS + HOUR_MS, HOUR_MS
    t.clock.advance(29 * DAY)
    await t.service.view.catch_up()
    assert await ask(t, SeriesKey(HOST, work, CORES), *month) == [1.5]

    t.clock.advance(2 * DAY)
    await t.send(2, batch(t.clock.wall_ns(), {("", 101): 100, ("workload_2", CORES): 2000}))
    await t.service.view.catch_up()
    assert await ask(t, SeriesKey(HOST, work, CORES), *month) == [None]
    assert await ask(t, LOAD, *month) == [0.1]
    numbers = duckdb_numbers(t)
    assert sorted(numbers) == ["", "workload_2"] and len(set(numbers.values())) == 2


def duckdb_numbers(t):
    """The numbers of devices in the file, as another cycle or a new Master finds them."""
    t.service.view.close()
    with duckdb.connect(t.service.view.health().path, read_only=True) as file:
        return dict(file.execute("SELECT device, number FROM device").fetchall())


async def test_a_restart_goes_on_where_the_view_was_and_takes_nothing_twice(t):
    start = now_ms(t)
    for n in range(1, 6):
        await t.send(n, batch(t.clock.wall_ns() + n * SECOND, {("", 101): n}))
    await t.service.view.catch_up()
    t.service.view.close()
    t.reopen()
    await t.send(6, batch(t.clock.wall_ns() + 6 * SECOND, {("", 101): 6}))
    await t.service.view.catch_up()
    assert t.service.view.health().rows == 1, "in this term"
    assert await ask(t, LOAD, start, start + 7000, 1000) == [None, *[pytest.approx(n / 1000) for n in range(1, 7)]]


async def test_a_file_that_cannot_be_opened_is_left_and_another_is_begun(t):
    start = now_ms(t)
    (t.directory / "history").mkdir()
    (t.directory / "history" / "history-0001.duckdb").write_bytes(b"not a database" * 400)
    await t.send(1, batch(t.clock.wall_ns(), {("", 101): 7}))
    await t.service.view.catch_up()
    assert t.service.view.health().path.endswith("history-0002.duckdb")
    assert await ask(t, LOAD, start, start + 1000, 1000) == [0.007]


async def test_charts_read_the_older_file_too(t):
    start = now_ms(t)
    await t.send(1, batch(t.clock.wall_ns(), {("", 101): 7}))
    await t.service.view.catch_up()
    t.service.view.close()
    for name in t.disk.list(f"{t.directory}/log/000000000001"):
        t.disk.delete(f"{t.directory}/log/000000000001/{name}")
    first = t.directory / "history" / "history-0001.duckdb"
    first.rename(first.with_name("history-0003.duckdb"))
    (t.directory / "history" / "history-0004.duckdb").write_bytes(b"broken" * 1000)
    t.reopen()
    await t.send(2, batch(t.clock.wall_ns() + SECOND, {("", 101): 8}))
    await t.service.view.catch_up()
    assert await ask(t, LOAD, start, start + 2000, 1000) == [0.007, 0.008]


async def test_without_a_view_acks_and_live_go_on_and_charts_say_so(t):
    await t.send(1, batch(t.clock.wall_ns(), {("", 101): 7}))
    assert t.have() == ((1, 1),)
    assert t.service.live.get(HOST) is not None
    with pytest.raises(Unavailable):
        await ask(t, LOAD, 0, 1000, 1000)


async def test_before_a_stop_the_end_of_the_log_is_taken_in_and_a_view_that_fails_does_not_keep_it_up(t, monkeypatch):
    start = now_ms(t)
    await t.send(1, batch(t.clock.wall_ns(), {("", 101): 100}))
    await t.service.catch_up()
    assert await ask(t, LOAD, start, start + 1000, 1000) == [0.1]

    async def broken():
        raise duckdb.IOException("the disk is gone")

    monkeypatch.setattr(t.service.view, "catch_up", broken)
    await t.service.catch_up()


async def test_roll_ups_say_the_same_as_the_samples_they_are_made_of(t):
    t.clock.advance(HOUR - t.clock.wall_ns() % HOUR)
    start = now_ms(t)
    for n in range(180):
        await t.send(n + 1, batch(t.clock.wall_ns() + n * MINUTE, {("", 101): n}, {("", 101): n + 2}))
    t.clock.advance(4 * HOUR)
    await t.service.view.catch_up()
    for _ in range(2):
        t.clock.advance(2 * MINUTE)
        await t.service.view.catch_up()
    rolled = t.service.view._connection.execute("SELECT count(*) FROM host_minute").fetchone()[0]
    assert rolled == 180
    minutes = await ask(t, LOAD, start, start + 3 * HOUR_MS, MINUTE_MS)
    assert minutes == [pytest.approx((n + 1) / 1000) for n in range(180)]
    hours = await ask(t, LOAD, start, start + 3 * HOUR_MS, HOUR_MS)
    assert hours == [pytest.approx((60 * h + 30.5) / 1000) for h in range(3)]
    # A batch that was in a spool all the while: the hour it belongs to is right at once, and after the next roll-up.
    await t.send(200, batch(start * MILLISECOND, {("", 102): 5}, {("", 102): 7}))
    await t.service.view.catch_up()
    late = SeriesKey(HOST, "", 102)
    assert await ask(t, late, start, start + HOUR_MS, HOUR_MS) == [6 * 1048576]
    for _ in range(2):
        t.clock.advance(2 * MINUTE)
        await t.service.view.catch_up()
    assert await ask(t, late, start, start + HOUR_MS, HOUR_MS) == [6 * 1048576]
    assert await ask(t, LOAD, start, start + 3 * HOUR_MS, HOUR_MS) == hours


async def test_samples_of_a_clock_that_is_years_off_are_counted_and_left_out(t):
    await t.send(1, batch(t.clock.wall_ns() + 10 * 365 * 24 * HOUR, {("", 101): 1}))
    await t.send(2, b"\xff\xff\xff")
    await t.service.view.catch_up()
    health = t.service.view.health()
    assert (health.rows, health.misdated, health.bad_batches) == (0, 1, 1)


async def test_a_chart_has_a_bounded_number_of_points(t):
    await t.service.view.catch_up()
    with pytest.raises(InvalidInput):
        await ask(t, LOAD, 0, 10**12, 1)


WIRE = st.one_of(st.none(), st.integers(-(2**40), 2**40))
SERIES = st.sampled_from([("", 101), ("", 104), (GPU, 1), ("GPU-2", 1), ("GPU-2", 7), (GPU, 9001)])


def flat(decoded):
    """Every value as (device number, metric, instant, wire integer), sorted."""
    found = []
    for rows in (rows for tables in decoded.rows.values() for rows in tables):
        for metric, column in rows.columns.items():
            absent = rows.absent.get(metric, [False] * len(column))
            triples = zip(rows.device.tolist(), rows.at_ms.tolist(), column.tolist(), absent, strict=True)
            found += [(device, metric, at_ms, value) for device, at_ms, value, is_absent in triples if not is_absent]
    return sorted(found)


@given(st.lists(st.lists(st.dictionaries(SERIES, WIRE, min_size=1), min_size=1, max_size=6), max_size=5))
def test_decoding_all_at_once_gives_what_the_reference_gives_one_by_one(batches):
    bodies = [encode_batch([Sample(n * SECOND, row) for n, row in enumerate(rows)]) for rows in batches]
    names: dict[tuple[str, str], int] = {}
    number = lambda host, device: names.setdefault((host, device), len(names))  # noqa: E731
    decoded = Decoder(number).decode([(HostId(f"host_{n}"), body) for n, body in enumerate(bodies)])
    wanted = []
    for n, body in enumerate(bodies):
        reference = decode_batch(body)
        for (device, metric), column in zip(reference.series, reference.values, strict=True):
            for at_ms, value in zip(reference.at_ms, column, strict=True):
                if value is not None:
                    wanted.append((number(f"host_{n}", device), metric, at_ms, value))
    assert flat(decoded) == sorted(wanted)
    assert decoded.values == len(wanted)
    assert flat(in_order(decoded)) == sorted(wanted)


def in_order(decoded):
    rows = {scope: tuple(one.in_order() for one in tables) for scope, tables in decoded.rows.items()}
    return Decoded(rows, decoded.bad_batches)


def test_a_metric_that_a_batch_names_twice_is_kept_twice():
    message = host_pb2.TelemetryBatch(start_wall_ns=0, at_ms=[0], metric=[4, 4], device=[1, 1], values=[50, 60])
    message.devices.append(GPU)
    decoded = Decoder(lambda host, device: 1).decode([(HOST, message.SerializeToString())])
    assert flat(decoded) == [(1, 4, 0, 50), (1, 4, 0, 60)]


async def test_a_metric_of_a_newer_agent_is_kept_and_can_be_asked_for(t):
    start = now_ms(t)
    await t.send(1, batch(t.clock.wall_ns(), {(GPU, 9001): 5}, {(GPU, 9001): None}, {(GPU, 9001): 7}))
    await t.service.view.catch_up()
    assert t.service.view.health().rows == 2
    assert await ask(t, SeriesKey(HOST, GPU, 9001), start, start + 3000, 1000) == [5, None, 7]


async def test_a_file_of_a_version_that_knew_fewer_metrics_gets_their_columns(t):
    await t.service.view.catch_up()
    t.service.view._connection.execute("DROP VIEW raw")
    t.service.view._connection.execute("ALTER TABLE gpu_samples DROP COLUMN m4")
    t.service.view.close()
    t.reopen()
    start = now_ms(t)
    await t.send(1, batch(t.clock.wall_ns(), {(GPU, 4): 50}))
    await t.service.view.catch_up()
    assert await ask(t, TEMPERATURE, start, start + 1000, 1000) == [50]


@given(st.binary(max_size=80), st.integers(1, 2**64 - 1), st.text(min_size=1, max_size=40))
def test_a_record_reads_back_as_it_was_written(body, sequence, host):
    one = LogRecord(HostId(host), BOOT, sequence, Kind.TELEMETRY, 5, body)
    assert records.decode(records.encode(one)) == one


@given(st.binary(max_size=80))
def test_garbage_is_refused_and_never_raises_anything_else(data):
    try:
        records.decode(data)
    except InvalidInput:
        return


def test_a_record_is_live_only_in_its_class():
    assert record(1, b"x")[0].origin_sequence == 1


async def test_a_damaged_file_is_kept_aside_and_history_is_read_again_from_the_log(t):
    start = now_ms(t)
    await t.send(1, batch(t.clock.wall_ns(), {("", 101): 7}))
    await t.service.view.catch_up()
    t.service.view.close()
    path = t.directory / "history" / "history-0001.duckdb"
    path.write_bytes(b"\xff" * 8192 + path.read_bytes()[8192:])
    t.reopen()
    await t.service.view.catch_up()
    assert path.with_name("history-0001.duckdb.damaged").exists()
    assert await ask(t, LOAD, start, start + 1000, 1000) == [0.007]


async def test_a_new_file_takes_in_all_of_the_log_and_the_old_one_still_answers(t):
    start = now_ms(t)
    await t.send(1, batch(t.clock.wall_ns(), {("", 101): 7}))
    await t.service.view.catch_up()
    t.service.view.close()
    t.reopen()
    t.service.view.begin_new()
    await t.send(2, batch(t.clock.wall_ns() + SECOND, {("", 101): 8}))
    await t.service.view.catch_up()
    assert t.service.view.health().path.endswith("history-0002.duckdb")
    assert t.service.view.health().rows == 2, "the term before is read as well"
    assert await ask(t, LOAD, start, start + 2000, 1000) == [0.007, 0.008]


async def test_a_group_is_the_mean_of_its_devices_whoever_sends_more_often(t):
    start = now_ms(t)
    at = t.clock.wall_ns()
    t.tiers = {(HOST, "GPU-1"): "h100/A", (HOST, "GPU-2"): "h100/A", (HOST, "GPU-3"): "cpu/B"}
    await t.send(1, batch(at, {("GPU-1", 4): 10, ("GPU-2", 4): 40}, {("GPU-1", 4): 30}))
    await t.service.view.catch_up()
    query = GroupQuery(4, start, start + 4000, 2000)
    answer = await t.service.view.grouped(query)
    assert answer == {"h100/A": ((start, 30.0), (start + 2000, None)), "cpu/B": ((start, None), (start + 2000, None))}


async def test_a_cycle_that_fails_with_a_backlog_ahead_waits_before_the_next(t, monkeypatch):
    tries = []

    async def forever(duration_ns):
        await asyncio.Event().wait()

    def failing(*_):
        tries.append(1)
        raise RuntimeError("cannot be written")

    monkeypatch.setattr(t.clock, "sleep_ns", forever)
    monkeypatch.setattr(t.service.view, "_insert", failing)
    await t.send(1, batch(t.clock.wall_ns(), {("", 101): 7}))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(t.service.view.run())
        for _ in range(200):
            await asyncio.sleep(0)
        running.cancel()
    assert len(tries) == 1


async def cycles_until_asleep(t, monkeypatch, rounds, send):
    """How many cycles ran before each sleep of a running view; `send` is called at each, as time goes on."""
    view, cycles, asleep = t.service.view, [0], asyncio.Event()
    taken_in = view.catch_up_once

    async def counted():
        cycles[-1] += 1
        return await taken_in()

    async def sleep_ns(duration_ns):
        if len(cycles) > rounds:
            asleep.set()
            await asyncio.Event().wait()
        cycles.append(0)
        t.clock.advance(duration_ns)
        await send()

    monkeypatch.setattr(view, "catch_up_once", counted)
    monkeypatch.setattr(t.clock, "sleep_ns", sleep_ns)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(view.run())
        await asyncio.wait_for(asleep.wait(), 30)
        running.cancel()
    return cycles


async def test_what_trickles_in_is_taken_in_once_a_second_however_many_batches_it_is(t, monkeypatch):
    sequences = iter(range(1, 100))

    async def send():
        for _ in range(3):
            await t.send(next(sequences), batch(t.clock.wall_ns(), {("", 101): 7}))

    _, _, *later = await cycles_until_asleep(t, monkeypatch, 5, send)  # at a segment's beginning it looks twice
    assert later == [1] * 4
    assert t.service.view.health().rows == 15 and t.service.view.health().lag_ns == 0


async def test_a_backlog_is_taken_in_without_a_pause(t, monkeypatch):
    monkeypatch.setattr("windrow_master.telemetry.duckdb_view.CYCLE_BYTES_MAX", 300 * KIB)
    rows = [{("", 101): n % 2 * 2**50 + n} for n in range(2_000)]
    for sequence in range(1, 60):
        await t.send(sequence, batch(t.clock.wall_ns() + sequence * SECOND, *rows[sequence:]))

    async def send():
        pass

    first, *_ = await cycles_until_asleep(t, monkeypatch, 1, send)
    assert first > 1 and t.service.view.health().rows == sum(2_000 - n for n in range(1, 60))


async def test_roll_ups_wait_for_what_the_view_has_not_taken_in(t, monkeypatch):
    monkeypatch.setattr("windrow_master.telemetry.follow.FAR_BYTES", 1)
    begun_ns = t.clock.wall_ns()
    await t.send(1, batch(begun_ns, {("", 101): 7}))
    t.clock.advance(10 * MINUTE)
    await t.service.view.catch_up_once()
    t.clock.advance(10 * MINUTE)
    await t.service.view.catch_up_once()
    assert t.service.view._rolled.minute_ms <= begun_ns // MILLISECOND
    await t.service.view.catch_up()
    t.clock.advance(MINUTE)
    await t.service.view.catch_up()
    assert t.service.view._rolled.minute_ms > begun_ns // MILLISECOND
