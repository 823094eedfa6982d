"""Turns many batches of samples into wide columns at once, for bulk inserts into the view of history. Pure.

A row is one device at one instant, a column one metric: what every value would repeat (whose it is, and when) is said
once a row. Batches of the same layout, as all hosts of a kind send them, are laid on each other and summed in one go.
What the table of metrics does not know (the peer may be newer) becomes narrow rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from windrow_master.telemetry.model import NS_PER_MS
from windrow_proto.errors import InvalidInput, WindrowError
from windrow_proto.ids import HostId
from windrow_proto.metrics import BY_NUMBER, Scope
from windrow_proto.samples import HOST_DEVICE, parse_columns, varints
from windrow_proto.v1 import host_pb2
from windrow_proto.wire_fields import text

Int64 = NDArray[np.int64]
Uint64 = NDArray[np.uint64]
Mask = NDArray[np.bool_]
_UINT32: Final = np.uint64(0xFFFF_FFFF)
DeviceNumber = Callable[[HostId, str], int]
"""The number under which the view keeps a device of a host; "" is the host itself."""
Series = list[tuple[int, int]]
"""Place in the layout and metric, of one device."""
Group = tuple[Scope | None, dict[int, Series], tuple[int, ...]]
"""Scope, the devices (by index) whose series of that scope are the same metrics, and these metrics."""
VARINT_BYTES_MAX: Final = 10
AT_ONCE: Final = 64
"""Batches whose differences are unpacked together: what lies between stays in the processor's cache."""
STEPS_MAX: Final = 16
"""Instants up to which all series are summed one instant after the other: numpy's own way costs thrice on so few."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table: device number, instant in wall milliseconds, and the metrics' columns of wire integers.

    absent: which places of a column are no values; a metric without an entry has none of those. is_in_order: by device,
    and each device's by when its batches began.
    """

    device: Int64
    at_ms: Int64
    columns: Mapping[int, Int64]
    absent: Mapping[int, Mask]
    is_in_order: bool = False

    @property
    def values(self) -> int:
        """How many values there are."""
        return len(self.device) * len(self.columns) - sum(int(mask.sum()) for mask in self.absent.values())

    def where(self, keep: Mask) -> "Rows":
        """Only these rows."""
        if keep.all():
            return self
        columns = {metric: column[keep] for metric, column in self.columns.items()}
        absent = {m: mask[keep] for m, mask in self.absent.items()}
        return Rows(self.device[keep], self.at_ms[keep], columns, absent, self.is_in_order)

    def part(self, part: slice) -> "Rows":
        """A stretch of these rows."""
        columns = {metric: column[part] for metric, column in self.columns.items()}
        absent = {m: mask[part] for m, mask in self.absent.items()}
        return Rows(self.device[part], self.at_ms[part], columns, absent, self.is_in_order)

    def in_order(self) -> "Rows":
        """Sorted by device, then instant: runs of one device compress best."""
        if self.is_in_order:
            return self
        order = np.lexsort((self.at_ms, self.device))
        columns = {metric: column[order] for metric, column in self.columns.items()}
        absent = {m: mask[order] for m, mask in self.absent.items()}
        return Rows(self.device[order], self.at_ms[order], columns, absent, is_in_order=True)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Rows by scope; None holds what has no scope, one metric per Rows."""

    rows: Mapping[Scope | None, tuple[Rows, ...]]
    bad_batches: int

    @property
    def values(self) -> int:
        """How many values there are."""
        return sum(rows.values for tables in self.rows.values() for rows in tables)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The common layout of batches with the same columns `metric` and `device`."""

    series: int
    device_max: int
    groups: tuple[Group, ...]


@dataclass(slots=True)
class _Stack:
    """Batches of one layout and number of instants, laid on each other."""

    layout: _Layout
    width: int
    devices: list[Int64] = field(default_factory=list)
    start_ms: list[int] = field(default_factory=list)
    at_ms: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    absent: list[bytes] = field(default_factory=list)


