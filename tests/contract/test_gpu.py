"""One suite for every GPU backend: NVML on the fake driver and the simulated cards keep the same promises."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.build import fake_nvml as fake_nvml
from windrow_agent.core.gpu_port import CutRefusedError, GpuBackend, GpuEvent, GpuEventKind
from windrow_agent.gpu.no_gpus import NoGpus
from windrow_agent.gpu.nvml import NvmlBackend
from windrow_agent.host.simulated import SimulatedHost
from windrow_proto.clock import SystemClock
from windrow_proto.conditions import ConditionCode
from windrow_proto.metrics import METRICS, SLOW, Scope

pytestmark = pytest.mark.proves("one contract for NVML (fake driver) and simulated GPUs")

GPU_NUMBERS = {metric.number for metric in METRICS if metric.scope is Scope.GPU}


@dataclass
class Bench:
    """A backend with eight cards, and the hands that make things happen to them."""

    backend: GpuBackend
    xid: Callable[[int, int], None]
    lose: Callable[[int], None]
    recover: Callable[[int], None]
    refuse: Callable[[bool], None]


def nvml_bench(fake: FakeNvml, tmp_path: Path) -> Bench:
    return Bench(
        NvmlBackend(pci_devices=tmp_path / "pci"),
        fake.state.xid,
        lambda index: setattr(fake.state.gpu(index), "lost", 1),
        lambda index: setattr(fake.state.gpu(index), "lost", 0),
        lambda is_refused: setattr(fake.state.state, "init_code", 9 if is_refused else 0),
    )


def simulated_bench() -> Bench:
    gpus = SimulatedHost(7, 0, SystemClock(), "8xH100").gpus
    return Bench(
        gpus,
        gpus.xid,
        gpus.lose,
        gpus.recover,
        lambda is_refused: gpus.refuse(ConditionCode.GPU_NO_DRIVER if is_refused else None),
    )


@pytest.fixture(params=["nvml", "simulated"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    real = request.param == "nvml"
    made = nvml_bench(request.getfixturevalue("fake_nvml"), tmp_path) if real else simulated_bench()
    yield made
    made.backend.close()


def uuid(bench: Bench, index: int) -> str:
    return bench.backend.inventory().gpus[index].uuid


def test_an_open_backend_tells_its_cards_in_the_order_of_their_index(bench: Bench):
    assert bench.backend.open() is None
    found = bench.backend.inventory()
    assert [gpu.index for gpu in found.gpus] == list(range(8))
    assert len({gpu.uuid for gpu in found.gpus}) == 8
    assert found.driver_version
    assert found.cuda_version
    assert bench.backend.inventory() == found


def test_a_sweep_names_every_metric_of_every_card(bench: Bench):
    bench.backend.open()
    uuids = {gpu.uuid for gpu in bench.backend.inventory().gpus}
    values = bench.backend.sample(with_processes=True)
    assert {(gpu, metric) for gpu in uuids for metric in GPU_NUMBERS - SLOW} <= set(values)
    assert set(values) <= {(gpu, metric) for gpu in uuids for metric in GPU_NUMBERS}
    assert all(value is None or isinstance(value, int) for value in values.values())
    assert all(values[gpu, 4] is not None and values[gpu, 6] for gpu in uuids)


def test_counters_never_fall(bench: Bench):
    bench.backend.open()
    first, second = bench.backend.sample(False), bench.backend.sample(False)
    counters = {metric.number for metric in METRICS if metric.counter}
    assert all((second[key] or 0) >= (value or 0) for key, value in first.items() if key[1] in counters)


def test_health_names_every_card(bench: Bench):
    bench.backend.open()
    bench.backend.inventory()
    bench.backend.sample(with_processes=True)
    health = bench.backend.health()
    assert [one.uuid for one in health] == [gpu.uuid for gpu in bench.backend.inventory().gpus]
    assert not any(one.is_lost or one.remap_pending or one.remap_failed for one in health)
    assert all(one.temperature_celsius is not None and one.slowdown_celsius for one in health)


def test_an_xid_is_told_once(bench: Bench):
    bench.backend.open()
    bench.xid(3, 48)
    assert bench.backend.events(1.0) == [GpuEvent(GpuEventKind.XID, uuid(bench, 3), 48)]
    assert bench.backend.events(0) == []


def test_a_lost_card_is_absent_and_the_others_are_not(bench: Bench):
    bench.backend.open()
    facts = bench.backend.inventory()
    lost, kept = facts.gpus[2].uuid, facts.gpus[5].uuid
    bench.lose(2)
    values = bench.backend.sample(with_processes=False)
    assert {values[lost, metric] for metric in GPU_NUMBERS - SLOW} == {None}
    assert values[kept, 4] is not None
    assert [condition.text for condition in bench.backend.conditions()] == [f"gpu.lost:{lost}"]
    assert [one.uuid for one in bench.backend.health() if one.is_lost] == [lost]
    assert bench.backend.events(0) == [GpuEvent(GpuEventKind.LOST, lost)]
    assert bench.backend.inventory() == facts
    bench.recover(2)
    assert bench.backend.sample(with_processes=True)[lost, 4] is not None
    assert bench.backend.events(0) == [GpuEvent(GpuEventKind.RECOVERED, lost)]
    assert bench.backend.conditions() == ()


def test_a_refused_opening_is_a_condition_and_may_be_tried_again(bench: Bench):
    bench.refuse(True)
    refused = bench.backend.open()
    assert refused is not None
    assert refused.text == "gpu.no_driver"
    bench.refuse(False)
    assert bench.backend.open() is None


def test_a_look_shows_a_card_that_answers_and_leaves_out_what_does_not(bench: Bench):
    bench.backend.open()
    facts = bench.backend.inventory()
    lost, kept = facts.gpus[2].uuid, facts.gpus[5].uuid
    bench.lose(2)
    seen = bench.backend.look(frozenset({lost, kept, "GPU-of-another-host"}))
    assert set(seen) == {kept}
    assert (seen[kept].facts.uuid, seen[kept].processes) == (kept, 0)
    assert seen[kept].memory_used_bytes is not None


def test_a_card_that_is_not_there_is_not_cut(bench: Bench):
    bench.backend.open()
    with pytest.raises(CutRefusedError):
        bench.backend.cut("GPU-of-another-host", ("1g.10gb",))


def test_closing_twice_is_harmless(bench: Bench):
    bench.backend.close()
    assert bench.backend.open() is None
    bench.backend.close()
    bench.backend.close()


def test_a_host_without_gpus_answers_everything_with_nothing():
    backend: GpuBackend = NoGpus()
    refused = backend.open()
    assert refused is not None
    assert refused.text == "gpu.none"
    assert (backend.inventory().gpus, backend.sample(True), backend.health(), backend.events(0)) == ((), {}, (), [])
