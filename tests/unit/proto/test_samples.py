"""Batches of samples: what was read comes back, absent stays absent, size stays in its budget, bombs do not unfold."""

import random
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.proto.values import BOOT, HOST
from windrow_proto import keys, samples, wire
from windrow_proto.errors import InvalidInput, TooLarge
from windrow_proto.messages import Record
from windrow_proto.metrics import METRICS, SLOW, Scope
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.samples import HOST_DEVICE, Sample
from windrow_proto.units import MILLISECOND, SECOND
from windrow_proto.v1 import host_pb2

START = 1_790_000_000_123_456_789
keys_of_series = st.tuples(st.sampled_from([HOST_DEVICE, "GPU-1", "GPU-2"]), st.integers(1, 120))
readings = st.none() | st.integers(-(1 << 62), 1 << 62)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.dictionaries(keys_of_series, readings, max_size=6), min_size=1, max_size=6))
def test_what_was_read_comes_back_and_absent_stays_absent(rows):
    given_samples = [Sample(START + n * SECOND, row) for n, row in enumerate(rows)]

    batch = samples.decode_batch(samples.encode_batch(given_samples))

    assert batch.start_wall_ns == START
    assert batch.at_ms == tuple(1000 * n for n in range(len(rows)))
    assert set(batch.series) == {key for row in rows for key in row}
    for place, key in enumerate(batch.series):
        assert batch.values[place] == tuple(row.get(key) for row in rows)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.dictionaries(keys_of_series, readings, max_size=6), min_size=1, max_size=6))
def test_the_ends_of_a_body_are_its_first_and_last_instants(rows):
    body = samples.encode_batch([Sample(START + n * SECOND, row) for n, row in enumerate(rows)])

    whole, ends = samples.decode_batch(body), samples.decode_ends(body)

    few = samples.decode_ends(body, {1})
    mine = [place for place, (_, metric) in enumerate(ends.series) if metric == 1 or len(rows) == 1]
    assert (few.series, few.values) == tuple(tuple(one[place] for place in mine) for one in (ends.series, ends.values))
    places = (0, -1) if len(rows) > 1 else (0,)
    assert (ends.start_wall_ns, ends.series) == (whole.start_wall_ns, whole.series)
    assert ends.at_ms == tuple(whole.at_ms[place] for place in places)
    for (_, metric), column, found in zip(whole.series, whole.values, ends.values, strict=True):
        there = [value for value in column if value is not None]
        last = there[-1] if metric in SLOW and there and len(rows) > 1 else column[-1]
        assert found == ((column[0], last) if len(rows) > 1 else (last,))


def test_an_instant_keeps_its_millisecond_and_never_goes_back():
    times = [START, START + 1_999_999, START - SECOND, START + 3 * MILLISECOND]

    batch = samples.decode_batch(samples.encode_batch([Sample(at, {(HOST_DEVICE, 101): 1}) for at in times]))

    assert batch.at_ms == (0, 1, 1, 3)


def _busy_host(gpus: int, instants: int) -> list[Sample]:
    """Eight busy GPUs as they look: noisy power and use, growing counters, and much that does not change."""
    rng = random.Random(7)
    uuids = [
        f"GPU-{rng.getrandbits(32):08x}-{rng.getrandbits(48):012x}-{rng.getrandbits(48):012x}" for _ in range(gpus)
    ]
    power = dict.fromkeys(uuids, 5000)
    energy = {uuid: rng.randint(10**8, 10**9) for uuid in uuids}
    rows = []
    for instant in range(instants):
        row: dict[tuple[str, int], int | None] = {
            (HOST_DEVICE, metric.number): 10**6 + instant * rng.randint(0, 3000)
            for metric in METRICS
            if metric.scope is Scope.HOST
        }
        for uuid in uuids:
            power[uuid] += rng.randint(-60, 60)
            energy[uuid] += power[uuid] // 10
            noisy = {1: rng.randint(94, 99), 2: rng.randint(40, 45), 4: 61, 6: power[uuid], 7: energy[uuid], 8: 1980}
            row |= {(uuid, m.number): noisy.get(m.number, 4) for m in METRICS if m.scope is Scope.GPU}
            row[uuid, 12] = None
        rows.append(Sample(START + instant * SECOND, row))
    return rows


