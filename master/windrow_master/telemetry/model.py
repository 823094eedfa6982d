"""Telemetry's values: a record of the log, a position in it, a question about history and its answer. Frozen. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from windrow_proto.ids import BootId, HostId
from windrow_proto.metrics import BY_NAME
from windrow_proto.model import Kind

NS_PER_MS: Final = 1_000_000
GPU_USE: Final = BY_NAME["workload_gpu_ratio"].number
"""The metric that says how busy the GPUs of a workload are."""

Place = tuple[HostId, str]
"""A host and one of its GPUs by uuid, or one of its workloads by id; "" is the host itself."""

Tiers = Callable[[], Mapping[Place, str]]
"""The tier of each GPU now; called on the loop."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record of the segment log: what a host sent, with where it came from and when it arrived (wall)."""

    host_id: HostId
    origin_boot: BootId
    origin_sequence: int
    kind: Kind
    received_ns: int
    body: bytes


@dataclass(frozen=True, slots=True, order=True)
class LogPosition:
    """The place where a record begins: the term's directory, the segment in it, the byte in that."""

    epoch: int
    segment: int
    offset: int


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """The subject of a series: device is a GPU's uuid, a workload's id, or empty for the host itself."""

    host_id: HostId
    device: str
    metric: int


@dataclass(frozen=True, slots=True)
class SeriesQuery:
    """Points of some series between two wall times (milliseconds, half open), one per step."""

    keys: tuple[SeriesKey, ...]
    from_ms: int
    to_ms: int
    step_ms: int


@dataclass(frozen=True, slots=True)
class SeriesPoints:
    """The answer for one series: (start of the step in ms, value in the metric's unit); None where nothing was read."""

    key: SeriesKey
    points: tuple[tuple[int, float | None], ...]


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """The mean of one gauge over the GPUs of each tier, per step, between two wall times (ms, half open)."""

    metric: int
    from_ms: int
    to_ms: int
    step_ms: int


GroupPoints = Mapping[str, tuple[tuple[int, float | None], ...]]
"""Of each tier: (start of the step in ms, mean in the metric's unit)."""


@dataclass(frozen=True, slots=True)
class ViewHealth:
    """The health of the view of history. lag_ns: how old the newest record is that it took in, 0 if it took in all;
    bad_batches: unreadable; misdated: values of a time that no chart can show."""

    is_open: bool
    path: str
    problem: str
    lag_ns: int
    rows: int
    bad_batches: int
    misdated: int
