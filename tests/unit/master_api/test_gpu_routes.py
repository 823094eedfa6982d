"""The page of one GPU: every field of the table, conditions, claims, its latest XID, and who sees what names it."""

from dataclasses import replace

import pytest

from tests.support.personas import DRIVER, uuid
from windrow_master.api.gpu_shapes import gpu_page_json
from windrow_master.fleet.benchmark_repository import BenchmarkRepository
from windrow_master.fleet.model import Condition
from windrow_master.fleet.repository import HostRepository
from windrow_proto.gpu_fields import GPU_FIELDS, Group
from windrow_proto.ids import AccountId, BootId, HostId
from windrow_proto.messages import Record
from windrow_proto.model import Benchmark, FrameClass, GpuFacts, Inventory, Kind
from windrow_proto.samples import Sample, encode_batch

HOST, OTHERS = HostId("host_1"), HostId("host_2")
BOOT = BootId(b"b" * 16)
GPU, NEIGHBOUR, FOREIGN = uuid(1), uuid(2), uuid(3)
MORE: dict[str, int | str] = {
    "brand": "NVIDIA",
    "persistence_mode": 0,
    "bar1_bytes": 1 << 37,
    "pdi": "00ff",
    "power_limit_default_mw": 700_000,
}


@pytest.fixture
async def fleet(api):
    """A host of the caller's with two cards, and one of somebody else's with one."""
    services = api.services
    owner = services.identity.first_account().id
    facts = GpuFacts(GPU, 0, "nvidia", "X1", serial="123", memory_bytes=80 << 30, ecc_enabled=True, more=MORE)
    measured = Benchmark("gpu.memory_bytes_per_s", 2e12, "By/s", 5, GPU)
    claimed = replace(measured, value=9e12)
    inventory = Inventory(
        hostname="box",
        gpus=(facts, GpuFacts(NEIGHBOUR, 1, "nvidia", "X1")),
        driver_version=DRIVER,
        benchmarks=(claimed,),
    )

    def make(uow):
        services.fleet.enrol(uow, HOST, "box", owner, False, "account/x")
        services.fleet.enrol(uow, OTHERS, "far", AccountId("account_other"), False, "account/x")
        services.fleet.hosts.inventory(uow, HOST, inventory)
        far = replace(facts, uuid=FOREIGN)
        for figure in (measured, replace(measured, subject=NEIGHBOUR)):
            uow[BenchmarkRepository].add(HOST, "proof_1", figure)
        services.fleet.hosts.inventory(uow, OTHERS, Inventory(hostname="far", gpus=(far,), driver_version=DRIVER))

    await services.store.write(make, name="test")
    await services.fleet.refresh()
    return services.fleet


async def page(api, gpu=GPU):
    response = await api.client.get(f"/api/v1/gpus/{gpu}")
    assert response.status_code == 200, response.text
    return response.json()


def fields(found):
    return {one["name"]: one for group in found["groups"] for one in group["fields"]}


async def test_every_row_of_the_table_is_there_in_its_group_with_its_names(api, fleet):
    found = await page(api)
    assert [group["name"] for group in found["groups"]] == list(Group)
    rows = fields(found)
    assert rows.keys() == {one.name for one in GPU_FIELDS}
    assert (rows["bar1_bytes"]["dcgm"], rows["memory_bytes"]["otel"]) == ("BAR1_TOTAL", "hw.gpu.memory.limit")


async def test_a_field_is_a_value_in_its_unit_or_null_and_never_zero_for_absent(api, fleet):
    rows = {name: one["value"] for name, one in fields(await page(api)).items()}
    assert (rows["brand"], rows["persistence_mode"], rows["ecc_enabled"]) == ("NVIDIA", False, True)
    assert (rows["bar1_bytes"], rows["power_limit_default_mw"], rows["driver_version"]) == (1 << 37, 700.0, DRIVER)
    assert (rows["gpu.lost"], rows["gpu.xid"]) == (False, None)
    silent = {
        "vbios",
        "nvlink_count",
        "gpu_power_watts",
        "gpu_encoder_ratio",
        "ecc_corrected",
        "numa_node",
        "gpu_sm_active_ratio",
    }
    assert {name: rows[name] for name in silent} == dict.fromkeys(silent)


async def test_what_is_read_live_is_in_its_row(api, fleet):
    values: dict[tuple[str, int], int | None] = {(GPU, 6): 704, (GPU, 10): 0x44, (GPU, 16): 7, (NEIGHBOUR, 6): 999}
    body = encode_batch([Sample(api.clock.wall_ns(), values)])
    await api.services.telemetry.append(HOST, [(Record(BOOT, 1, Kind.TELEMETRY, body), FrameClass.LIVE)])
    rows = fields(await page(api))
    assert (rows["gpu_power_watts"]["value"], rows["gpu_encoder_ratio"]["value"]) == (70.4, 0.07)
    assert rows["gpu_encoder_ratio"]["unit"] == "ratio"
    assert rows["gpu_throttle_reasons"]["value"] == "power cap, heat, by hardware"
    assert rows["gpu_temperature_celsius"]["value"] is None


async def test_the_latest_xid_and_the_conditions_of_this_card_and_no_neighbour_are_told(api, fleet):
    def happen(uow):
        host = uow[HostRepository].get(HOST)
        codes = (f"gpu.lost:{GPU}", f"gpu.hot:{NEIGHBOUR}", "clock.skew", f"claim.memory:{GPU}")
        fleet.hosts.save(uow, replace(host, conditions=tuple(Condition(code, f"says {code}", 5) for code in codes)))
        for xid in ("13", "79"):
            uow.event("gpu.xid", (HOST, GPU), f"XID {xid}", {"xid": xid, "blame": "host"}, "host/host_1")
        uow.event("gpu.xid", (HOST, NEIGHBOUR), "XID 48", {"xid": "48"}, "host/host_1")

    await api.services.store.write(happen, name="test")
    await fleet.refresh()
    found = await page(api)
    assert [one["code"] for one in found["conditions"]] == [f"gpu.lost:{GPU}", "clock.skew"]
    assert [one["code"] for one in found["claims"]] == [f"claim.memory:{GPU}"]
    rows = fields(found)
    assert (rows["gpu.xid"]["value"], rows["gpu.lost"]["value"]) == ("79", True)
    assert [(one["value"], one["proof_id"]) for one in found["benchmarks"]] == [(2e12, "proof_1")]


async def test_what_names_a_card_is_its_owners_and_overseers_to_see(api, fleet):
    assert fields(await page(api, FOREIGN))["serial"]["value"] == "123"  # an operator asks
    entry = fleet.entry(OTHERS)
    shown = gpu_page_json(entry, entry.host.gpu(FOREIGN), None, (), (), None, lambda slot: False)
    rows = {one["name"]: one["value"] for group in shown["groups"] for one in group["fields"]}
    assert (rows["serial"], rows["pdi"], rows["brand"]) == (None, None, "NVIDIA")


async def test_there_is_no_page_of_a_gpu_that_nobody_has(api, fleet):
    response = await api.client.get("/api/v1/gpus/GPU-none")
    assert (response.status_code, response.json()["subject"]) == (404, "GPU-none")
