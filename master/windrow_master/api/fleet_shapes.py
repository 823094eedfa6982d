"""Describes hosts, GPUs, slots and commands as the JSON of the HTTP API. Absent is null and never zero."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from windrow_master.api import condition_shapes
from windrow_master.api.answers import Amount, Isolated, Out, Read, Time, isolation_text
from windrow_master.api.paging import time_or_none
from windrow_master.fleet import availability
from windrow_master.fleet.availability import Availability, Shown
from windrow_master.fleet.model import Host, Slot
from windrow_master.fleet.presence import Live
from windrow_master.fleet.view import Entry
from windrow_master.market.offers import PriceBook
from windrow_master.telemetry.live import OF_WORKLOADS, Reading
from windrow_proto.conditions import Severity
from windrow_proto.metrics import BY_NAME, BY_NUMBER
from windrow_proto.model import GpuFacts
from windrow_proto.units import MILLISECOND, money_text, time_text

Json = dict[str, Any]

GPU_LIVE = {
    "utilization_ratio": "gpu_utilization_ratio",
    "memory_used_bytes": "gpu_memory_used_bytes",
    "temperature_celsius": "gpu_temperature_celsius",
    "power_watts": "gpu_power_watts",
    "clock_sm_hertz": "gpu_clock_sm_hertz",
}
GPU_NUMBERS = tuple((name, BY_NAME[metric].number) for name, metric in GPU_LIVE.items())
ROW_NUMBERS = GPU_NUMBERS[:4]
"""Without the clock, which the list of the whole fleet does not show."""
HOST_LIVE = {
    "cpu_ratio": "host_cpu_ratio",
    "memory_used_bytes": "host_memory_used_bytes",
    "load1": "host_load1",
    "disk_used_bytes": "host_disk_used_bytes",
}


Sees = Callable[[Slot], bool]
"""Says of a slot whether somebody may know who holds it."""


Ratio = Annotated[float | None, Field(description="From 0 to 1; null where it was not read")]


class ConditionOut(Out):
    """One thing that is not as it should be on a host or in the market itself."""

    code: Annotated[str, Field(description="Stable; with `:` and the id of a GPU where it is about one")]
    title: Annotated[str, Field(description="What is wrong, in a few words")]
    about: Annotated[str | None, Field(description="The GPU that it is about, by its number on the host: `GPU 5`")]
    detail: str
    severity: Annotated[Severity, Field(description="`page`: look at once; `ticket`: within days; `info`: never")]
    remedy: Annotated[str, Field(description="What to run and where to look")]
    runbook: Annotated[str, Field(description="The page about it, in the source tree")]
    since: Time


class GpuStateOut(Out):
    """The state of a GPU: one of five words, the same in every list."""

    state: Annotated[Availability, Field(description="The first that holds of faulty, offline, rented, idle, paused")]
    state_text: Annotated[str, Field(description="The same as people read it, with the parts rented of a GPU in parts")]
    state_reason: Annotated[str | None, Field(description="Why nobody may rent it, or a part of it, now")]
    parts: Annotated[int, Field(description="How many parts MIG or MPS makes of it; 0: it is rented as a whole")]
    parts_rented: int


class GpuLiveOut(Out):
    """The current readings of a GPU."""

    utilization_ratio: Ratio
    memory_used_bytes: float | None
    temperature_celsius: float | None
    power_watts: float | None
    clock_sm_hertz: float | None
    at: Time


class GpuOut(GpuStateOut):
    """A GPU of a host."""

    uuid: str
    index: int
    vendor: str
    name: str
    memory_bytes: int | None
    tier: str | None
    tier_reasons: list[str]
    pci_bus_id: str | None
    core_count: int | None
    slot_state: str | None
    unavailable_reason: Annotated[str | None, Field(description="Why its slot cannot be had, though it is free")]
    isolation: Isolated
    layout: Annotated[list[str], Field(description="Profiles that its owner lets it be cut into; none: it stays whole")]
    live: GpuLiveOut | None


class SlotOut(Out):
    """The unit that one renter can hold: a GPU, a part of one, or a share of a host's processors."""

    id: str
    host_id: str
    gpu_uuid: str | None
    kind: str
    state: str
    state_text: Annotated[str, Field(description="rented, idle, paused, faulty or offline: as people read it")]
    state_reason: Annotated[str | None, Field(description="Why nobody may rent it now")]
    unavailable: str | None
    token: Annotated[
        int | None,
        Field(description="Grows with every grant; a host refuses commands with a lower one. Shown as cluster_id is"),
    ]
    cluster_id: Annotated[
        str | None,
        Field(description="Who holds it; for the holder, the host's owner, operators and auditors"),
    ]
    isolation: Isolated
    card_uuid: Annotated[str | None, Field(description="The GPU that it is, or is a part of")]
    profile: Annotated[str | None, Field(description="Of a slice, such as 1g.10gb")]
    share_milli: Annotated[int | None, Field(description="How much of its GPU it is, in thousandths")]
    cpus: Annotated[int, Field(description="Processors of its host that its holder has with it")]
    tier: str | None


