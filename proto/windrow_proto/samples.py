"""Batches of samples: columns of integers, each series as its first value and differences, deflated when that is less.
Pure.

The pure reference; the Master decodes the same fields with numpy (`parse_columns` checks their sizes). Absent is None
and never zero: an absent value repeats the one before it and sets its bit in a bitmap.
"""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_proto import wire_fields as fields
from windrow_proto.errors import InvalidInput, TooLarge
from windrow_proto.metrics import BY_NUMBER, SLOW
from windrow_proto.units import MILLISECOND
from windrow_proto.v1 import host_pb2

HOST_DEVICE: Final = ""
"""The device of a metric that belongs to the host and to none of its GPUs."""
VALUES_MAX: Final = 65_536
"""Values in one batch: 25 times eight GPUs sampled for five seconds."""
INSTANTS_MAX: Final = 4096
DEVICES_MAX: Final = 64
INFLATED_BYTES_MAX: Final = 1 << 20
"""The deflated form may unfold to this and no further."""
_INT64: Final = 1 << 63
_START_NS_MAX: Final = _INT64 - (1 << 32) * MILLISECOND


@dataclass(frozen=True, slots=True)
class Sample:
    """All readings of one instant: (device, metric number) to the wire's integer, None where it could not be read."""

    at_wall_ns: int
    values: Mapping[tuple[str, int], int | None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples as columns: values[s][i] is series s at start_wall_ns + at_ms[i] milliseconds."""

    start_wall_ns: int
    at_ms: tuple[int, ...]
    series: tuple[tuple[str, int], ...]
    values: tuple[tuple[int | None, ...], ...]


def encode_batch(samples: Sequence[Sample]) -> bytes:
    """Samples, oldest first, as a body. An instant is kept to the millisecond, rounded down; where the wall clock went
    back between two samples, the later one gets the earlier one's time."""
    if not samples:
        raise InvalidInput("A batch needs at least one sample.")
    start = samples[0].at_wall_ns
    instants: list[int] = []
    for sample in samples:
        offset = (sample.at_wall_ns - start) // MILLISECOND
        instants.append(max(offset, instants[-1] if instants else 0))
    series = sorted(samples[0].values if len(samples) == 1 else {key for sample in samples for key in sample.values})
    devices = sorted({device for device, _ in series if device != HOST_DEVICE})
    places = {device: place + 1 for place, device in enumerate(devices)} | {HOST_DEVICE: 0}
    values: list[int] = []
    absent = bytearray()
    for key in series:
        before = 0
        for sample in samples:
            value = sample.values.get(key)
            if value is None:
                _set_bit(absent, len(values))
                values.append(0)
            else:
                values.append(value - before)
                before = value
    if absent:
        absent.extend(bytes((len(values) + 7) // 8 - len(absent)))
    plain = host_pb2.TelemetryBatch(
        start_wall_ns=start,
        at_ms=instants,
        metric=[metric for _, metric in series],
        device=[places[device] for device, _ in series],
        values=values,
        devices=devices,
        absent=bytes(absent),
    )
    _check_size(plain)  # the rest holds by the way it was made
    if not 0 <= start < _START_NS_MAX:
        raise InvalidInput("A batch begins before 1970 or after all time.")
    return deflate(plain.SerializeToString())


def _set_bit(bitmap: bytearray, place: int) -> None:
    if place // 8 >= len(bitmap):
        bitmap.extend(bytes(place // 8 + 1 - len(bitmap)))
    bitmap[place // 8] |= 1 << place % 8


def deflate(plain: bytes) -> bytes:
    """A serialised TelemetryBatch, wrapped in its deflated form if that is smaller."""
    squeezer = zlib.compressobj(level=6, wbits=-15, memLevel=8)
    packed = host_pb2.TelemetryBatch(deflated=squeezer.compress(plain) + squeezer.flush()).SerializeToString()
    return packed if len(packed) < len(plain) else plain


def parse_batch(data: bytes) -> host_pb2.TelemetryBatch:
    """The plain message of a body, every size and index checked; raises InvalidInput or TooLarge.

    Bit i (least significant first) of `absent` belongs to values[i]; value i of series s is values[s * instants + i].
    """
    message = fields.parse(host_pb2.TelemetryBatch, data, fields.TELEMETRY_BYTES_MAX)
    if message.deflated:
        message = fields.parse(host_pb2.TelemetryBatch, _inflate(message.deflated), INFLATED_BYTES_MAX)
        if message.deflated:
            raise InvalidInput("A batch is deflated once, not twice.")
    _check(message)
    return message


_HIGH: Final = bytes(range(128, 256))
"""A varint ends with its first byte that is none of these."""


def varints(packed: bytes) -> int:
    """How many varints a packed column holds; -1 if the last one is cut short."""
    return len(packed.translate(None, _HIGH)) if not packed or packed[-1] < 128 else -1


def parse_columns(data: bytes) -> host_pb2.TelemetryColumns:
    """A body with its columns left packed; raises InvalidInput or TooLarge.

    Sizes are checked as `parse_batch` does. Left to who decodes the columns: that no varint is longer than ten bytes,
    that instants ascend, and that each series names a device that is there. A body that is not laid out as
    `encode_batch` does it, which protobuf allows, is read the slow way and laid out anew.
    """
    message, size = fields.parse(host_pb2.TelemetryColumns, data, fields.TELEMETRY_BYTES_MAX), len(data)
    if message.deflated:
        plain = _inflate(message.deflated)
        message, size = fields.parse(host_pb2.TelemetryColumns, plain, INFLATED_BYTES_MAX), len(plain)
    instants, series, count = varints(message.at_ms), varints(message.metric), varints(message.values)
    if (
        0 < instants <= INSTANTS_MAX
        and series == varints(message.device)
        and series * instants == count <= VALUES_MAX
        and len(message.devices) <= DEVICES_MAX
        and (not message.absent or len(message.absent) == (count + 7) // 8)
        and 0 <= message.start_wall_ns < _START_NS_MAX
    ):
        message.DiscardUnknownFields()
        if message.ByteSize() == size:
            return message
    known = parse_batch(data)
    known.DiscardUnknownFields()
    return host_pb2.TelemetryColumns.FromString(known.SerializeToString())


def _inflate(packed: bytes) -> bytes:
    opener = zlib.decompressobj(wbits=-15)
    try:
        plain = opener.decompress(packed, INFLATED_BYTES_MAX + 1)
    except zlib.error as error:
        raise InvalidInput("A batch could not be inflated.") from error
    if len(plain) > INFLATED_BYTES_MAX:
        raise TooLarge(f"A batch unfolds to more than {INFLATED_BYTES_MAX} bytes.")
    if not opener.eof:
        raise InvalidInput("A batch's deflated form is cut short.")
    return plain


def _check_size(message: host_pb2.TelemetryBatch) -> None:
    instants, count = len(message.at_ms), len(message.values)
    if not 0 < instants <= INSTANTS_MAX or count > VALUES_MAX or len(message.devices) > DEVICES_MAX:
        raise TooLarge(f"A batch of {instants} instants, {count} values and {len(message.devices)} devices.")


def _check(message: host_pb2.TelemetryBatch) -> None:
    _check_size(message)
    instants, series, count = len(message.at_ms), len(message.metric), len(message.values)
    if count != series * instants or len(message.device) != series:
        raise InvalidInput("The columns of a batch do not fit each other.")
    if message.absent and len(message.absent) != (count + 7) // 8:
        raise InvalidInput("The bitmap of a batch does not fit its values.")
    if series and max(message.device) > len(message.devices):
        raise InvalidInput("A series names a device that is not in the batch.")
    if any(later < earlier for earlier, later in zip(message.at_ms, message.at_ms[1:], strict=False)):
        raise InvalidInput("The instants of a batch do not ascend.")
    if not 0 <= message.start_wall_ns < _START_NS_MAX:
        raise InvalidInput("A batch begins before 1970 or after all time.")


def decode_batch(data: bytes) -> Batch:
    """Read a body; raises InvalidInput or TooLarge. Metrics we do not know are kept: the peer may be newer."""
    message = parse_batch(data)
    devices = [HOST_DEVICE, *(fields.text(device) for device in message.devices)]
    instants = len(message.at_ms)
    deltas, absent = list(message.values), message.absent
    columns: list[tuple[int | None, ...]] = []
    for begin in range(0, len(deltas), instants):
        value = 0
        column: list[int | None] = []
        for place in range(begin, begin + instants):
            value += deltas[place]
            if not -_INT64 <= value < _INT64:
                raise InvalidInput("A value of a batch does not fit 64 bits.")
            is_absent = bool(absent) and bool(absent[place // 8] >> place % 8 & 1)
            column.append(None if is_absent else value)
        columns.append(tuple(column))
    return Batch(
        start_wall_ns=message.start_wall_ns,
        at_ms=tuple(message.at_ms),
        series=tuple((devices[d], m) for d, m in zip(message.device, message.metric, strict=True)),
        values=tuple(columns),
    )


def decode_ends(data: bytes, metrics: Collection[int] | None = None) -> Batch:
    """The first and the last instant of a body, for who looks at nothing between; raises as `decode_batch` does.
    metrics: of these alone; None: of all.

    A body of one instant has that one. Values between the ends are summed and not checked. Of a slow metric the last
    value that is there stands for the last instant.
    """
    message = parse_batch(data)
    instants = len(message.at_ms)
    if instants == 1:
        return decode_batch(data)
    devices = [HOST_DEVICE, *(fields.text(device) for device in message.devices)]
    absent, columns = message.absent, list[tuple[int | None, ...]]()
    deltas: Sequence[int] = list(message.values) if metrics is None else message.values  # which is slower, and copied
    places = [place for place, metric in enumerate(message.metric) if metrics is None or metric in metrics]
    for place in places:
        begin, end = place * instants, (place + 1) * instants - 1
        first, last = deltas[begin], sum(deltas[begin : end + 1])
        if not -_INT64 <= last < _INT64:
            raise InvalidInput("A value of a batch does not fit 64 bits.")
        if absent:
            is_first_absent, is_last_absent = (absent[at // 8] >> at % 8 & 1 for at in (begin, end))
            if is_last_absent and message.metric[place] in SLOW:  # an absent value repeats the one before it
                is_last_absent = all(absent[at // 8] >> at % 8 & 1 for at in range(begin, end))
            columns.append((None if is_first_absent else first, None if is_last_absent else last))
        else:
            columns.append((first, last))
    return Batch(
        start_wall_ns=message.start_wall_ns,
        at_ms=(message.at_ms[0], message.at_ms[-1]),
        series=tuple((devices[message.device[place]], message.metric[place]) for place in places),
        values=tuple(columns),
    )


def scale_value(metric: int, value: float) -> int:
    """A reading in the metric's unit as the wire's integer, rounded half to even; raises InvalidInput if there is no
    such metric or the reading is not a finite number."""
    if metric not in BY_NUMBER:
        raise InvalidInput(f"There is no metric {metric}.")
    try:
        return round(value / BY_NUMBER[metric].scale)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"A reading of {BY_NUMBER[metric].name} is not a number: {value}") from error


def unscale_value(metric: int, wire: int) -> float:
    """The wire's integer in the metric's unit; raises InvalidInput if there is no such metric."""
    if metric not in BY_NUMBER:
        raise InvalidInput(f"There is no metric {metric}.")
    return wire * BY_NUMBER[metric].scale
