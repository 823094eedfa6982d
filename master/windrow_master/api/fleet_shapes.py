"""Hosts, GPUs, slots and commands as the JSON of the HTTP API. Absent is null and never zero."""

from collections.abc import Callable, Mapping
from typing import Any

from windrow_master.api import condition_shapes
from windrow_master.api.paging import time_or_none
from windrow_master.fleet.model import CommandRow, Host, Slot
from windrow_master.fleet.presence import Live
from windrow_master.fleet.view import Entry
from windrow_master.market.offers import PriceBook
from windrow_master.telemetry.live import Reading
from windrow_proto.metrics import BY_NAME, BY_NUMBER
from windrow_proto.model import GpuFacts, Isolation
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
"""Whether somebody may know who holds a slot."""


def host_json(entry: Entry, live: Live | None, reading: Reading | None, book: PriceBook, sees: Sees | None) -> Json:
    """A host with its GPUs and slots. sees: None for its owner and who oversees the market."""
    slots = {slot.gpu_uuid: slot for slot in entry.slots if slot.gpu_uuid is not None}
    inventory = entry.host.inventory
    facts = inventory.gpus if inventory else ()
    gpus = [gpu_json(gpu, slots.get(gpu.uuid), gpu_live_json(gpu.uuid, reading)) for gpu in facts]
    head = head_json(entry, reading, book) | holders_json(entry, sees)
    return {**head, **link_json(entry.host, live), "gpus": gpus}


def holders_json(entry: Entry, sees: Sees | None) -> Json:
    """Whose a host is and who holds its slots; strangers learn neither."""
    return {
        "owner_account": entry.host.owner_account if sees is None else None,
        "slots": [slot_json(slot, sees is None or sees(slot)) for slot in entry.slots],
    }


def head_json(entry: Entry, reading: Reading | None, book: PriceBook) -> Json:
    """A host without its GPUs, without what every heartbeat changes, and without who holds what."""
    host, inventory = entry.host, entry.host.inventory
    headline = host.headline(entry.slots)
    return {
        "id": host.host_id,
        "name": host.name,
        "simulated": host.simulated,
        "admin_state": host.admin_state,
        "verify_state": host.verify_state,
        "link_state": host.link_state,
        "headline": headline.word,
        "headline_reason": headline.reason,
        "created_at": time_text(host.created_at_ns),
        "conditions": [condition_shapes.of_host(one) for one in host.conditions],
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
        "agent_version": (inventory.agent_version if inventory else "") or None,
        "inventory_hash": host.inventory_hash or None,
        "live": _host_live_json(reading),
        "version": entry.version,
    }


def link_json(host: Host, live: Live | None) -> Json:
    """What is known of a host's link; every heartbeat changes it."""
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
    """What a GPU reads now; None where nothing was read of it."""
    if reading is None or uuid not in reading.values:
        return None
    return {**_values(reading, uuid, GPU_LIVE), "at": time_text(reading.at_ns)}


def gpu_json(gpu: GpuFacts, slot: Slot | None, live: Json | None) -> Json:
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
        "slot_state": slot.state if slot else None,
        "unavailable_reason": slot.unavailable if slot else None,
        "isolation": isolation_text(slot.isolation) if slot else None,
        "layout": list(gpu.layout),
        "live": live,
    }


def slot_json(slot: Slot, is_open: bool) -> Json:
    """A slot. is_open: with who holds it."""
    return {
        "id": slot.slot_id,
        "host_id": slot.host_id,
        "gpu_uuid": slot.gpu_uuid,
        "kind": slot.kind,
        "state": slot.state,
        "unavailable": slot.unavailable,
        "token": slot.token if is_open else None,
        "cluster_id": slot.holder if is_open else None,
        "isolation": isolation_text(slot.isolation),
        "card_uuid": slot.card,
        "profile": slot.profile or None,
        "share_milli": slot.share_milli if slot.card else None,
        "tier": slot.tier or None,
    }


def isolation_text(isolation: Isolation) -> str | None:
    """What keeps a part of a card apart, as one word; None for processors."""
    return None if isolation is Isolation.UNSPECIFIED else isolation.name.lower()


ROW_LIVE = ("utilization_ratio", "memory_used_bytes", "temperature_celsius", "power_watts", "at")
"""The last fields of a row, in their order."""


def row_json(entry: Entry, gpu: GpuFacts, slot: Slot | None, book: PriceBook, *, is_open: bool) -> Json:
    """One GPU of a host for the flat list of the whole fleet, nothing read of it yet; what is read stands last.

    is_open: with who holds it.
    """
    host = entry.host
    tier = slot.tier if slot is not None else ""
    return {
        "uuid": gpu.uuid,
        "host_id": host.host_id,
        "host_name": host.name,
        "region": host.region or None,
        "simulated": host.simulated,
        "name": gpu.name,
        "tier": tier or None,
        "memory_bytes": gpu.memory_bytes,
        "link_state": host.link_state,
        "slot_state": slot.state if slot is not None else None,
        "unavailable_reason": slot.unavailable if slot is not None else None,
        "price_per_hour": _price(host, tier, book),
        "cluster_id": slot.holder if slot is not None and is_open else None,
        **dict.fromkeys(ROW_LIVE),
    }


def reading_json(reading: Reading) -> Json:
    """All of one reading, by metric name, for whoever watches one host."""
    named = {
        device: {BY_NUMBER[metric].name: value for metric, value in values.items()}
        for device, values in reading.values.items()
    }
    host = {**named.pop("", {}), **{f"host_network_{name}": value for name, value in reading.rates.items()}}
    return {"at": time_text(reading.at_ns), "host": host, "gpus": named}


def command_json(row: CommandRow) -> Json:
    """A command and what became of it."""
    return {
        "id": row.command_id,
        "host_id": row.host_id,
        "kind": row.kind.name.lower(),
        "subject": row.subject or None,
        "state": row.state,
        "step": row.step or None,
        "progress": row.progress_permille / 1000,
        "error": f"{row.error_code}: {row.error_detail}".rstrip(": ") if row.error_code else None,
        "created_at": time_text(row.created_at_ns),
        "sent_at": time_or_none(row.sent_at_ns),
        "done_at": time_or_none(row.done_at_ns),
        "result": dict(row.result) or None,
    }