class HostLiveOut(Out):
    """The current readings of a host."""

    cpu_ratio: Ratio
    memory_used_bytes: float | None
    load1: float | None
    rx_bps: Annotated[float | None, Field(description="Bits a second received")]
    tx_bps: Annotated[float | None, Field(description="Bits a second sent")]
    disk_used_bytes: float | None
    at: Time


class BandwidthOut(Out):
    """The measured bandwidth between a host and one relay or several, the median of them, in bits a second."""

    up_bps: float | None
    down_bps: float | None
    measured_at: Time
    access_id: str | None
    relays: Annotated[int, Field(description="How many relays measured it")]


class ProofMarkOut(Out):
    """The result of the Master's newest test rental of a host."""

    at: Time
    outcome: Annotated[str, Field(description="passed or failed; a host that failed stays listed")]
    words: str


class HostSummaryOut(Out):
    """A host without its GPUs, as the fleet's stream tells it."""

    id: str
    name: str
    simulated: Annotated[bool, Field(description="It only plays a host")]
    owner_account: Annotated[str | None, Field(description="For the owner, operators and auditors")]
    admin_state: str
    verify_state: str
    link_state: str
    headline: Annotated[str, Field(description="The one word that says how it is")]
    headline_reason: str | None
    headline_remedy: Annotated[str | None, Field(description="What to do about a host that is degraded")]
    created_at: Time
    conditions: list[ConditionOut]
    tier: str | None
    tier_reasons: list[str]
    bandwidth: BandwidthOut | None
    listed_at: Annotated[Time | None, Field(description="When it could first be rented")]
    proof: ProofMarkOut | None
    price_per_hour: Amount
    os: str | None
    kernel: str | None
    cpu_model: str | None
    cpu_count: int | None
    memory_bytes: int | None
    disk_bytes: int | None
    driver_version: str | None
    cuda_version: str | None
    runtimes: list[str]
    container_users: Annotated[
        Literal["own", "host"] | None,
        Field(description="Whose users its containers have: their own, in a user namespace, or the host's"),
    ]
    default_image: Annotated[str | None, Field(description="Runs where a request names no image")]
    country: Annotated[str | None, Field(description="ISO 3166-1, as the owner says")]
    labels: Annotated[list[str], Field(description="As the owner says: WORD or KEY=VALUE")]
    agent_version: str | None
    inventory_hash: str | None
    slots: list[SlotOut]
    live: HostLiveOut | None
    version: int
    last_seen_at: Time | None
    access_id: str | None
    region: str | None
    address: str | None
    rtt_ms: Annotated[float | None, Field(description="Between the host and its relay, in milliseconds")]


class HostOut(HostSummaryOut):
    """A host with its GPUs."""

    gpus: list[GpuOut]


class GpuRowOut(GpuStateOut):
    """One GPU in the flat list of the whole fleet."""

    uuid: str
    index: Annotated[int, Field(description="Its number on its host")]
    host_id: str
    host_name: str
    region: str | None
    simulated: bool
    name: str
    tier: str | None
    memory_bytes: int | None
    link_state: str
    slot_state: str | None
    unavailable_reason: Annotated[str | None, Field(description="Why its slot cannot be had, though it is free")]
    price_per_hour: Amount
    cluster_id: str | None
    utilization_ratio: Ratio
    memory_used_bytes: float | None
    temperature_celsius: float | None
    power_watts: float | None
    at: Time | None


class GpusOut(Out):
    """Every GPU of the fleet."""

    items: list[GpuRowOut]
    version: Annotated[int, Field(description="Give it to `/fleet/stream` as `after`")]


class CommandOut(Out):
    """A command to a host and what became of it."""

    id: Annotated[str, Read("command_id")]
    host_id: str
    host_name: Annotated[str | None, Field(description="Null for a host that is gone"), Read(lambda row: None)]
    kind: Annotated[str, Read(lambda row: row.kind.name.lower())]
    subject: str | None
    state: str
    step: str | None
    progress: Annotated[float | None, Field(description="From 0 to 1"), Read(lambda row: row.progress_permille / 1000)]
    error: Annotated[
        str | None, Read(lambda row: f"{row.error_code}: {row.error_detail}".rstrip(": ") if row.error_code else None)
    ]
    created_at: Time
    sent_at: Time | None
    done_at: Time | None
    result: Annotated[dict[str, Any] | None, Read(lambda row: row.result or None)]


