"""Describes one GPU as the JSON of the HTTP API: every field of the table with its value or null, and the findings
about it."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from windrow_master.api import condition_shapes
from windrow_master.api.answers import Amount, Out, Read, Time
from windrow_master.api.fleet_shapes import ConditionOut, GpuOut, Sees, SlotOut, gpu_json, gpu_live_json, slot_json
from windrow_master.fleet.availability import gpus_shown
from windrow_master.fleet.conditions import CLAIM
from windrow_master.fleet.model import CardBenchmark, Slot
from windrow_master.fleet.view import Entry
from windrow_master.store.model import EventRow
from windrow_master.telemetry.live import Reading
from windrow_proto.conditions import split
from windrow_proto.gpu_fields import GPU_FIELDS, GpuField, Group, Source, fact, throttle_words
from windrow_proto.metrics import BENCHMARK_NAMES, BY_NAME
from windrow_proto.model import GpuFacts, Inventory
from windrow_proto.units import time_text

Json = dict[str, Any]

PRIVATE: Final = frozenset({"serial", "pdi"})
"""Fields that identify a card wherever it goes: shown to its host's owner and to operators and auditors."""


class GpuFieldOut(Out):
    """One field of a GPU."""

    name: Annotated[str, Field(description="Stable; a metric's name where it is one")]
    label: str
    value: Annotated[float | bool | str | None, Field(description="In its unit; null where it was not said or read")]
    unit: Annotated[
        str,
        Field(description="UCUM; `bool`, `ratio`, or empty for words"),
        Read(lambda one: "ratio" if one.name.endswith("_ratio") else one.unit),
    ]
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
    """A figure of a GPU that a test rental measured from inside."""

    name: str
    title: Annotated[str, Field(description="The name for people")]
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


def gpu_page_json(
    entry: Entry,
    gpu: GpuFacts,
    reading: Reading | None,
    xids: Sequence[EventRow],
    benchmarks: Sequence[CardBenchmark],
    price: str | None,
    sees: Sees | None,
) -> Json:
    """One GPU of a host. xids, benchmarks: its latest, newest first; sees: None for who may also see what names the
    card: its host's owner, and who oversees the market."""
    is_own = sees is None
    host, slot = entry.host, _slot(entry, gpu.uuid)
    subjects = {"", gpu.uuid, *(part.uuid for part in gpu.slices)}
    mine = [c for c in host.conditions if split(c.code)[1] in subjects]
    conditions = [condition_shapes.of_host(host, one) for one in mine]
    inventory = host.inventory or Inventory()
    return {
        **gpu_json(gpu, slot, gpus_shown(entry)[gpu.uuid], gpu_live_json(gpu.uuid, reading)),
        "host_id": host.host_id,
        "host_name": host.name,
        "simulated": host.simulated,
        "region": host.region or None,
        "link_state": host.link_state,
        "price_per_hour": price,
        "cluster_id": slot.holder if slot is not None and (sees is None or sees(slot)) else None,
        "slices": [
            slot_json(host, one, sees is None or sees(one))
            for one in entry.slots
            if one.card == gpu.uuid and one.profile
        ],
        "conditions": [c for c in conditions if not c["code"].startswith(CLAIM)],
        "claims": [c for c in conditions if c["code"].startswith(CLAIM)],
        "benchmarks": [
            {
                "name": one.figure.name,
                "title": BENCHMARK_NAMES.get(one.figure.name, one.figure.name),
                "value": one.figure.value,
                "unit": one.figure.unit,
                "measured_at": time_text(one.figure.measured_wall_ns),
                "proof_id": one.proof_id,
            }
            for one in benchmarks
        ],
        "groups": [
            {
                "name": group,
                "fields": [
                    field_json(one, _value(one, gpu, inventory, reading, xids, mine_codes(mine), is_own))
                    for one in GPU_FIELDS
                    if one.group is group
                ],
            }
            for group in Group
        ],
    }


def mine_codes(conditions: Sequence[Any]) -> frozenset[str]:
    """The codes of conditions, without what they are about."""
    return frozenset(split(c.code)[0] for c in conditions)


def field_json(one: GpuField, value: object) -> Json:
    """One row of the table with its value."""
    return GpuFieldOut.of(one, value=value)


def _slot(entry: Entry, uuid: str) -> Slot | None:
    return next((slot for slot in entry.slots if slot.gpu_uuid == uuid), None)


def _value(
    one: GpuField,
    gpu: GpuFacts,
    inventory: Inventory,
    reading: Reading | None,
    xids: Sequence[EventRow],
    codes: frozenset[str],
    is_own: bool,
) -> int | float | bool | str | None:
    if one.name in PRIVATE and not is_own:
        return None
    if one.name == "gpu.xid":
        return str(xids[0].fields.get("xid", "")) or None if xids else None
    if one.name == "gpu.lost":
        return one.name in codes
    if one.source is Source.METRIC:
        found = reading.get(gpu.uuid, BY_NAME[one.name].number) if reading is not None else None
        return throttle_words(int(found)) if one.name == "gpu_throttle_reasons" and found is not None else found
    return fact(one, gpu, inventory)
