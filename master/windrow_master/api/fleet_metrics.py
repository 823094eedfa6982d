"""Gives the fleet to Prometheus: hosts and GPUs by their state, each slot's state, and the latest readings of each.

Lets the loop breathe between hosts. A thousand hosts with eight GPUs each are some 50,000 lines. A host
that is not online has no readings: what it said last is no longer true.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from windrow_master.fleet.availability import gpus_shown, headline
from windrow_master.fleet.model import AdminState, Host, LinkState, Slot
from windrow_master.fleet.view import Entry
from windrow_master.telemetry.live import LiveView
from windrow_proto.ids import GpuUuid
from windrow_proto.metrics import BY_NAME, METRICS, Scope
from windrow_proto.samples import HOST_DEVICE
from windrow_proto.scrape import Figure, exposition

AT_ONCE: Final = 25
"""Hosts read without letting the loop breathe: some 2 ms."""
OF_A_GPU: Final = tuple(
    BY_NAME[f"gpu_{name}"]
    for name in (
        *("utilization_ratio", "memory_used_bytes", "temperature_celsius", "memory_temperature_celsius"),
        *("power_watts", "energy_joules_total", "clock_sm_hertz", "throttle_reasons", "ecc_uncorrected_total"),
    )
)
"""The GPU metrics that the Master exports. Each agent exports all of them on its own /metrics."""
OF_A_HOST: Final = tuple(metric for metric in METRICS if metric.scope is Scope.HOST)

Labels = dict[str, str]


async def fleet_text(entries: Iterable[Entry], live: LiveView) -> str:
    """All hosts that are not retired, in Prometheus' text format."""
    shown = [entry for entry in entries if entry.host.admin_state is not AdminState.RETIRED]
    figures = list(_counts(shown))
    for number, entry in enumerate(shown, 1):
        figures.extend(_readings(entry, live))
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
    return await asyncio.to_thread(exposition, figures) if figures else ""


def _counts(entries: Iterable[Entry]) -> Iterator[Figure]:
    hosts, gpus = Counter[tuple[tuple[str, str], ...]](), Counter[tuple[tuple[str, str], ...]]()
    for entry in entries:
        host = entry.host
        hosts[_key(host, host.tier, headline(entry).state)] += 1
        tiers = {slot.gpu_uuid: slot.tier for slot in entry.slots}
        for uuid, shown in gpus_shown(entry).items():
            gpus[_key(host, tiers.get(uuid, ""), shown.state)] += 1
    for labels, count in sorted(hosts.items()):
        yield Figure("hosts", "Hosts by their state now", count, dict(labels))
    for labels, count in sorted(gpus.items()):
        yield Figure("gpus", "GPUs by their state now", count, dict(labels))


def _key(host: Host, tier: str, use: str) -> tuple[tuple[str, str], ...]:
    return ("region", host.region), ("simulated", _yes(host.simulated)), ("tier", tier), ("use", use)


def _readings(entry: Entry, live: LiveView) -> Iterator[Figure]:
    host = entry.host
    own = {"host": host.host_id, "name": host.name, "region": host.region, "simulated": _yes(host.simulated)}
    of_host = own | {"tier": host.tier}
    is_online = host.link_state is LinkState.ONLINE
    yield Figure("host_online", "1 while the host is online", float(is_online), of_host)
    for slot in entry.slots:
        yield _state(slot, own)
    reading = live.get(host.host_id) if is_online else None
    if reading is None:
        return
    for metric in OF_A_HOST:
        value = reading.get(HOST_DEVICE, metric.number)
        if value is not None:
            yield Figure(metric.name, metric.label, value, of_host)
    models = {gpu.uuid: gpu.name for gpu in host.inventory.gpus} if host.inventory else {}
    for uuid, labels in _cards(entry.slots, own, models):
        for metric in OF_A_GPU:
            value = reading.get(uuid, metric.number)
            if value is not None:
                yield Figure(metric.name, metric.label, value, labels)


def _state(slot: Slot, own: Labels) -> Figure:
    labels = own | {"slot": slot.slot_id, "kind": slot.kind, "tier": slot.tier, "state": slot.state.value}
    return Figure("slot_state", "1 for the state that a slot has now", 1.0, labels)


def _cards(slots: Iterable[Slot], own: Labels, models: Mapping[GpuUuid, str]) -> Iterator[tuple[GpuUuid, Labels]]:
    """Each card once, whatever it is cut into, with the tier of its first slot."""
    seen = set[GpuUuid]()
    for slot in slots:
        uuid = slot.card or slot.gpu_uuid
        if slot.kind == "gpu" and uuid is not None and uuid not in seen:
            seen.add(uuid)
            yield uuid, own | {"gpu": uuid, "model": models.get(uuid, ""), "tier": slot.tier}


def _yes(value: bool) -> str:
    return "true" if value else "false"
