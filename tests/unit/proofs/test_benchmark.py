"""Measurements of a GPU by a test rental: the program itself on PoCL, and what is believed of its log."""

import json
import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.services import need
from tests.support.places import Place, log_of, no_progress
from tests.waiting import poll_async
from windrow_master.acceptance import benchmark, program, words
from windrow_master.acceptance.benchmark import Figures, address_of
from windrow_master.acceptance.model import StepState
from windrow_master.fleet import gpus, tiers
from windrow_master.fleet.tiers import SHEET_REACHED, Bandwidth, gpu_tier
from windrow_master.spec import TEXT_MAX
from windrow_proto.ids import GpuUuid
from windrow_proto.metrics import GPU_MATRIX, GPU_MEMORY
from windrow_proto.model import GpuFacts
from windrow_proto.units import MIB

CARDS = (GpuFacts(GpuUuid("CPU-0"), 0, "pocl", "a processor"), GpuFacts(GpuUuid("CPU-1"), 1, "pocl", "a processor"))
FOREIGN = GpuFacts(GpuUuid("GPU-none"), 2, "nvidia", "X1", pci_bus_id="00000000:17:00.0")
H100 = gpus.BY_PCI[0x2330 << 16 | gpus.NVIDIA]
NOWHERE = {"libwindrow-nowhere.so": "from nowhere"}
SMALL = {"PROOF_SPAN_MS": "20", "PROOF_SIZE_MAX": "512", "PROOF_COPY_BYTES": str(8 * MIB)}
POCL = {"POCL_DEVICES": "pthread pthread"}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of a rental with two processors and one card that is not there; little work."""
    need("opencl")
    _, found = program.command(program.port_of(os.getpid()), "process", (*CARDS, FOREIGN))
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    return own | found | SMALL | POCL


@pytest.fixture
async def told(tmp_path: Path) -> AsyncIterator[program.Told]:
    """Returns the figures of the rental, as they are read from its log: started by the agent's runtime in bubblewrap,
    as any renter's process is."""
    need("opencl")
    need("bubblewrap")
    place = Place("bubblewrap", tmp_path)
    argv, environment = program.command(program.port_of(os.getpid()), "process", (*CARDS, FOREIGN))
    spec = place.spec(*argv, env=environment | SMALL | POCL)

    async def measured() -> program.Told | None:
        said = program.read((await log_of(place, spec.workload_id))[0])
        return said if said.has_measured else None

    try:
        await place.runtime.prepare(spec, no_progress)
        await place.runtime.start(spec.workload_id)
        found = await poll_async(measured, what="figures of every card")
        assert found is not None
        yield found
    finally:
        await place.runtime.remove(spec.workload_id)
        await place.runtime.close()


@pytest.mark.proves("a test rental measures its cards by the challenge's kernel on OpenCL, in a renter's bubblewrap")
async def test_each_card_is_measured_inside_and_one_that_is_not_there_says_so(told: program.Told) -> None:
    assert set(told.figures) == {"CPU-0", "CPU-1", "GPU-none"}
    for card in CARDS:
        found = told.figures[card.uuid]
        assert found.memory and found.matrix and found.size == 512 and found.device and not found.wrong, found
        assert {one.name for one in found.benchmarks(card.uuid, 1)} == {GPU_MEMORY, GPU_MATRIX}
    absent = told.figures["GPU-none"]
    assert absent.memory is None and "libOpenCL.so.1: none of its devices is this card" in absent.why