class Decoder:
    """Decodes and remembers which devices of a host have which numbers. Used from one thread."""

    HOSTS_MAX: Final = 65_536
    """Remembered; beyond it everything is looked up anew."""
    LAYOUTS_MAX: Final = 4_096

    def __init__(self, number: DeviceNumber) -> None:
        self._number = number
        self._devices: dict[HostId, tuple[tuple[str, ...], Int64]] = {}
        self._layouts: dict[tuple[bytes, bytes], _Layout] = {}

    def decode(self, batches: Iterable[tuple[HostId, bytes]]) -> Decoded:
        """Decode bodies of many hosts; one that cannot be read is counted and left out."""
        stacks: dict[tuple[bytes, bytes, int], _Stack] = {}
        bad = 0
        for host_id, body in batches:
            try:
                message = parse_columns(body)
                self._lay(stacks, message, self._numbers(host_id, tuple(message.devices)))
            except WindrowError:
                bad += 1
        found: dict[Scope | None, list[Rows]] = {}
        for stack in stacks.values():
            tables, unreadable = _unstack(stack)
            bad += unreadable
            for scope, rows in tables:
                found.setdefault(scope, []).append(rows)
        return Decoded({scope: _tables(scope, rows) for scope, rows in found.items()}, bad)

    def forget(self) -> None:
        """The numbers have changed."""
        self._devices.clear()

    def _numbers(self, host_id: HostId, names: tuple[str, ...]) -> Int64:
        known = self._devices.get(host_id)
        if known is not None and known[0] == names:
            return known[1]
        if len(self._devices) >= self.HOSTS_MAX:
            self._devices.clear()
        cleaned = [HOST_DEVICE, *map(text, names)]
        numbers = np.array([self._number(host_id, name) for name in cleaned], dtype=np.int64)
        self._devices[host_id] = names, numbers
        return numbers

    def _lay(
        self,
        stacks: dict[tuple[bytes, bytes, int], _Stack],
        message: host_pb2.TelemetryColumns,
        devices: Int64,
    ) -> None:
        if not message.metric:
            return
        layout = self._layout(message.metric, message.device)
        if layout.device_max >= len(devices):
            raise InvalidInput("A series names a device that is not in the batch.")
        key = message.metric, message.device, varints(message.at_ms)
        stack = stacks.get(key)
        if stack is None:
            stack = stacks[key] = _Stack(layout, key[2])
        stack.devices.append(devices)
        stack.start_ms.append(message.start_wall_ns // NS_PER_MS)
        stack.at_ms.append(message.at_ms)
        stack.values.append(message.values)
        stack.absent.append(message.absent)

    def _layout(self, metric: bytes, device: bytes) -> _Layout:
        layout = self._layouts.get((metric, device))
        if layout is None:
            if len(self._layouts) >= self.LAYOUTS_MAX:
                self._layouts.clear()
            (metrics, long), (devices, longer) = _varints([metric]), _varints([device])
            if long.any() or longer.any():
                raise InvalidInput("A column of a batch is not made of varints.")
            numbers = [(devices & _UINT32).tolist(), (metrics & _UINT32).tolist()]
            layout = _Layout(len(numbers[1]), max(numbers[0]), tuple(_groups(numbers[1], numbers[0])))
            self._layouts[metric, device] = layout
        return layout


def _varints(packed: Sequence[bytes]) -> tuple[Uint64, Mask]:
    """The varints in these columns one after the other, and which of them are longer than a varint may be."""
    data = np.frombuffer(b"".join(packed), dtype=np.uint8)
    ends = np.flatnonzero(data < 128)
    starts = np.empty_like(ends)
    starts[0], starts[1:] = 0, ends[:-1] + 1
    more = ends - starts
    low = data & np.uint8(127)
    found = low[starts].astype(np.uint64)
    unread = np.flatnonzero(more)
    for place in range(1, VARINT_BYTES_MAX):
        if not len(unread):
            break
        found[unread] |= low[starts[unread] + place].astype(np.uint64) << np.uint64(7 * place)
        unread = unread[more[unread] > place]
    return found, more >= VARINT_BYTES_MAX


def _signed(found: Uint64) -> Int64:
    """Zigzag: the sign is the lowest bit."""
    return (found >> np.uint64(1)).view(np.int64) ^ -(found & np.uint64(1)).view(np.int64)


def _unstack(stack: _Stack) -> tuple[list[tuple[Scope | None, Rows]], int]:
    """The rows of one layout, for each table the devices that have the same metrics together; and how many batches
    could not be read after all."""
    count, series, width = len(stack.start_ms), stack.layout.series, stack.width
    instants, is_long = _varints(stack.at_ms)
    at_ms = (instants & _UINT32).view(np.int64).reshape(count, width)
    is_bad = np.zeros(count, dtype=np.bool_)
    is_bad |= (np.diff(at_ms, axis=1) < 0).any(axis=1)
    is_bad |= is_long.reshape(count, -1).any(axis=1)
    values = np.empty((count, series, width), dtype=np.int64)
    for first in range(0, count, AT_ONCE):
        part = slice(first, first + AT_ONCE)
        deltas, are_long = _varints(stack.values[part])
        _sum_up(_signed(deltas).reshape(-1, series, width), values[part])
        is_bad[part] |= are_long.reshape(-1, series * width).any(axis=1)
    absent = _absent(stack.absent, values.shape)
    all_values = values.reshape(-1, width)
    all_absent = absent.reshape(-1, width) if absent is not None else None
    at_ms = at_ms + np.array(stack.start_ms)[:, None]
    devices = np.stack(stack.devices) if len({len(one) for one in stack.devices}) == 1 else None
    found = []
    for scope, of_scope, names in stack.layout.groups:
        places = np.array([[place for place, _ in of_device] for of_device in of_scope.values()])
        chosen = list(of_scope)
        numbers = devices[:, chosen] if devices is not None else np.stack([one[chosen] for one in stack.devices])
        # What is moved is a device's stretch of a batch, and each only once: to its place in the order of the rows.
        order = np.lexsort((np.repeat(at_ms[:, 0], len(chosen)), numbers.reshape(-1)))
        batch, which = order // len(chosen), order % len(chosen)
        if is_bad.any():
            batch, which = batch[~is_bad[batch]], which[~is_bad[batch]]
        stretch = (batch * series)[:, None] + places[which]
        columns = {m: all_values.take(stretch[:, at], axis=0).reshape(-1) for at, m in enumerate(names)}
        masks: dict[int, Mask] = {}
        if all_absent is not None:
            masks = {m: all_absent.take(stretch[:, at], axis=0).reshape(-1) for at, m in enumerate(names)}
        rows = Rows(
            np.repeat(numbers[batch, which], width),
            at_ms[batch].reshape(-1),
            columns,
            {metric: mask for metric, mask in masks.items() if mask.any()},
            is_in_order=True,
        )
        found.append((scope, _with_values(rows)))
    return found, int(is_bad.sum())


def _with_values(rows: Rows) -> Rows:
    """Without the rows that have no value at all: a workload is in few of the samples of a batch."""
    if not rows.columns or len(rows.absent) < len(rows.columns):
        return rows
    return rows.where(~np.logical_and.reduce(list(rows.absent.values())))


def _sum_up(deltas: Int64, values: Int64) -> None:
    """values[batch, series, instant]: the sums of the differences up to there."""
    if deltas.shape[2] > STEPS_MAX:
        np.cumsum(deltas, axis=2, out=values)
        return
    values[:, :, 0] = deltas[:, :, 0]
    for instant in range(1, deltas.shape[2]):
        np.add(values[:, :, instant - 1], deltas[:, :, instant], out=values[:, :, instant])


def _groups(metrics: Sequence[int], device_of: Sequence[int]) -> Iterable[Group]:
    """The series of a layout, by scope and then by what each device has of it."""
    by_device: dict[tuple[Scope | None, int, int], Series] = {}
    for place, (metric, device) in enumerate(zip(metrics, device_of, strict=True)):
        known = BY_NUMBER.get(metric)
        # Narrow rows are one metric each, and so is a metric that a batch names twice.
        alone = (None, metric, device) if known is None else (known.scope, 0, device)
        series = by_device.setdefault(alone, [])
        if any(named == metric for _, named in series):
            series = by_device.setdefault((alone[0], place + 1, device), [])
        series.append((place, metric))
    groups: dict[tuple[Scope | None, int, tuple[int, ...]], dict[int, Series]] = {}
    for (scope, extra, device), series in by_device.items():
        names = tuple(metric for _, metric in series)
        groups.setdefault((scope, extra, names), {})[device] = series
    for (scope, _, names), of_scope in groups.items():
        yield scope, of_scope, names


def _absent(bitmaps: Sequence[bytes], shape: tuple[int, int, int]) -> Mask | None:
    if not any(bitmaps):
        return None
    each = shape[1] * shape[2]
    size = (each + 7) // 8
    packed = b"".join(bitmap or bytes(size) for bitmap in bitmaps)
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8).reshape(-1, size), axis=1, bitorder="little")
    found: Mask = bits[:, :each].reshape(shape) != 0
    return found


def _tables(scope: Scope | None, rows: Sequence[Rows]) -> tuple[Rows, ...]:
    """All rows of a scope as one table; what has no scope stays as it is."""
    if scope is None or len(rows) == 1:
        return tuple(rows)
    named = sorted({metric for one in rows for metric in one.columns})
    columns, absent = {}, {}
    for metric in named:
        columns[metric] = np.concatenate([one.columns.get(metric, _zeros(one)) for one in rows])
        if any(metric in one.absent or metric not in one.columns for one in rows):
            absent[metric] = np.concatenate([_mask(one, metric) for one in rows])
    devices = np.concatenate([one.device for one in rows])
    return (Rows(devices, np.concatenate([one.at_ms for one in rows]), columns, absent),)


def _zeros(rows: Rows) -> Int64:
    return np.zeros(len(rows.device), dtype=np.int64)


def _mask(rows: Rows, metric: int) -> Mask:
    if metric not in rows.columns:
        return np.ones(len(rows.device), dtype=np.bool_)
    found = rows.absent.get(metric)
    return np.zeros(len(rows.device), dtype=np.bool_) if found is None else found
