"""The NVML adapter on the real nvidia-ml-py over the fake library: every case here is C answering."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pynvml
import pytest

from tests.fake_nvml.build import FakeNvml
from tests.fake_nvml.state import ABSENT, RTX_4090, FakeState
from tests.waiting import PATIENCE_S, poll
from windrow_agent.core.gpu_port import Condition, GpuEvent, GpuEventKind
from windrow_agent.gpu.nvml import NvmlBackend
from windrow_proto.conditions import ConditionCode
from windrow_proto.units import MIB

pytestmark = pytest.mark.proves("NVIDIA readings through the real nvidia-ml-py, on a fake driver")

LIB_RM_VERSION_MISMATCH, DRIVER_NOT_LOADED, UNKNOWN = 18, 9, 999
CALLS_PER_SWEEP = 9
"""Of one card: each takes a lock that its tenant needs as well."""
SLOW = {16: 0, 17: 0, 18: 1500, 19: 1, 20: 16, 21: 5120, 22: 3072, 25: 0, 26: 0}


@pytest.fixture
def backend(tmp_path: Path):
    opened = NvmlBackend(pci_devices=tmp_path / "pci")
    yield opened
    opened.close()


def codes(backend: NvmlBackend) -> list[str]:
    return [condition.text for condition in backend.conditions()]


def test_eight_cards_are_found_with_all_their_facts(fake_nvml: FakeNvml, backend: NvmlBackend):
    assert backend.open() is None
    found = backend.inventory()
    assert (found.driver_version, found.cuda_version, len(found.gpus)) == ("580.95.05", "13.0", 8)
    third = found.gpus[3]
    assert (third.uuid, third.index, third.name) == (fake_nvml.state.uuid(3), 3, "NVIDIA H100 80GB HBM3")
    assert (third.pci_bus_id, third.pci_device_id, third.device_minor) == ("00000000:30:00.0", 0x233010DE, 3)
    assert (third.memory_bytes, third.memory_bus_bits, third.core_count) == (81559 * MIB, 5120, 16896)
    assert (third.compute_capability_major, third.compute_capability_minor) == (9, 0)
    assert (third.ecc_enabled, third.mig_enabled, third.numa_node) == (True, False, 0)
    assert (third.power_limit_mw, third.power_limit_max_mw) == (700_000, 700_000)
    assert backend.conditions() == ()


def test_a_sweep_is_scaled_as_the_metric_table_says(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    gpu, uuid = fake_nvml.state.gpu(2), fake_nvml.state.uuid(2)
    gpu.utilization, gpu.memory_utilization, gpu.memory_used, gpu.throttle = 97, 41, 3 * MIB + 5, 0x48
    gpu.ecc_uncorrected, gpu.pcie_replays, gpu.performance_state = 3, 7, 2
    fake_nvml.state.run_processes(2, (4242, False), (4243, False), (4242, True))
    values = backend.sample(with_processes=True)
    mine = {metric: value for (owner, metric), value in values.items() if owner == uuid}
    expected = {1: 97, 2: 41, 3: 3, 4: 34, 5: 40, 6: 704, 7: 123_456, 8: 1980, 9: 2619, 10: 0x48, 11: 2}
    assert mine == {**expected, 12: None, 13: 3, 14: 7, 15: 2, **SLOW}
    assert len(values) == 8 * (15 + len(SLOW))


@pytest.mark.case("B-E13")
def test_what_a_card_does_not_say_is_absent_and_never_zero(
    fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: NvmlBackend
):
    from tests.fake_nvml.build import installed

    state = FakeState(tmp_path / "consumer", count=1, persona=RTX_4090)
    for fake in installed(fake_library, state, monkeypatch):
        state.gpu(0).utilization = state.gpu(0).temperature = ABSENT
        assert backend.open() is None
        facts = backend.inventory().gpus[0]
        values = backend.sample(with_processes=True)
        assert (facts.serial, facts.mig_enabled, facts.numa_node, facts.ecc_enabled) == (None, None, None, False)
        absent = [metric for metric in range(1, 16) if values[fake.state.uuid(0), metric] is None]
        assert absent == [1, 2, 4, 5, 13]
        assert (
            set(facts.more) & {"pdi", "inforom", "nvlink_count", "ecc_corrected", "mig_devices_max", "fabric_state"}
            == set()
        )
        assert values[state.uuid(0), 12] == 30
        backend.close()


def test_an_old_driver_answers_by_its_old_calls(old_nvml: FakeNvml, backend: NvmlBackend):
    old_nvml.state.gpu(0).memory_used = 10 * MIB
    assert backend.open() is None
    values = backend.sample(with_processes=True)
    uuid = old_nvml.state.uuid(0)
    assert values[uuid, 3] == 561  # version 1 counts what the driver keeps for itself
    assert (values[uuid, 6], values[uuid, 7], values[uuid, 10]) == (704, 123_456, 0)
    assert (values[uuid, 5], values[uuid, 15]) == (None, None)


def test_one_lost_card_keeps_the_others_and_comes_back(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    facts = backend.inventory()
    fake_nvml.state.gpu(5).lost = 1
    values = backend.sample(with_processes=False)
    lost, kept = fake_nvml.state.uuid(5), fake_nvml.state.uuid(4)
    assert (values[lost, 4], values[kept, 4]) == (None, 34)
    assert codes(backend) == [f"gpu.lost:{lost}"]
    assert backend.events(0) == [GpuEvent(GpuEventKind.LOST, lost)]
    assert backend.inventory() == facts
    fake_nvml.state.gpu(5).lost = 0
    assert backend.sample(with_processes=True)[lost, 4] == 34
    assert backend.events(0) == [GpuEvent(GpuEventKind.RECOVERED, lost)]
    assert codes(backend) == []


def test_a_card_lost_before_the_start_is_named_by_its_index(fake_nvml: FakeNvml, backend: NvmlBackend):
    fake_nvml.state.gpu(1).lost = 1
    assert backend.open() is None
    assert len(backend.inventory().gpus) == 7
    assert codes(backend) == ["gpu.lost:index-1"]


def test_an_xid_wakes_the_waiting_thread(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    got: list[GpuEvent] = []
    waiting = threading.Thread(target=lambda: got.extend(backend.events(10.0)))
    waiting.start()
    fake_nvml.state.xid(6, 79)
    waiting.join(PATIENCE_S)
    assert got == [GpuEvent(GpuEventKind.XID, fake_nvml.state.uuid(6), 79)]


def test_a_lost_card_does_not_deafen_us_to_the_others(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    fake_nvml.state.gpu(0).lost = 1
    assert backend.events(0.05) == []
    began = time.monotonic()
    assert backend.events(0.1) == []
    assert time.monotonic() - began >= 0.09
    fake_nvml.state.xid(6, 79)
    assert backend.events(1.0) == [GpuEvent(GpuEventKind.XID, fake_nvml.state.uuid(6), 79)]
    backend.sample(with_processes=False)
    fake_nvml.state.gpu(0).lost = 0
    backend.sample(with_processes=True)
    fake_nvml.state.xid(0, 48)
    assert [event.kind for event in backend.events(1.0)] == ["gpu.lost", "gpu.recovered", "gpu.xid"]
    assert codes(backend) == []


def test_losing_every_card_never_turns_waiting_into_spinning(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    for index in range(8):
        fake_nvml.state.gpu(index).lost = 1
    backend.events(0.05)
    assert not backend.waits
    assert "gpu.events_unsupported" in codes(backend)


def test_waiting_for_events_ends_at_its_timeout(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    began = time.monotonic()
    assert backend.events(0.05) == []
    assert time.monotonic() - began >= 0.04


def test_a_driver_without_events_is_a_stated_condition(fake_nvml: FakeNvml, backend: NvmlBackend):
    for index in range(8):
        fake_nvml.state.gpu(index).event_types = 0
    assert backend.open() is None
    assert (codes(backend), backend.waits, backend.events(1.0)) == (["gpu.events_unsupported"], False, [])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (LIB_RM_VERSION_MISMATCH, ConditionCode.GPU_DRIVER_MISMATCH),
        (DRIVER_NOT_LOADED, ConditionCode.GPU_NO_DRIVER),
        (4, ConditionCode.GPU_NO_PERMISSION),
        (UNKNOWN, ConditionCode.GPU_UNAVAILABLE),
    ],
)
def test_a_refused_start_is_a_condition(fake_nvml: FakeNvml, backend: NvmlBackend, code: int, expected: ConditionCode):
    fake_nvml.state.state.init_code = code
    refused = backend.open()
    assert refused is not None
    assert refused.code is expected
    assert (backend.inventory().gpus, dict(backend.sample(True)), backend.events(0)) == ((), {}, [])


def test_a_bindings_mismatch_that_is_no_nvml_error_is_a_condition(
    fake_nvml: FakeNvml, backend: NvmlBackend, monkeypatch: pytest.MonkeyPatch
):
    def mismatched() -> None:
        raise pynvml.NVMLLibraryMismatchError("Driver/library version mismatch")

    monkeypatch.setattr(pynvml, "nvmlInit", mismatched)
    assert backend.open() == Condition(ConditionCode.GPU_DRIVER_MISMATCH, detail="Driver/library version mismatch")


def test_a_driver_replaced_while_running_is_a_condition(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    fake_nvml.state.gpu(0).fault = LIB_RM_VERSION_MISMATCH
    values = backend.sample(with_processes=False)
    assert set(values.values()) == {None}
    assert codes(backend) == ["gpu.driver_mismatch"]


def test_an_unknown_error_of_one_card_only_hides_its_figures(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    fake_nvml.state.gpu(0).fault = UNKNOWN
    values = backend.sample(with_processes=False)
    assert (values[fake_nvml.state.uuid(0), 4], values[fake_nvml.state.uuid(1), 4]) == (None, 34)
    fake_nvml.state.gpu(0).fault = 0
    assert backend.sample(with_processes=False)[fake_nvml.state.uuid(0), 4] == 34


def test_without_a_state_the_driver_is_not_loaded(
    fake_nvml: FakeNvml, backend: NvmlBackend, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("FAKE_NVML_STATE")
    refused = backend.open()
    assert refused is not None
    assert refused.code is ConditionCode.GPU_NO_DRIVER


def refuse_to_load(name: str) -> None:
    raise OSError(f"{name}: cannot open shared object file")


@pytest.mark.parametrize(
    ("vendor", "device_class", "expected"),
    [("0x10de", "0x030200", "gpu.no_driver"), ("0x8086", "0x020000", "gpu.none"), ("0x1002", "0x038000", "gpu.none")],
)
def test_no_library_is_no_gpu_unless_a_card_is_on_the_bus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vendor: str, device_class: str, expected: str
):
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.setattr(pynvml, "CDLL", refuse_to_load)
    device = tmp_path / "0000:01:00.0"
    device.mkdir()
    (device / "vendor").write_text(vendor + "\n")
    (device / "class").write_text(device_class + "\n")
    refused = NvmlBackend(pci_devices=tmp_path).open()
    assert refused is not None
    assert refused.text == expected


@pytest.mark.case("B-E15")
def test_two_cards_of_one_uuid_are_one_card_and_a_condition(fake_nvml: FakeNvml, backend: NvmlBackend):
    fake_nvml.state.gpu(1).uuid = fake_nvml.state.gpu(0).uuid
    backend.open()
    assert len(backend.inventory().gpus) == 7
    assert codes(backend) == [f"gpu.duplicate_uuid:{fake_nvml.state.uuid(0)}"]


@pytest.mark.case("B-E11")
def test_hostile_names_are_cleaned_at_the_source(fake_nvml: FakeNvml, backend: NvmlBackend):
    fake_nvml.state.gpu(0).name = b"H100<script>\x1b[31m\xe2\x80\xae evil"
    fake_nvml.state.gpu(1).name = b"\xff\xfe not text"
    fake_nvml.state.gpu(2).uuid = b"GPU-1/../..\n"
    backend.open()
    first, second, third = backend.inventory().gpus[:3]
    assert (first.name, second.name, third.uuid) == ("H100 script [31m evil", "", "GPU-1_.._.._")


@pytest.mark.case("B-E12")
def test_a_driver_that_says_no_version_at_first_is_asked_again_with_the_next_facts(
    fake_nvml: FakeNvml, backend: NvmlBackend
):
    fake_nvml.state.state.driver = b"\xe9\xe8.95"
    assert backend.open() is None
    before = backend.inventory()
    fake_nvml.state.state.driver = b"580.95.05"
    after = backend.inventory()
    assert (before.driver_version, len(before.gpus)) == ("", 8)
    assert (after.driver_version, after.cuda_version, len(after.gpus)) == ("580.95.05", "13.0", 8)


def test_a_figure_beyond_reason_is_absent(fake_nvml: FakeNvml, backend: NvmlBackend):
    gpu, uuid = fake_nvml.state.gpu(0), fake_nvml.state.uuid(0)
    gpu.memory_used, gpu.temperature, gpu.utilization, gpu.performance_state = 1 << 60, 4000, 250, 32
    backend.open()
    values = backend.sample(with_processes=False)
    assert [values[uuid, metric] for metric in (1, 3, 4, 11)] == [None, None, None, None]


def test_row_remaps_and_slowdown_reach_the_health(fake_nvml: FakeNvml, backend: NvmlBackend):
    fake_nvml.state.gpu(3).remap_pending = 1
    backend.open()
    backend.inventory()
    backend.sample(with_processes=True)
    sick, well = backend.health()[3], backend.health()[0]
    assert (sick.remap_pending, sick.remap_failed, well.remap_pending) == (True, False, False)
    assert (well.slowdown_celsius, well.temperature_celsius, well.compute_processes) == (87, 34, 0)


def test_what_a_card_cannot_do_is_not_asked_again_until_its_facts_are(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    backend.inventory()
    backend.sample(with_processes=False)
    first = fake_nvml.state.gpu(0).calls
    backend.sample(with_processes=False)
    second = fake_nvml.state.gpu(0).calls
    backend.sample(with_processes=False)
    third = fake_nvml.state.gpu(0).calls
    assert third - second <= second - first
    fake_nvml.state.gpu(0).fan = 55
    assert backend.sample(with_processes=False)[fake_nvml.state.uuid(0), 12] is None
    backend.inventory()
    assert backend.sample(with_processes=False)[fake_nvml.state.uuid(0), 12] == 55


def test_opening_again_finds_a_driver_that_has_come(fake_nvml: FakeNvml, backend: NvmlBackend):
    fake_nvml.state.state.init_code = DRIVER_NOT_LOADED
    assert backend.open() is not None
    fake_nvml.state.state.init_code = 0
    assert backend.open() is None
    backend.close()
    backend.close()
    assert backend.open() is None


def test_a_slow_sweep_can_be_watched_from_outside(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    fake_nvml.state.state.hang = 1
    answers: list[object] = []
    sweeping = threading.Thread(target=lambda: answers.append(backend.sample(False)))
    sweeping.start()
    poll(lambda: fake_nvml.state.state.hanging == 1, what="the sweep to hang")
    assert answers == []
    fake_nvml.state.state.hang = 0
    sweeping.join(PATIENCE_S)
    assert len(answers) == 1


CHILD = """
import json
from windrow_agent.gpu.nvml import NvmlBackend
backend = NvmlBackend()
refused = backend.open()
found = backend.inventory()
print(json.dumps([refused and refused.text, [gpu.name for gpu in found.gpus], found.driver_version]))
"""


def test_the_library_is_found_by_its_ordinary_name(fake_nvml: FakeNvml):
    child = subprocess.run(
        [sys.executable, "-c", CHILD], env=fake_nvml.environment, capture_output=True, timeout=60, check=True
    )
    assert json.loads(child.stdout) == [None, ["NVIDIA H100 80GB HBM3"] * 8, "580.95.05"]


def test_row_remaps_are_seen_with_every_sweep(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    backend.inventory()
    backend.sample(with_processes=False)
    fake_nvml.state.gpu(3).remap_pending = 1
    backend.sample(with_processes=False)
    assert [one.remap_pending for one in backend.health()] == [False] * 3 + [True] + [False] * 4


def test_programs_of_others_are_looked_for_where_memory_moved_or_work_began(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    backend.inventory()
    backend.sample(with_processes=True)

    def calls() -> list[int]:
        before = [fake_nvml.state.gpu(index).calls for index in range(8)]
        backend.sample(with_processes=False)
        return [fake_nvml.state.gpu(index).calls - before[index] for index in range(8)]

    quiet = calls()
    for index in (2, 5, 6):
        fake_nvml.state.run_processes(index, (4242, False))
    fake_nvml.state.gpu(2).memory_used = 500 << 20
    fake_nvml.state.gpu(5).utilization = 90
    backend.leased(frozenset({fake_nvml.state.uuid(6)}))
    fake_nvml.state.gpu(6).memory_used = 60 << 30
    first, second, third = calls(), calls(), calls()
    assert [one.compute_processes for one in backend.health()] == [0, 0, 1, 0, 0, 1, 0, 0]
    extra = [[now - usual for now, usual in zip(sweep, quiet, strict=True)] for sweep in (first, second, third)]
    assert [[index for index, more in enumerate(sweep) if more > 0] for sweep in extra] == [[2, 5], [2, 5], []]


def test_a_card_that_is_cut_into_slices_is_noticed_without_an_event(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    backend.inventory()
    backend.sample(with_processes=False)
    fake_nvml.state.gpu(3).mig_mode = fake_nvml.state.gpu(3).mig_pending = 1
    backend.sample(with_processes=False)
    assert [one.mig_enabled for one in backend.health()] == [False] * 3 + [True] + [False] * 4
    fake_nvml.state.gpu(4).mig_pending = 1
    backend.sample(with_processes=True)
    assert (backend.health()[4].mig_enabled, backend.health()[4].mig_pending) == (False, True)


def test_a_sweep_makes_no_more_calls_than_it_did(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.open()
    backend.inventory()
    backend.sample(with_processes=True)
    backend.sample(with_processes=False)
    before = fake_nvml.state.gpu(0).calls
    backend.sample(with_processes=False)
    assert fake_nvml.state.gpu(0).calls - before <= CALLS_PER_SWEEP