def host_json(entry: Entry, live: Live | None, reading: Reading | None, book: PriceBook, sees: Sees | None) -> Json:
    """A host with its GPUs and slots. sees: None for its owner and who oversees the market."""
    slots = {slot.gpu_uuid: slot for slot in entry.slots if slot.gpu_uuid is not None}
    inventory, shown = entry.host.inventory, availability.gpus_shown(entry)
    facts = inventory.gpus if inventory else ()
    gpus = [gpu_json(gpu, slots.get(gpu.uuid), shown[gpu.uuid], gpu_live_json(gpu.uuid, reading)) for gpu in facts]
    head = head_json(entry, reading, book) | holders_json(entry, sees)
    return {**head, **link_json(entry.host, live), "gpus": gpus}


def holders_json(entry: Entry, sees: Sees | None) -> Json:
    """Return the owner of a host and the holders of its slots; strangers learn neither."""
    return {
        "owner_account": entry.host.owner_account if sees is None else None,
        "slots": [
            slot_json(entry.host, slot, sees is None or sees(slot), shown)
            for slot, shown in zip(entry.slots, availability.slots_shown(entry), strict=True)
        ],
    }


def head_json(entry: Entry, reading: Reading | None, book: PriceBook) -> Json:
    """A host without its GPUs, without what every heartbeat changes, and without who holds what."""
    host, inventory = entry.host, entry.host.inventory
    headline = availability.headline(entry)
    return {
        "id": host.host_id,
        "name": host.name,
        "simulated": host.simulated,
        "admin_state": host.admin_state,
        "verify_state": host.verify_state,
        "link_state": host.link_state,
        "headline": headline.word,
        "headline_reason": headline.reason,
        "headline_remedy": headline.remedy or None,
        "created_at": time_text(host.created_at_ns),
        "conditions": [condition_shapes.of_host(host, one) for one in host.conditions],
        "tier": host.tier or None,
        "tier_reasons": list(host.tier_reasons),
        "bandwidth": _bandwidth_json(host),
        "listed_at": time_or_none(host.listed_at_ns),
        "proof": _proof_json(host),
        "price_per_hour": _price(host, host.tier, book),
        "os": (inventory.os if inventory else "") or None,
        "kernel": (inventory.kernel if inventory else "") or None,
        "cpu_model": (inventory.cpu_model if inventory else "") or None,
        "cpu_count": inventory.cpu_count if inventory else None,
        "memory_bytes": inventory.memory_bytes if inventory else None,
        "disk_bytes": inventory.disk_bytes if inventory else None,
        "driver_version": (inventory.driver_version if inventory else "") or None,
        "cuda_version": (inventory.cuda_version if inventory else "") or None,
        "runtimes": list(inventory.runtimes) if inventory else [],
        "container_users": host.container_users or None,
        "default_image": host.default_image,
        "country": host.country,
        "labels": list(host.labels),
        "agent_version": (inventory.agent_version if inventory else "") or None,
        "inventory_hash": host.inventory_hash or None,
        "live": _host_live_json(reading),
        "version": entry.version,
    }


def link_json(host: Host, live: Live | None) -> Json:
    """Return the state of a host's link; every heartbeat changes it."""
    seen_ns = live.last_seen_ns if live is not None and live.last_seen_ns is not None else host.last_seen_ns
    rtt_ns = live.rtt_ns if live is not None else None
    return {
        "last_seen_at": time_or_none(seen_ns),
        "access_id": host.access_id or None,
        "region": host.region or None,
        "address": host.address or None,
        "rtt_ms": None if rtt_ns is None else rtt_ns / MILLISECOND,
    }


def _bandwidth_json(host: Host) -> Json | None:
    measured = host.bandwidth
    if measured is None:
        return None
    return {
        "up_bps": measured.up_bps,
        "down_bps": measured.down_bps,
        "measured_at": time_text(measured.measured_at_ns),
        "access_id": measured.access_id,
        "relays": measured.count,
    }


def _proof_json(host: Host) -> Json | None:
    found = host.proof
    if found is None:
        return None
    return {"at": time_text(found.at_ns), "outcome": found.outcome, "words": found.words}


