"""The Master's series of hosts, slots and GPUs: labels, base units, and no readings of what is offline."""

from collections.abc import Mapping
from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from tests.unit.master_api.test_overview import HOST, cards, entry, host, slot
from windrow_master.api.fleet_metrics import fleet_text
from windrow_master.fleet.model import AdminState, LinkState, SlotState
from windrow_master.fleet.view import Entry
from windrow_master.telemetry.live import LiveView
from windrow_proto.ids import BootId, GpuUuid
from windrow_proto.model import GpuSlice, Isolation
from windrow_proto.samples import Sample, encode_batch

OWN = {"host": HOST, "name": "box", "region": "eu", "simulated": "false"}


async def told(*entries: Entry) -> Mapping[str, list[tuple[dict[str, str], float]]]:
    live = LiveView()
    values = {("", 101): 250, ("GPU-0", 1): 87, ("GPU-0", 6): 3505, ("GPU-0", 4): None, ("GPU-1", 1): 5}
    live.put(HOST, BootId(b"b" * 16), 1, encode_batch([Sample(0, values)]))
    text = await fleet_text(entries, live)
    families = text_string_to_metric_families(text)
    return {family.name: [(one.labels, one.value) for one in family.samples] for family in families}


async def test_hosts_and_gpus_are_counted_by_use_and_read_by_card():
    sliced = [
        slot(n, card=GpuUuid("GPU-1"), gpu_uuid=GpuUuid(f"MIG-{n}"), profile="1g.10gb", share_milli=500) for n in (1, 2)
    ]
    parts = tuple(GpuSlice(GpuUuid(f"MIG-{n}"), "1g.10gb", Isolation.MIG, 1, 1) for n in (1, 2))
    whole = cards(0, 1)
    cut = replace(whole, gpus=(whole.gpus[0], replace(whole.gpus[1], slices=parts)))
    of = host(region="eu", inventory=cut)
    said = await told(entry(of, slot(0, state=SlotState.RUNNING), slot(1, unavailable="it is cut"), *sliced))
    shared = {"region": "eu", "simulated": "false", "tier": "h100/A"}
    assert said["windrow_hosts"] == [(shared | {"use": "rented"}, 1)]
    assert said["windrow_gpus"] == [(shared | {"use": "idle"}, 1), (shared | {"use": "rented"}, 1)]
    assert said["windrow_host_online"] == [(OWN | {"tier": "h100/A"}, 1)]
    assert said["windrow_host_cpu_ratio"] == [(OWN | {"tier": "h100/A"}, 0.25)]
    card = OWN | {"tier": "h100/A", "model": "H100"}
    assert said["windrow_gpu_utilization_ratio"] == [(card | {"gpu": "GPU-0"}, 0.87), (card | {"gpu": "GPU-1"}, 0.05)]
    assert said["windrow_gpu_power_watts"] == [(card | {"gpu": "GPU-0"}, 350.5)]
    assert "windrow_gpu_temperature_celsius" not in said
    assert [labels["state"] for labels, _ in said["windrow_slot_state"]] == ["running", "free", "free", "free"]


async def test_what_is_offline_has_no_readings_and_what_is_retired_no_series():
    said = await told(entry(host(region="eu", link_state=LinkState.LOST), slot(0)))
    assert said["windrow_host_online"] == [(OWN | {"tier": "h100/A"}, 0)]
    assert set(said) == {"windrow_hosts", "windrow_gpus", "windrow_host_online", "windrow_slot_state"}
    assert await told(entry(host(admin_state=AdminState.RETIRED), slot(0))) == {}
