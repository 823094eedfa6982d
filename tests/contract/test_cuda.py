"""One contract for libcuda: the fake one keeps the promises of a real driver that a test rental relies on."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fake_cuda.build import environment
from tests.fake_cuda.build import fake_cuda as fake_cuda
from tests.services import need
from windrow_master.acceptance import benchmark, program
from windrow_proto.ids import GpuUuid
from windrow_proto.model import GpuFacts
from windrow_proto.units import MIB

RATE = 3.0e12
SMALL = {"PROOF_COPY_BYTES": str(MIB), "PROOF_SPAN_MS": "1"}
"""Little work for the fake, whose copies take real time, too."""
PROMISES = r"""
import ctypes as c, json
cuda, said = c.CDLL("libcuda.so.1"), {}
count, device, context, free, whole = c.c_int(), c.c_int(), c.c_void_p(), c.c_size_t(), c.c_size_t()
said["before cuInit"] = cuda.cuDeviceGetCount(c.byref(count))
said["init"] = cuda.cuInit(c.c_uint(0)) or cuda.cuDeviceGetCount(c.byref(count))
said["beyond the last card"] = cuda.cuDeviceGet(c.byref(device), count)
place, other, begun, ended, ms = c.c_uint64(), c.c_uint64(), c.c_void_p(), c.c_void_p(), c.c_float()
said["without a context"] = cuda.cuMemAlloc_v2(c.byref(place), c.c_size_t(4096))
cuda.cuDeviceGet(c.byref(device), 0)
told, bus = (c.c_ubyte * 16)(), c.create_string_buffer(32)
said["names"] = cuda.cuDeviceGetUuid(told, device) or cuda.cuDeviceGetPCIBusId(bus, 32, device)
said["uuid"], said["bus"] = bytes(told).hex(), bus.value.decode().lower()
cuda.cuDevicePrimaryCtxRetain(c.byref(context), device)
said["context"] = cuda.cuCtxSetCurrent(context)
size, words = c.c_size_t(1 << 24), c.c_size_t(1 << 22)
said["memory"] = [cuda.cuMemAlloc_v2(c.byref(one), size) for one in (place, other)]
said["none of it"] = cuda.cuMemAlloc_v2(c.byref(c.c_uint64()), c.c_size_t(0))
said["info"] = cuda.cuMemGetInfo_v2(c.byref(free), c.byref(whole))
said["is free"] = 0 < free.value < whole.value
said["events"] = [cuda.cuEventCreate(c.byref(one), c.c_uint(0)) for one in (begun, ended)]
said["not recorded"] = cuda.cuEventElapsedTime(c.byref(ms), begun, ended)
cuda.cuMemsetD32_v2(place, c.c_uint(7), words), cuda.cuMemsetD32_v2(other, c.c_uint(9), words)
spans = []
for times in (64, 512):
    cuda.cuEventRecord(begun, None)
    for _ in range(times): said["copy"] = cuda.cuMemcpyDtoDAsync_v2(other, place, size, None)
    cuda.cuEventRecord(ended, None)
    cuda.cuEventSynchronize(ended)
    said["elapsed"] = cuda.cuEventElapsedTime(c.byref(ms), begun, ended)
    spans.append(ms.value)