def test_a_value_of_eight_busy_gpus_costs_at_most_one_and_a_half_bytes_with_its_envelope():
    rows = _busy_host(8, 5)
    record = Record(BOOT, 70_000, Kind.TELEMETRY, samples.encode_batch(rows))
    envelope = wire.Envelope(
        HOST, BOOT, 12, FrameClass.LIVE, Lane.TELEMETRY, 70_000, Kind.TELEMETRY, wire.encode_record(record)
    )

    frame = wire.seal(envelope, keys.MacProver(bytes(32), keys.DOMAIN_UP))

    assert frame.ByteSize() / sum(len(row.values) for row in rows) <= 1.5


def test_a_batch_that_would_unfold_too_far_is_refused_before_it_does():
    squeezer = zlib.compressobj(wbits=-15)
    bomb = squeezer.compress(bytes(64 << 20)) + squeezer.flush()

    with pytest.raises(TooLarge):
        samples.decode_batch(host_pb2.TelemetryBatch(deflated=bomb).SerializeToString())


def _plain(**changes: Any) -> host_pb2.TelemetryBatch:
    columns: dict[str, Any] = {
        "start_wall_ns": START,
        "at_ms": [0, 1],
        "metric": [1],
        "device": [1],
        "values": [1, 2],
        "devices": ["g"],
    }
    return host_pb2.TelemetryBatch(**(columns | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"at_ms": []},
        {"at_ms": [1, 0]},
        {"values": [1]},
        {"device": [2]},
        {"device": []},
        {"absent": b"12"},
        {"start_wall_ns": -1},
        {"values": [1 << 62, 1 << 62]},
        {"devices": ["g"] * 65},
        {"at_ms": range(4097), "values": range(4097)},
        {"metric": [1] * 40_000, "device": [1] * 40_000, "values": [1] * 80_000},
        {"deflated": b"\x07no deflate"},
        {"deflated": b"\x00"},
    ],
)
def test_a_batch_whose_columns_do_not_fit_is_refused(changes):
    with pytest.raises((InvalidInput, TooLarge)):
        samples.decode_batch(_plain(**changes).SerializeToString())


def test_a_batch_deflated_twice_is_refused():
    squeezer = zlib.compressobj(wbits=-15)
    inner = host_pb2.TelemetryBatch(deflated=b"x").SerializeToString()
    outer = squeezer.compress(inner) + squeezer.flush()

    with pytest.raises(InvalidInput):
        samples.decode_batch(host_pb2.TelemetryBatch(deflated=outer).SerializeToString())


def test_an_empty_batch_cannot_be_made():
    with pytest.raises(InvalidInput):
        samples.encode_batch([])


@pytest.mark.parametrize(
    ("metric", "reading", "wire_value"),
    [(6, 123.45, 1234), (6, 123.46, 1235), (3, 2.5 * 1048576, 2), (1, 1.0, 100), (8, 1.98e9, 1980), (101, 0.0005, 0)],
)
def test_a_reading_is_scaled_and_rounded_half_to_even(metric, reading, wire_value):
    assert samples.scale_value(metric, reading) == wire_value


def test_a_scaled_reading_is_within_half_a_step():
    assert abs(samples.unscale_value(6, samples.scale_value(6, 321.987)) - 321.987) <= 0.05


@pytest.mark.parametrize("metric, reading", [(6, float("nan")), (6, float("inf")), (9999, 1.0)])
def test_what_is_no_reading_is_refused(metric, reading):
    with pytest.raises(InvalidInput):
        samples.scale_value(metric, reading)
