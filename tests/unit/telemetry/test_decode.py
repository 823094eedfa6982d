"""Many batches decoded at once say what the reference reads of each."""

import random

import pytest

from windrow_master.telemetry.decode import STEPS_MAX, Decoder
from windrow_proto.errors import WindrowError
from windrow_proto.ids import HostId
from windrow_proto.samples import Sample, decode_batch, deflate, encode_batch, parse_columns
from windrow_proto.v1 import host_pb2

START_NS = 1_760_000_000_000_000_000
GPUS = ("GPU-a", "GPU-b")
Readings = tuple[dict[tuple[tuple[str, str], int, int], int], int]
"""Values by (host, device), metric and at_ms; and how many batches could not be read."""


def made(rng: random.Random, *, instants: int = 3, metrics: tuple[int, ...] = (1, 2, 3)) -> bytes:
    """A batch of two GPUs and the host, with absent values and every size of number."""

    def value() -> int | None:
        return None if rng.random() < 0.2 else rng.randrange(-(1 << rng.randrange(1, 62)), 1 << rng.randrange(1, 62))

    keys = [(gpu, metric) for gpu in GPUS for metric in metrics] + [("", 101), ("", 65_000)]
    return encode_batch([Sample(START_NS + n * 1_000_000_000, {key: value() for key in keys}) for n in range(instants)])


def read_at_once(bodies: list[bytes]) -> Readings:
    """Returns the values of the decoder of many."""
    numbers: dict[tuple[HostId, str], int] = {}
    decoder = Decoder(lambda host_id, device: numbers.setdefault((host_id, device), len(numbers)))
    decoded = decoder.decode((HostId(f"h{n}"), body) for n, body in enumerate(bodies))
    names = {number: key for key, number in numbers.items()}
    found: dict[tuple[tuple[str, str], int, int], int] = {}
    for tables in decoded.rows.values():
        for rows in tables:
            for metric, column in rows.columns.items():
                mask = rows.absent.get(metric)
                for at in range(len(rows.device)):
                    if mask is None or not mask[at]:
                        found[names[int(rows.device[at])], metric, int(rows.at_ms[at])] = int(column[at])
    return found, decoded.bad_batches