def _price(host: Host, tier: str, book: PriceBook) -> str | None:
    return money_text(book.price(host.owner_account, tier)) if tier else None


def _values(reading: Reading, device: str, names: Mapping[str, str]) -> Json:
    return {name: reading.get(device, BY_NAME[metric].number) for name, metric in names.items()}


def _host_live_json(reading: Reading | None) -> Json | None:
    if reading is None:
        return None
    rates = {name: reading.rates.get(name) for name in ("rx_bps", "tx_bps")}
    return {**_values(reading, "", HOST_LIVE), **rates, "at": time_text(reading.at_ns)}


def gpu_live_json(uuid: str, reading: Reading | None) -> Json | None:
    """Return the current readings of a GPU; None where nothing was read of it."""
    if reading is None or uuid not in reading.values:
        return None
    return {**_values(reading, uuid, GPU_LIVE), "at": time_text(reading.at_ns)}


def gpu_json(gpu: GpuFacts, slot: Slot | None, shown: Shown, live: Json | None) -> Json:
    """A GPU of a host; `live` is the last field, so that a text can be cut before it."""
    return {
        "uuid": gpu.uuid,
        "index": gpu.index,
        "vendor": gpu.vendor,
        "name": gpu.name,
        "memory_bytes": gpu.memory_bytes,
        "tier": (slot.tier if slot else "") or None,
        "tier_reasons": list(slot.tier_reasons) if slot else [],
        "pci_bus_id": gpu.pci_bus_id or None,
        "core_count": gpu.core_count,
        **_state_json(shown),
        "slot_state": slot.state if slot else None,
        "unavailable_reason": slot.unavailable if slot else None,
        "isolation": isolation_text(slot.isolation) if slot else None,
        "layout": list(gpu.layout),
        "live": live,
    }


def _state_json(shown: Shown) -> Json:
    return {
        "state": shown.state,
        "state_text": shown.text,
        "state_reason": shown.reason,
        "parts": shown.parts,
        "parts_rented": shown.parts_rented,
    }


def slot_json(host: Host, slot: Slot, is_open: bool, shown: Shown | None = None) -> Json:
    """A slot. is_open: with who holds it. shown: its state; None: by itself."""
    shown = shown or availability.slot_shown(host, slot)
    return {
        "id": slot.slot_id,
        "host_id": slot.host_id,
        "gpu_uuid": slot.gpu_uuid,
        "kind": slot.kind,
        "state": slot.state,
        "state_text": shown.text,
        "state_reason": shown.reason,
        "unavailable": slot.unavailable,
        "token": slot.token if is_open else None,
        "cluster_id": slot.holder if is_open else None,
        "isolation": isolation_text(slot.isolation),
        "card_uuid": slot.card,
        "profile": slot.profile or None,
        "share_milli": slot.share_milli if slot.card else None,
        "cpus": slot.cpus,
        "tier": slot.tier or None,
    }


ROW_LIVE = ("utilization_ratio", "memory_used_bytes", "temperature_celsius", "power_watts", "at")
"""The last fields of a row, in their order."""


def row_json(entry: Entry, gpu: GpuFacts, slot: Slot | None, shown: Shown, book: PriceBook, *, is_open: bool) -> Json:
    """One GPU of a host for the flat list of the whole fleet, nothing read of it yet; what is read stands last.

    is_open: with who holds it.
    """
    host = entry.host
    tier = slot.tier if slot is not None else ""
    return {
        "uuid": gpu.uuid,
        "index": gpu.index,
        "host_id": host.host_id,
        "host_name": host.name,
        "region": host.region or None,
        "simulated": host.simulated,
        "name": gpu.name,
        "tier": tier or None,
        "memory_bytes": gpu.memory_bytes,
        "link_state": host.link_state,
        **_state_json(shown),
        "slot_state": slot.state if slot is not None else None,
        "unavailable_reason": slot.unavailable if slot is not None else None,
        "price_per_hour": _price(host, tier, book),
        "cluster_id": slot.holder if slot is not None and is_open else None,
        **dict.fromkeys(ROW_LIVE),
    }


def reading_json(reading: Reading) -> Json:
    """All of one reading of a host and its GPUs, by metric name, for whoever watches one host."""
    named = {
        device: {BY_NUMBER[metric].name: value for metric, value in values.items()}
        for device, values in reading.values.items()
        if not OF_WORKLOADS.issuperset(values)
    }
    host = {**named.pop("", {}), **{f"host_network_{name}": value for name, value in reading.rates.items()}}
    return {"at": time_text(reading.at_ns), "host": host, "gpus": named}
