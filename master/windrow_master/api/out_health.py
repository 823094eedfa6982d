"""What the HTTP API answers about readings and about how the Master fares. Models as in out.py."""

from typing import Annotated, Final

from pydantic import Field

from windrow_master.api.out import ConditionOut, Out, Page, Time, described

Point = tuple[int, float | None]
"""The start of the step in milliseconds since the epoch, and the value; null where nothing was read."""


class MetricOut(Out):
    """What a metric means."""

    name: str
    scope: str
    unit: str
    counter: bool
    label: str
    otel: str | None
    dcgm: str | None


class SeriesOut(Out):
    """One metric of a host or of one of its GPUs over time."""

    metric: str
    gpu: Annotated[str | None, Field(description="The GPU's uuid; null for the host itself")]
    unit: str
    points: list[Point]


class HistoryOut(Out):
    """Some metrics of a host over time."""

    series: list[SeriesOut]
    step_s: int


class TierSeriesOut(Out):
    """One metric over time, the mean of all GPUs of a tier."""

    metric: str
    tier: Annotated[str | None, Field(description="Null for GPUs that had none")]
    unit: str
    points: list[Point]


class FleetHistoryOut(Out):
    """One metric of the whole fleet over time, by tier."""

    series: list[TierSeriesOut]
    step_s: int


class StoreHealthOut(Out):
    """How the store of decisions fares."""

    problem: str | None
    commits: int
    writes: int
    failures: int
    pending: int


class BusHealthOut(Out):
    """How wake-ups reach the other processes."""

    kind: str
    is_well: bool
    peers: Annotated[list[dict[str, str]], Field(description="Each process by `id` and what it says of itself")]


class LogHealthOut(Out):
    """What the log of samples has counted since the start; sizes in bytes."""

    records: int
    bytes: int
    fsyncs: int
    failed_fsyncs: int
    dropped_segments: int
    forced_segments: int
    unread_segments: int
    kept_bytes: int
    damage: int


class ViewHealthOut(Out):
    """How a view of history fares."""

    is_open: bool
    path: str
    problem: str
    lag_ns: Annotated[int, Field(description="How old the newest record is that it took in; 0 if it took in all")]
    rows: int
    bad_batches: int
    misdated: int


class MasterHealthOut(Out):
    """How the Master fares."""

    version: str
    epoch: int
    uptime_s: int
    store: StoreHealthOut
    streams: Annotated[int, Field(description="Open live streams")]
    problems: list[str]
    conditions: list[ConditionOut]
    bus: BusHealthOut
    log: LogHealthOut
    log_lag: Annotated[int, Field(description="Records that wait for the disk")]
    duckdb_lag_s: float
    duckdb: ViewHealthOut
    history: list[ViewHealthOut]


class AccessHealthOut(Out):
    """How an Access fares, all of its workers together."""

    access_id: str
    region: str
    address: str
    version: str
    workers: int
    agents: int
    load_permille: int
    shed_frames: int
    queued_bytes: int
    connected_since: Time


class HealthOut(Out):
    """The Master's and every Access's state."""

    master: MasterHealthOut
    accesses: list[AccessHealthOut]


class WellOut(Out):
    """Whether the Master can store what it acknowledges: `ok` or `failing`."""

    status: str
    epoch: int
    problems: Annotated[list[str], Field(description="In words; only those of the store make it fail")]
    conditions: Annotated[list[str], Field(description="Codes of what /operators/health describes")]


WELL: Final = described(WellOut) | described(WellOut, 503)
CATALOG: Final = described(Page[MetricOut])
HISTORY: Final = described(HistoryOut)
FLEET_HISTORY: Final = described(FleetHistoryOut)
HEALTH: Final = described(HealthOut)
