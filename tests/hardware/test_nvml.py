"""The NVML adapter on a real driver and card; skipped, with the reason, where there is none."""

import time

import pytest

from windrow_agent.gpu.nvml import NvmlBackend
from windrow_proto.units import GIB

pytestmark = [
    pytest.mark.hardware,
    pytest.mark.proves("a real NVIDIA card is read", by="make test TESTS=tests/hardware on a host with an NVIDIA GPU"),
]

SWEEP_S_MAX = 0.5
"""Ten times the goal for eight cards without process lists: a machine under load is no failure of ours."""


@pytest.fixture
def backend():
    opened = NvmlBackend()
    refused = opened.open()
    if refused is not None:
        pytest.skip(f"{refused.text}: {refused.detail or 'no NVIDIA GPU here'}")
    yield opened
    opened.close()


def test_facts_of_the_real_card_are_whole(backend: NvmlBackend):
    found = backend.inventory()
    assert found.driver_version
    assert found.cuda_version
    for gpu in found.gpus:
        assert gpu.uuid.startswith("GPU-")
        assert gpu.name
        assert gpu.pci_device_id & 0xFFFF == 0x10DE
        assert (gpu.memory_bytes or 0) > GIB


def test_a_real_sweep_says_what_every_card_can_say(backend: NvmlBackend):
    values = backend.sample(with_processes=True)
    for gpu in backend.inventory().gpus:
        assert 0 < (values[gpu.uuid, 4] or 0) < 120
        assert (values[gpu.uuid, 6] or 0) > 0
        assert values[gpu.uuid, 3] is not None


def test_a_real_sweep_takes_milliseconds(backend: NvmlBackend):
    backend.sample(with_processes=False)
    began = time.perf_counter()
    backend.sample(with_processes=False)
    assert time.perf_counter() - began < SWEEP_S_MAX


def test_waiting_for_events_of_a_quiet_driver_ends_in_time(backend: NvmlBackend):
    began = time.perf_counter()
    assert backend.events(0.1) == []
    assert time.perf_counter() - began < 5.0


def test_the_energy_of_a_real_card_grows(backend: NvmlBackend):
    first = backend.sample(with_processes=False)
    backend.events(1.5)
    second = backend.sample(with_processes=False)
    known = [key for key, value in first.items() if key[1] == 7 and value is not None]
    assert all((second[key] or 0) >= (first[key] or 0) for key in known)