said["eight times as much takes longer"] = 0 < 2 * spans[0] < spans[1]
word = c.c_uint32()
said["read"] = cuda.cuMemcpyDtoH_v2(c.byref(word), c.c_uint64(other.value + (1 << 24) - 4), c.c_size_t(4))
said["word"] = word.value
said["freed"] = [cuda.cuMemFree_v2(place), cuda.cuMemFree_v2(other)]
said["released"] = cuda.cuDevicePrimaryCtxRelease_v2(device)
print(json.dumps(said))
"""


@dataclass(frozen=True)
class Driver:
    """A libcuda and its first card; most: bytes per second that its card may be said to move."""

    environment: dict[str, str]
    card: GpuFacts
    most: float


def _promises(given: dict[str, str]) -> dict[str, object]:
    ran = subprocess.run([sys.executable, "-c", PROMISES], env=given, capture_output=True, check=True, timeout=60)
    said: dict[str, object] = json.loads(ran.stdout)
    return said


@pytest.fixture(params=["fake", "real"])
def driver(request: pytest.FixtureRequest) -> Driver:
    if request.param == "fake":
        given, most = environment(request.getfixturevalue("fake_cuda"), RATE), 1.001 * RATE
    else:
        need("gpu")
        given, most = dict(os.environ), 1e13
    said = _promises(given)
    text = str(said["uuid"])
    cuts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
    return Driver(given, GpuFacts(GpuUuid(f"GPU-{'-'.join(cuts)}"), 0, "nvidia", "a card"), most)


def test_what_is_asked_of_a_driver_is_answered_as_cuda_h_says(driver: Driver) -> None:
    said = _promises(driver.environment)
    place = str(said.pop("bus"))
    assert f"GPU-{said.pop('uuid')}" == driver.card.uuid.replace("-", "").replace("GPU", "GPU-")
    assert len(place.split(":")) == 3 and place.split(":")[2][2] == "."
    assert said == {
        "before cuInit": 3, "init": 0, "beyond the last card": 101, "without a context": 201, "names": 0, "context": 0,
        "memory": [0, 0], "none of it": 1, "info": 0, "is free": True, "events": [0, 0], "not recorded": 400,
        "copy": 0, "elapsed": 0, "eight times as much takes longer": True, "read": 0, "word": 7, "freed": [0, 0],
        "released": 0,
    }  # fmt: skip


def measured(given: dict[str, str], card: GpuFacts) -> benchmark.Figures:
    """What the child of a test rental says of a card where no OpenCL is."""
    _, asked = program.command(1, "process", (card,))
    nowhere = {"PROOF_LIBRARIES": json.dumps({f"{name}.absent": why for name, why in benchmark.LIBRARIES.items()})}
    own = {"PROOF_CARD": json.dumps([card.uuid, benchmark.address_of(card)])}
    own |= SMALL if "FAKE_CUDA_CARDS" in given else {}
    ran = subprocess.run(
        [sys.executable, "-c", benchmark.PROGRAM], env=given | asked | nowhere | own, capture_output=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    return program.read(ran.stdout).figures[card.uuid]


def test_a_card_is_measured_by_its_driver_where_opencl_is_absent(driver: Driver) -> None:
    found = measured(driver.environment, driver.card)
    assert found.memory is not None and found.memory <= driver.most and found.device and not found.wrong
    assert found.matrix is None and "apt-get install nvidia-opencl-icd" in found.why


@pytest.mark.proves("a card's memory bandwidth is measured through libcuda (a fake one) where OpenCL is absent")
def test_the_rate_is_the_cards_own(fake_cuda: Path) -> None:
    by_place = GpuFacts(GpuUuid("GPU-named-otherwise"), 0, "nvidia", "a card", pci_bus_id="00000000:65:00.0")
    for rate in (0.9e12, 3.3e12):
        found = measured(environment(fake_cuda, rate), by_place)
        assert found.memory == pytest.approx(rate, rel=1e-3)


def test_a_copy_that_does_nothing_is_no_fast_one(fake_cuda: Path) -> None:
    card = GpuFacts(GpuUuid("GPU-0c0de000-0000-4000-8000-000000000002"), 0, "nvidia", "a card")
    found = measured(environment(fake_cuda, RATE, "idle"), card)
    assert found.memory is None and found.wrong == "what it copied is not what was there"


def test_what_the_driver_refuses_is_said_beside_the_packages(fake_cuda: Path) -> None:
    card = GpuFacts(GpuUuid("GPU-0c0de000-0000-4000-8000-000000000001"), 0, "nvidia", "a card")
    found = measured(environment(fake_cuda, RATE, "full"), card)
    assert found.memory is None and found.why.startswith("there is no libOpenCL.so.1.absent (Debian")
    other = measured(environment(fake_cuda, RATE), GpuFacts(GpuUuid("GPU-none"), 0, "nvidia", "a card"))
    assert other.memory is None and other.why


def test_a_rental_counts_cards_and_touches_their_memory_by_the_same_library(fake_cuda: Path) -> None:
    argv, asked = program.command(program.port_of(os.getpid()), "process", ())
    given = environment(fake_cuda, RATE) | asked | SMALL | {"PROOF_TOUCH_BYTES": str(MIB), "PROOF_LIFE_S": "0"}
    ran = subprocess.run(argv, env=given, capture_output=True, timeout=60)
    told = program.read(ran.stdout)
    assert (told.gpus, told.memory_bytes) == (2, 2 * MIB), ran.stderr