async def test_a_card_that_moves_half_of_its_sheet_is_in_another_tier_than_one_that_moves_it(
    told: program.Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = GpuFacts(CARDS[0].uuid, 0, "nvidia", H100.name, pci_device_id=0x2330 << 16 | gpus.NVIDIA)
    card = replace(card, memory_bytes=81559 * MIB)
    measured = told.figures[card.uuid].benchmarks(card.uuid, 1)
    reached = next(one.value for one in measured if one.name == GPU_MEMORY)
    line = Bandwidth(900_000_000, 900_000_000, "access_1")
    monkeypatch.setattr(tiers, "MATRIX_EXPECTED", {})  # a processor's is no H100's
    found = []
    for share in (1, 0.5):
        assert H100.bandwidth_gb_s is not None
        sheet = replace(H100.bandwidth_gb_s, value=reached / share / SHEET_REACHED / 1e9)
        monkeypatch.setattr(gpus, "find", lambda *_, sheet=sheet: replace(H100, bandwidth_gb_s=sheet))
        found.append(gpu_tier(card, measured, line).name)
    assert found == ["h100/A", "h100/C"]


def test_a_driver_without_a_loader_is_asked_itself(environment: dict[str, str]) -> None:
    libraries = json.dumps(NOWHERE | {"libpocl.so.2": "PoCL"})
    direct = environment | {"PROOF_LIBRARIES": libraries, "PROOF_CARD": '["CPU-1", ""]'}
    said = subprocess.run(["python3", "-c", benchmark.PROGRAM], env=direct, capture_output=True, check=True).stdout
    found = program.read(said).figures["CPU-1"]
    assert found.memory and found.matrix and not found.why


def test_a_kernel_that_does_nothing_is_no_fast_one(environment: dict[str, str]) -> None:
    idle = environment["PROOF_KERNELS"].replace("vstore4(sum[i], 0,", "if (size == 0) vstore4(sum[i], 0,")
    asked = environment | {"PROOF_KERNELS": idle, "PROOF_CARD": '["CPU-0", ""]'}
    said = subprocess.run(["python3", "-c", benchmark.PROGRAM], env=asked, capture_output=True, check=True).stdout
    found = program.read(said).figures["CPU-0"]
    assert found.matrix is None and found.wrong == "an entry of its product of 512 rows is not true"
    assert found.benchmarks("CPU-0", 1) == ()


def test_a_machine_without_opencl_names_the_package_to_install(environment: dict[str, str]) -> None:
    shipped = {f"{name}.absent": source for name, source in json.loads(environment["PROOF_LIBRARIES"]).items()}
    asked = environment | {"PROOF_LIBRARIES": json.dumps(shipped), "PROOF_CARD": '["CPU-0", ""]'}
    said = subprocess.run(["python3", "-c", benchmark.PROGRAM], env=asked, capture_output=True, check=True).stdout
    why = program.read(said).figures["CPU-0"].why
    loader = "there is no libOpenCL.so.1.absent (Debian and Ubuntu: apt-get install ocl-icd-libopencl1)"
    source = "it comes with NVIDIA's driver; Debian: apt-get install nvidia-opencl-icd"
    assert why == f"{loader}; there is no libnvidia-opencl.so.1.absent ({source})"


# --- what is believed -------------------------------------------------------------------------------------------------


def said(*lines: object) -> program.Told:
    return program.read(b"".join(b"windrow-proof " + json.dumps(line).encode() + b"\n" for line in lines))


def test_figures_are_read_by_card_and_are_no_answer_to_another_question() -> None:
    told = said(
        {"memory": 7},
        {"benchmark": "GPU-1", "device": "X1\x1b[1m", "memory": 5},
        {"benchmark": "GPU-1", "matrix": 9, "size": 512},
        {"benchmark": "GPU-2", "why": "w" * 900},
        {"measured": 2},
    )
    assert told.memory_bytes == 7 and told.has_measured
    assert told.figures["GPU-1"] == Figures("X1[1m", 5, 9, 512)
    assert told.figures["GPU-2"].why == "w" * benchmark.WORDS_MAX


@pytest.mark.parametrize("value", [0, -1, 10**18, 1e9, True, "5", None, [5]])
def test_what_is_no_rate_is_not_believed(value: object) -> None:
    assert said({"benchmark": "GPU-1", "memory": value}).figures["GPU-1"].memory is None


@given(st.dictionaries(st.sampled_from(["benchmark", "memory", "matrix", "why", "device"]), st.integers() | st.text()))
def test_no_line_breaks_its_reader(line: dict[str, object]) -> None:
    said(line)


def test_the_slowest_card_is_told_and_one_silent_card_makes_all_absent() -> None:
    fast, slow = Figures(memory=3 * 10**12, matrix=10**13), Figures(memory=2 * 10**12, matrix=2 * 10**13)
    both = {GpuUuid("GPU-1"): fast, GpuUuid("GPU-2"): slow}
    assert words.measured(both) == (
        StepState.PASSED,
        "GPU memory measured inside at 2 TB/s and matrices at 10 Top/s (the slowest of 2).",
    )
    by_driver = {GpuUuid("GPU-1"): Figures(memory=3 * 10**12, why="there is no OpenCL")}
    assert words.measured(by_driver) == (
        StepState.PASSED,
        "GPU memory measured inside at 3 TB/s; GPU-1: matrices were not measured: there is no OpenCL.",
    )
    assert words.measured(both | {GpuUuid("GPU-3"): Figures()}) == (
        StepState.ABSENT,
        "GPU-3 was not measured: nothing was said of it in time.",
    )


@pytest.mark.parametrize(
    ("bus_id", "address"),
    [("00000000:17:00.0", "0000:17:00.0"), ("0000:C1:00.0", "0000:c1:00.0"), ("", ""), ("x:1", ""), ("17", "")],
)
def test_a_place_on_the_bus_is_written_as_the_kernel_does(bus_id: str, address: str) -> None:
    assert address_of(replace(FOREIGN, pci_bus_id=bus_id)) == address


def test_as_many_cards_as_a_host_may_have_fit_what_may_be_sent() -> None:
    cards = [replace(FOREIGN, uuid=GpuUuid(f"GPU-{n:036d}")) for n in range(64)]
    _, sent = program.command(1, "docker", cards)
    compile(benchmark.PROGRAM, "benchmark", "exec")
    assert max(map(len, sent.values())) <= TEXT_MAX
