"""What the HTTP API answers about one GPU, as models for its description. They describe and never run (see out.py)."""

from typing import Annotated

from pydantic import Field

from windrow_master.api.out import Amount, ConditionOut, GpuOut, Out, SlotOut, Time


class GpuFieldOut(Out):
    """One field of a GPU."""

    name: Annotated[str, Field(description="Stable; a metric's name where it is one")]
    label: str
    value: Annotated[float | bool | str | None, Field(description="In its unit; null where it was not said or read")]
    unit: Annotated[str, Field(description="UCUM; `bool`, `ratio`, or empty for words")]
    rate: Annotated[str, Field(description="How often it is read")]
    read: Annotated[str, Field(description="The NVML call or field id it is read by")]
    otel: Annotated[str | None, Field(description="Its name in OpenTelemetry's hardware conventions")]
    dcgm: Annotated[str | None, Field(description="Its name in dcgm_fields.h, without DCGM_FI_DEV_")]
    note: str | None


class GpuGroupOut(Out):
    """Fields about one thing."""

    name: str
    fields: list[GpuFieldOut]


class BenchmarkOut(Out):
    """What a test rental measured of a GPU, from inside."""

    name: str
    value: float
    unit: str
    measured_at: Time
    proof_id: Annotated[str, Field(description="The test rental, as in `/hosts/{id}/proof`")]


class GpuPageOut(GpuOut):
    """One GPU whole."""

    host_id: str
    host_name: str
    simulated: bool
    region: str | None
    link_state: str
    price_per_hour: Amount
    cluster_id: str | None
    slices: Annotated[list[SlotOut], Field(description="What it is, or was, cut into")]
    conditions: list[ConditionOut]
    claims: Annotated[list[ConditionOut], Field(description="What contradicts itself in what its host says of it")]
    benchmarks: Annotated[list[BenchmarkOut], Field(description="The newest first, twenty at most")]
    groups: list[GpuGroupOut]
