"""Rows of samples as Prometheus remote-write requests (version 1: a snappy-compressed WriteRequest). Pure.

    timeseries = 1 { labels = 1 { name = 1, value = 2 }, samples = 2 { value = 1 double, timestamp = 2 ms } }

A series is `windrow_<metric>{gpu=..., host=..., simulated=...}`, of a workload `{host=..., workload=...}`, its value in
the metric's unit; a metric that this version does not know is `windrow_metric_<number>` in wire integers. Whole columns
are laid out by numpy: a sample costs no Python.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import cramjam
import numpy as np
from numpy.typing import NDArray

from windrow_master.telemetry.decode import Decoded, Rows
from windrow_master.telemetry.model import Place
from windrow_proto.ids import HostId
from windrow_proto.metrics import BY_NUMBER, Scope

Labels = tuple[tuple[str, str], ...]
OLDEST_MS: Final = 1 << 35
"""1971: instants before it take fewer bytes and are nobody's."""
NEWEST_MS: Final = 1 << 42
"""The year 2109; up to here an instant takes six bytes."""
_STAMP_BYTES: Final = 6
_SAMPLE_BYTES: Final = 12 + _STAMP_BYTES


@dataclass(frozen=True, slots=True)
class Piece:
    """One encoded TimeSeries and how many samples it holds."""

    data: bytes
    samples: int


def series_name(metric: int) -> str:
    """The name of a metric's series in the store."""
    known = BY_NUMBER.get(metric)
    return f"windrow_{known.name}" if known is not None else f"windrow_metric_{metric}"


def labels_of(place: Place, metric: int, is_simulated: bool) -> Labels:
    """The labels of one series, sorted by name as the protocol wants them. Only those of simulated hosts are marked."""
    host_id, device = place
    of_device = ((device_label(metric), device),) if device else ()
    mark = (("simulated", "yes"),) if is_simulated else ()
    return (("__name__", series_name(metric)), *sorted((("host", host_id), *of_device, *mark)))


def device_label(metric: int) -> str:
    """The label that names the device of a metric's series."""
    known = BY_NUMBER.get(metric)
    return "workload" if known is not None and known.scope is Scope.WORKLOAD else "gpu"


class Encoder:
    """Encodes rows and remembers the labels of each series. place: whose number of the decoder a device is;
    is_simulated: whether a host is."""

    SERIES_MAX: Final = 1 << 20
    """Labels remembered; beyond it they are encoded anew."""

    def __init__(self, place: Callable[[int], Place], is_simulated: Callable[[HostId], bool]) -> None:
        self._place, self._is_simulated = place, is_simulated
        self._labels: dict[tuple[int, int], bytes] = {}

    def pieces(self, decoded: Decoded) -> list[Piece]:
        """A TimeSeries for each run of a device's metric; instants ascend in it, each once."""
        found: list[Piece] = []
        for rows in (rows for tables in decoded.rows.values() for rows in tables):
            usable = rows.where((rows.at_ms > OLDEST_MS) & (rows.at_ms < NEWEST_MS))
            if len(usable.device):
                found += self._of(usable.in_order())
        return found

    def _of(self, rows: Rows) -> Iterable[Piece]:
        stamps = _stamps(rows.at_ms)
        # An instant that comes twice keeps its last value, as it would in the store.
        is_last = np.append((rows.device[1:] != rows.device[:-1]) | (rows.at_ms[1:] != rows.at_ms[:-1]), True)
        ends = np.flatnonzero(np.append(rows.device[1:] != rows.device[:-1], True)) + 1
        for metric, column in rows.columns.items():
            known = BY_NUMBER.get(metric)
            encoded = _samples(
                np.asarray(column * (known.scale if known is not None else 1.0), dtype=np.float64), stamps
            )
            absent = rows.absent.get(metric)
            keep = is_last if absent is None else is_last & ~absent
            begin = 0
            for end in ends.tolist():
                chosen = encoded[begin:end][keep[begin:end]]
                if len(chosen):
                    labels = self._labels_of(int(rows.device[begin]), metric)
                    yield Piece(_field(1, labels + chosen.tobytes()), len(chosen))
                begin = end

    def _labels_of(self, device: int, metric: int) -> bytes:
        known = self._labels.get((device, metric))
        if known is None:
            if len(self._labels) >= self.SERIES_MAX:
                self._labels.clear()
            place = self._place(device)
            labels = labels_of(place, metric, self._is_simulated(place[0]))
            known = self._labels[device, metric] = label_bytes(labels)
        return known


def one_sample(labels: Labels, value: float, at_ms: int) -> Piece:
    """A series of a single sample."""
    sample = _samples(np.array([value]), _stamps(np.array([at_ms], dtype=np.int64)))
    return Piece(_field(1, label_bytes(labels) + sample.tobytes()), 1)


def request(pieces: Sequence[Piece]) -> bytes:
    """A compressed WriteRequest."""
    return bytes(cramjam.snappy.compress_raw(b"".join(piece.data for piece in pieces)))


def label_bytes(labels: Labels) -> bytes:
    """The labels of a TimeSeries."""
    return b"".join(_field(1, _field(1, name.encode()) + _field(2, value.encode())) for name, value in labels)


def _stamps(at_ms: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Instants as varints of six bytes each."""
    shifts = np.arange(_STAMP_BYTES, dtype=np.int64) * 7
    parts = (at_ms[:, None] >> shifts) & 0x7F
    parts[:, :-1] |= 0x80
    return parts.astype(np.uint8)


def _samples(values: NDArray[np.float64], stamps: NDArray[np.uint8]) -> NDArray[np.uint8]:
    encoded = np.empty((len(values), _SAMPLE_BYTES), dtype=np.uint8)
    encoded[:, 0], encoded[:, 1], encoded[:, 2] = 0x12, _SAMPLE_BYTES - 2, 0x09
    encoded[:, 3:11] = np.ascontiguousarray(values, dtype="<f8").view(np.uint8).reshape(len(values), 8)
    encoded[:, 11] = 0x10
    encoded[:, 12:] = stamps
    return encoded


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