def read_one_by_one(bodies: list[bytes]) -> Readings:
    """The same by the reference."""
    found: dict[tuple[tuple[str, str], int, int], int] = {}
    bad = 0
    for number, body in enumerate(bodies):
        try:
            batch = decode_batch(body)
        except WindrowError:
            bad += 1
            continue
        for (device, metric), column in zip(batch.series, batch.values, strict=True):
            for at_ms, value in zip(batch.at_ms, column, strict=True):
                if value is not None:
                    found[(f"h{number}", device), metric, batch.start_wall_ns // 1_000_000 + at_ms] = value
    return found, bad


def test_batches_of_many_layouts_are_read_as_the_reference_reads_them():
    rng = random.Random(7)
    bodies = [
        made(rng, instants=rng.choice((1, 3, 5)), metrics=rng.choice(((1, 2), (1, 2, 3), (2,)))) for _ in range(60)
    ]

    assert read_at_once(bodies) == read_one_by_one(bodies)


def plain(**changed: object) -> host_pb2.TelemetryBatch:
    fields: dict[str, object] = {
        "start_wall_ns": START_NS,
        "at_ms": [0, 1000],
        "metric": [1, 2],
        "device": [1, 1],
        "values": [1, 2, 3, 4],
        "devices": ["GPU-a"],
    }
    return host_pb2.TelemetryBatch(**{**fields, **changed})  # type: ignore[arg-type]


def unpacked() -> bytes:
    """The values one by one, as protobuf lets a sender write them."""
    rest = plain(values=[]).SerializeToString()
    return rest + b"".join(bytes((5 << 3, n << 1)) for n in (1, 2, 3, 4))


ODD = {
    "in two pieces": plain(values=[1, 2]).SerializeToString()
    + host_pb2.TelemetryBatch(values=[3, 4]).SerializeToString(),
    "unpacked": unpacked(),
    "a piece that is whole by itself": unpacked() + plain(values=[5, 6, 7, 8]).SerializeToString(),
    "a field of a newer peer": plain().SerializeToString() + bytes((30 << 3 & 127 | 128, 30 << 3 >> 7, 1)),
    "a varint too long": plain().SerializeToString().replace(bytes((2, 4, 6, 8)), b"\x02\x04\x06" + b"\x80" * 11),
    "eleven bytes": plain(values=[]).SerializeToString() + b"\x2a\x0e\x02\x04\x06" + b"\x80" * 10 + b"\x00",
    "a varint cut short": plain().SerializeToString().replace(bytes((2, 4, 6, 8)), bytes((2, 4, 6, 136))),
    "a longer zero": plain(values=[]).SerializeToString() + b"\x2a\x05\x02\x04\x06\x88\x00",
    "descending": plain(at_ms=[5, 4]).SerializeToString(),
    "no such device": plain(device=[1, 2]).SerializeToString(),
    "too few values": plain(values=[1, 2, 3]).SerializeToString(),
    "too small a bitmap": plain(absent=b"").SerializeToString() + b"\x3a\x02\x00\x00",
    "before 1970": plain(start_wall_ns=-5).SerializeToString(),
    "no instants": plain(at_ms=[], values=[]).SerializeToString(),
    "no series": plain(metric=[], device=[], values=[]).SerializeToString(),
    "nothing": b"",
    "garbage": b"\xff\xff\xff",
    "deflated twice": host_pb2.TelemetryBatch(deflated=deflate(bytes(4000))).SerializeToString(),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_body_is_judged_as_the_reference_judges_it_and_harms_no_other(name):
    good = made(random.Random(3))
    bodies = [good, ODD[name], plain().SerializeToString(), deflate(ODD[name]), good]

    assert read_at_once(bodies) == read_one_by_one(bodies)


def test_what_is_not_laid_out_as_usual_is_laid_out_anew():
    usual = parse_columns(plain().SerializeToString())

    assert parse_columns(ODD["in two pieces"]) == usual
    assert parse_columns(ODD["unpacked"]) == usual
    assert parse_columns(ODD["a field of a newer peer"]) == usual


def test_rows_come_device_by_device_and_in_time_however_the_batches_came():
    rng, second = random.Random(7), 1_000_000_000
    keys = [(gpu, metric) for gpu in GPUS for metric in (1, 2)]
    wanted: dict[tuple[HostId, str, int, int], int] = {}
    sent = []
    for host in (HostId("h1"), HostId("h2")):
        for place in range(4):
            samples = []
            for n in range(5):
                at_ns = START_NS + (place * 5 + n) * second
                row = {key: rng.randrange(1 << 40) for key in keys}
                wanted |= {(host, gpu, metric, at_ns // 1_000_000): row[gpu, metric] for gpu, metric in keys}
                samples.append(Sample(at_ns, row))
            sent.append((host, encode_batch(samples)))
    rng.shuffle(sent)
    numbers: dict[int, tuple[HostId, str]] = {}
    decoder = Decoder(lambda host_id, device: numbers.setdefault(len(numbers), (host_id, device)) and len(numbers) - 1)
    (rows,) = (one for tables in decoder.decode(sent).rows.values() for one in tables)
    ordered = rows.in_order()
    places = list(zip(ordered.device.tolist(), ordered.at_ms.tolist(), strict=True))
    assert places == sorted(places)
    found = {
        (*numbers[device], metric, at_ms): value
        for metric, column in ordered.columns.items()
        for (device, at_ms), value in zip(places, column.tolist(), strict=True)
    }
    assert found == wanted


@pytest.mark.parametrize("instants", [1, 2, STEPS_MAX, STEPS_MAX + 1, 40])
def test_short_and_long_batches_are_summed_up_alike(instants):
    rng = random.Random(instants)
    bodies = [made(rng, instants=instants) for _ in range(5)]
    assert read_at_once(bodies) == read_one_by_one(bodies)
