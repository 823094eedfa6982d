"""The agent's series of GPUs: DCGM's names beside ours, a dead card without numbers, text that promtool takes."""

from pathlib import Path

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.services import need
from tests.support.metrics_stores import complaints
from tests.unit.agent.test_sampler import make, nvml, sampling
from tests.waiting import poll_async
from windrow_agent.core.gpu_port import GpuInventory
from windrow_agent.report.gpu_figures import gpu_figures
from windrow_proto.ids import GpuUuid
from windrow_proto.metrics import BY_NAME
from windrow_proto.model import GpuFacts
from windrow_proto.samples import Sample
from windrow_proto.scrape import exposition

MIB = 1 << 20
CARD = GpuFacts(
    *(GpuUuid("GPU-1"), 3, "NVIDIA", "H100", "0000:41:00.0"),
    memory_bytes=81_559 * MIB,
    device_minor=2,
    more={"memory_reserved_bytes": 559 * MIB, "remapped_corrected": 1, "remap_pending": 0, "vbios": "96.00"},
)
READ = {
    "gpu_utilization_ratio": 87,
    "gpu_memory_used_bytes": 1000,
    "gpu_temperature_celsius": 61,
    "gpu_power_watts": 3505,
    "gpu_energy_joules_total": 12,
    "gpu_clock_sm_hertz": 1980,
    "gpu_tensor_active_ratio": 412,
    "gpu_pcie_transmit_bytes_total": 7,
    "gpu_throttled_power_seconds_total": 7,
    "gpu_encoder_ratio": None,
}


def told(values: dict[str, int | None]) -> dict[str, tuple[float, dict[str, str]]]:
    sample = Sample(0, {(CARD.uuid, BY_NAME[name].number): value for name, value in values.items()})
    found = gpu_figures(GpuInventory((CARD,), "580.65"), sample, "box-1")
    return {one.prefix + one.name: (one.value, dict(one.labels)) for one in found}


def test_dcgms_names_carry_dcgms_units_and_labels():
    said = told(READ)
    values = {name: value for name, (value, _) in said.items() if name.startswith("DCGM_")}
    assert values == {
        "DCGM_FI_DEV_GPU_UTIL": 87,
        "DCGM_FI_DEV_FB_USED": 1000,
        "DCGM_FI_DEV_FB_FREE": 80_000,
        "DCGM_FI_DEV_FB_RESERVED": 559,
        "DCGM_FI_DEV_GPU_TEMP": 61,
        "DCGM_FI_DEV_POWER_USAGE": 350.5,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 12_000,
        "DCGM_FI_DEV_SM_CLOCK": 1980,
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.412,
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": 1,
        "DCGM_FI_DEV_ROW_REMAP_PENDING": 0,
    }
    assert said["DCGM_FI_DEV_GPU_TEMP"][1] == {
        "gpu": "3",
        "UUID": "GPU-1",
        "device": "nvidia2",
        "modelName": "H100",
        "Hostname": "box-1",
        "pci_bus_id": "0000:41:00.0",
        "DCGM_FI_DRIVER_VERSION": "580.65",
    }


def test_our_names_carry_base_units():
    said = told(READ)
    assert said["windrow_gpu_clock_sm_hertz"] == (
        1.98e9,
        {"gpu": "GPU-1", "index": "3", "model": "H100", "host": "box-1"},
    )
    assert said["windrow_gpu_pcie_transmit_bytes_total"][0] == 7 * 1024
    assert "windrow_gpu_encoder_ratio" not in said


@pytest.mark.parametrize("values", [{}, dict.fromkeys(READ)])
def test_a_card_that_does_not_answer_has_no_numbers(values: dict[str, int | None]):
    assert {name: value for name, (value, _) in told(values).items()} == {"windrow_gpu_answers": 0}


async def test_the_cards_of_a_driver_are_told_in_prometheus_text(fake_nvml: FakeNvml, tmp_path: Path):
    async with sampling(make(nvml(tmp_path), tmp_path)) as sampler:
        uuid = fake_nvml.state.uuid(7)
        slow = BY_NAME["gpu_pcie_lanes"].number
        await poll_async(lambda: sampler.readings is not None and sampler.readings.values.get((uuid, slow)) is not None)
        await poll_async(lambda: sampler.readings is not None and sampler.readings.values.get((uuid, 4)) == 34)
        text = exposition(gpu_figures(sampler.gpus, sampler.readings, "box-1"))
    assert text.count("\nDCGM_FI_DEV_GPU_TEMP{") == 8
    assert "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter" in text
    need("prometheus")
    assert [line for line in complaints(text) if not line.startswith("DCGM_")] == [], "DCGM's names break the rules"
