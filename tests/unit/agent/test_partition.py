"""A card is partitioned through the real nvidia-ml-py, on the fake driver: as asked, or it stays as it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.build import fake_nvml as fake_nvml
from windrow_agent.core.gpu_port import CutRefusedError, GpuEvent, GpuEventKind
from windrow_agent.gpu.nvml import NvmlBackend
from windrow_proto.model import Isolation

pytestmark = pytest.mark.proves("MIG slices made and taken away through nvidia-ml-py, on a fake driver")

LAYOUT = ("3g.40gb", "2g.20gb", "2g.20gb")


@pytest.fixture
def backend(fake_nvml: FakeNvml, tmp_path: Path) -> Iterator[NvmlBackend]:
    made = NvmlBackend(pci_devices=tmp_path / "pci")
    made.open()
    made.inventory()
    yield made
    made.close()


def slices(backend: NvmlBackend, index: int = 0) -> list[str]:
    return [part.profile for part in backend.inventory().gpus[index].slices]


def test_a_card_is_cut_as_asked_and_its_neighbours_are_not(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.cut(fake_nvml.state.uuid(0), LAYOUT)
    gpus = backend.inventory().gpus
    assert [part.profile for part in gpus[0].slices] == list(LAYOUT)
    assert {part.isolation for part in gpus[0].slices} == {Isolation.MIG}
    assert [part.compute_slices for part in gpus[0].slices] == [3, 2, 2]
    assert gpus[0].slices[0].memory_bytes == 40448 << 20
    assert len({part.uuid for part in gpus[0].slices}) == 3
    assert [gpu.mig_enabled for gpu in gpus] == [True] + [False] * 7
    assert not any(gpu.slices for gpu in gpus[1:])


def test_a_cut_card_is_made_whole_again_and_cut_anew(fake_nvml: FakeNvml, backend: NvmlBackend):
    uuid = fake_nvml.state.uuid(0)
    for profiles in (LAYOUT, ("7g.80gb",), ()):
        backend.cut(uuid, profiles)
        assert slices(backend) == list(profiles)
        assert bool(fake_nvml.state.gpu(0).mig_mode) is bool(profiles)


def test_events_are_heard_after_a_cut_as_before(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.cut(fake_nvml.state.uuid(0), LAYOUT)
    fake_nvml.state.xid(0, 79)
    assert backend.events(1.0) == [GpuEvent(GpuEventKind.XID, fake_nvml.state.uuid(0), 79)]


def test_a_card_that_is_cut_so_already_is_not_touched(fake_nvml: FakeNvml, backend: NvmlBackend):
    fake_nvml.state.cut(0, *LAYOUT)
    before = backend.inventory().gpus[0].slices
    fake_nvml.state.gpu(0).mig_denied = 1
    backend.cut(fake_nvml.state.uuid(0), LAYOUT)
    assert backend.inventory().gpus[0].slices == before


@pytest.mark.parametrize(
    ("member", "value", "words"),
    [
        ("mig_denied", 1, "only root"),
        ("mig_status", 16, "waits for a reset"),
        ("mig_status", 19, "still uses the card"),
        ("mig_mode", 0xFFFFFFFF, "has no MIG"),
    ],
)
def test_what_the_driver_refuses_is_said_in_words_and_waits_for_no_reset(
    fake_nvml: FakeNvml, backend: NvmlBackend, member: str, value: int, words: str
):
    setattr(fake_nvml.state.gpu(0), member, value)
    with pytest.raises(CutRefusedError, match=words):
        backend.cut(fake_nvml.state.uuid(0), LAYOUT)
    gpu = fake_nvml.state.gpu(0)
    assert (gpu.mig_pending, fake_nvml.state.profiles(0)) == (0, [])


def test_slices_that_do_not_fit_leave_the_card_whole(fake_nvml: FakeNvml, backend: NvmlBackend):
    with pytest.raises(CutRefusedError, match="do not fit"):
        backend.cut(fake_nvml.state.uuid(0), ("4g.40gb", "4g.40gb"))
    assert (fake_nvml.state.gpu(0).mig_mode, fake_nvml.state.profiles(0)) == (0, [])
    with pytest.raises(CutRefusedError, match=r"no profile 1g.5gb here, but 1g.10gb"):
        backend.cut(fake_nvml.state.uuid(0), ("1g.5gb",))


def test_slices_that_do_not_fit_leave_the_slices_there_were(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.cut(fake_nvml.state.uuid(0), LAYOUT)
    with pytest.raises(CutRefusedError, match="do not fit"):
        backend.cut(fake_nvml.state.uuid(0), ("7g.80gb", "1g.10gb"))
    assert slices(backend) == list(LAYOUT)


def test_a_card_or_slice_in_use_is_not_cut(fake_nvml: FakeNvml, backend: NvmlBackend):
    backend.cut(fake_nvml.state.uuid(0), LAYOUT)
    fake_nvml.state.gpu(0).slices[1].programs = 1
    with pytest.raises(CutRefusedError, match="programs run on"):
        backend.cut(fake_nvml.state.uuid(0), ())
    assert slices(backend) == list(LAYOUT)


def test_a_look_at_a_slice_sees_its_own_memory_and_programs(fake_nvml: FakeNvml, backend: NvmlBackend):
    fake_nvml.state.cut(0, "3g.40gb", "2g.20gb")
    first, second = backend.inventory().gpus[0].slices
    fake_nvml.state.gpu(0).slices[1].programs, fake_nvml.state.gpu(0).slices[1].memory_used = 2, 3 << 30
    seen = backend.look(frozenset({first.uuid, second.uuid, "MIG-gone"}))
    assert (seen[first.uuid].processes, seen[first.uuid].memory_used_bytes) == (0, 0)
    assert (seen[second.uuid].processes, seen[second.uuid].memory_used_bytes) == (2, 3 << 30)
    assert seen[second.uuid].facts.memory_bytes == 20096 << 20
    assert set(seen) == {first.uuid, second.uuid}


def test_a_look_reads_the_modes_anew(fake_nvml: FakeNvml, backend: NvmlBackend):
    gpu, uuid = fake_nvml.state.gpu(0), fake_nvml.state.uuid(0)
    gpu.compute_mode, gpu.persistence, gpu.power_limit_mw, gpu.mig_pending = 3, 0, 500_000, 1
    facts = backend.look(frozenset({uuid}))[uuid].facts
    assert (facts.more["compute_mode"], facts.more["persistence_mode"]) == ("exclusive process", 0)
    assert (facts.power_limit_mw, facts.more["mig_pending"]) == (500_000, 1)
