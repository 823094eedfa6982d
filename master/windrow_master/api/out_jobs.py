"""What the HTTP API answers about jobs. Models as in out.py."""

from typing import Annotated

from pydantic import Field

from windrow_master.api.out import VALUES, Amount, Money, Out, Time
from windrow_master.api.out_health import Point


class AttemptOut(Out):
    """One cluster that a job had."""

    number: int
    cluster_id: str
    began_at: Time
    started_at: Annotated[str | None, Field(description="When its command was first seen to run")]
    ended_at: Time | None
    exit_code: int | None
    outcome: Annotated[str | None, Field(description="How it ended, in words; null while it goes on")]
    log_bytes: Annotated[int | None, Field(description="Kept of its log; null where it could not be had")]
    log_truncated: bool
    files_bytes: Annotated[int | None, Field(description="Kept of the files that it changed, as a tar")]
    files_truncated: bool
    cost: Money


class JobRequestOut(Out):
    """What was asked for; what was not said is null."""

    argv: list[str]
    gpus: int
    gpu_model: str | None
    gpu_memory_bytes: int | None
    cpus: int
    memory_bytes: int | None
    image: str | None
    env: Annotated[dict[str, str | None], Field(description=VALUES)]
    tier: str | None
    runtime: str | None
    simulated: bool
    slice: str | None
    max_price_per_hour: Amount
    retries: int
    retries_on_exit: bool
    max_duration_seconds: float | None
    deadline: Time | None
    budget: Amount
    priority: int
    after: list[str]
    array_size: int
    await_files: bool
    packages: list[str]
    volumes: list[str]
    checkpoint_every_seconds: float


class JobOut(Out):
    """A job."""

    id: str
    name: str
    account_id: str
    group_id: Annotated[str, Field(description="The first job of its submission; an array shares it")]
    array_index: int
    state: str
    reason: str | None
    request: JobRequestOut
    attempts: list[AttemptOut]
    exit_code: Annotated[int | None, Field(description="Of its last attempt")]
    folder_bytes: Annotated[int | None, Field(description="Of the folder kept for it; null where none was sent")]
    cost_so_far: Money
    created_at: Time
    ended_at: Time | None
    version: int


class JobsOut(Out):
    """The jobs of one submission."""

    jobs: list[JobOut]


class FolderKeptOut(Out):
    """What is kept of a folder."""

    bytes: int


class FiguresOut(Out):
    """Of one metric in one stretch of time; null where nothing was read."""

    mean: float | None
    max: float | None


class StretchOut(Out):
    """One GPU in one stretch of time."""

    utilization_ratio: FiguresOut
    memory_used_bytes: FiguresOut
    power_watts: FiguresOut
    throttled_ratio: Annotated[float | None, Field(description="Of the steps, in how many its clocks were held back")]


class CardSeriesOut(Out):
    """A line of a chart."""

    metric: str
    unit: str
    points: list[Point]


class CardImpactOut(Out):
    """One GPU that an attempt had: a minute before, during and a minute after it."""

    host_id: str
    host_name: str
    gpu: str
    before: StretchOut
    during: StretchOut
    after: StretchOut
    series: list[CardSeriesOut]


class ImpactOut(Out):
    """What an attempt did to its GPUs; none of it where it had none."""

    attempt: Annotated[int | None, Field(description="Its number; null where there is none yet")]
    started_at: Annotated[str | None, Field(description="When its command was first seen to run")]
    ended_at: Time | None
    step_s: int
    gpus: list[CardImpactOut]
