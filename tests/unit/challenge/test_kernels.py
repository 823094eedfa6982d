"""The prover's own kernels, on a processor: the same as numpy for several sizes, and believed by the Master."""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.services import need
from tests.unit.challenge.reference import CHALLENGE, prove
from windrow_agent.challenge import memory as memories
from windrow_agent.challenge import prover as proving
from windrow_agent.challenge.memory import Memory
from windrow_agent.challenge.opencl import ComputeFailed, Device, OpenCl, Session
from windrow_agent.challenge.prover import Prover, choose, open_session
from windrow_agent.challenge.prover_pool import Outcome, ProverPool
from windrow_master.verification.draw import draw
from windrow_master.verification.judge import Answered, Committed, Phase, Trial, step
from windrow_proto.challenge import Challenge, Place, Selection
from windrow_proto.clock import SystemClock
from windrow_proto.fill import LINE_BLOCKS, Fill, Filled, Probe, block
from windrow_proto.ids import GpuUuid
from windrow_proto.units import GIB

CPU = GpuUuid("CPU-0")


@pytest.fixture(scope="module")
def pocl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """PoCL, with its cache of compiled kernels where it is deleted."""
    need("opencl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POCL_CACHE_DIR", str(tmp_path_factory.mktemp("pocl")))
        patch.setenv("POCL_DEVICES", "pthread pthread")  # two devices of one processor
        yield


@pytest.fixture(scope="module")
def opencl(pocl: None) -> OpenCl:
    return OpenCl()


@pytest.fixture(scope="module")
def device(opencl: OpenCl) -> Device:
    return choose(opencl, CPU)


@pytest.fixture(scope="module")
def session(opencl: OpenCl, device: Device) -> Iterator[Session]:
    with open_session(opencl, device) as opened:
        yield opened


def asked(size: int, rounds: int = 2) -> Challenge:
    return replace(CHALLENGE, gpu_uuid=CPU, size=size, rounds=rounds)


@pytest.mark.proves("the challenge's OpenCL kernels give the products and hashes of numpy")
@pytest.mark.parametrize("size", [64, 128, 256, 512])
def test_the_kernels_commit_to_and_open_what_numpy_does(size: int, session: Session, device: Device) -> None:
    challenge = asked(size)
    places = (Place(1, 3, size - 1), Place(0, size - 1, 5), Place(1, 3, size - 1), Place(0, 0, 0))
    selection = Selection(challenge.id, places)
    reference = prove(challenge)
    prover = Prover(session, device, size)

    assert prover.commit(challenge) == reference.commitment
    assert prover.answer(challenge, selection) == reference.answer(challenge, selection)


def test_several_slabs_are_one_product(session: Session, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "SLAB_ROWS", 64)
    challenge = asked(256, 1)
    every_row = Selection(challenge.id, tuple(Place(0, row, row) for row in range(0, 256, 2)))
    reference = prove(challenge)
    prover = Prover(session, device, 256)

    assert prover.commit(challenge) == reference.commitment
    assert prover.answer(challenge, every_row) == reference.answer(challenge, every_row)


def test_a_prover_refuses_what_it_was_not_prepared_for(session: Session, device: Device) -> None:
    prover = Prover(session, device, 64)
    challenge = asked(64)
    before: list[Callable[[], object]] = [
        lambda: prover.commit(asked(128)),
        lambda: prover.commit(replace(challenge, gpu_uuid=GpuUuid("GPU-1"))),
        lambda: prover.answer(challenge, Selection(challenge.id, ())),
        lambda: prover.answer(challenge, Selection(bytes(32), ())),
        lambda: prover.answer(challenge, Selection(challenge.id, (Place(0, 64, 0),))),
        lambda: Prover(session, replace(device, memory_bytes=1 << 20), 512),
    ]

    for refused in before:
        with pytest.raises(ComputeFailed):
            refused()


def test_a_kernel_that_does_not_compile_says_why(opencl: OpenCl, device: Device) -> None:
    with pytest.raises(ComputeFailed, match="clBuildProgram failed"):
        Session(opencl, device, "__kernel void broken(")


def test_calls_that_fail_say_which_and_how(session: Session) -> None:
    with pytest.raises(ComputeFailed, match=r"clCreateKernel failed \(-46\)"):
        session.kernel("absent")
    with pytest.raises(ComputeFailed, match="clSetKernelArg failed"):
        session.run(session.kernel("leaves"), (1,), (ctypes.c_uint32(1),), None)


def test_a_device_that_is_not_there_is_said_so(opencl: OpenCl) -> None:
    with pytest.raises(ComputeFailed, match="No OpenCL device here is GPU-absent"):
        choose(opencl, "GPU-absent")


@pytest.mark.parametrize("library", ["libabsent.so.1", "libc.so.6"])
def test_a_library_that_is_absent_or_something_else_is_said_so(library: str) -> None:
    with pytest.raises(ComputeFailed):
        OpenCl(library)


@pytest.mark.proves("two devices of a host answer a challenge at once, each in its own process")
async def test_two_devices_are_challenged_at_once_and_believed(pocl: None) -> None:
    challenges = {uuid: replace(asked(128), gpu_uuid=uuid) for uuid in (CPU, GpuUuid("CPU-1"))}
    trials = {uuid: Trial(challenge, 0) for uuid, challenge in challenges.items()}

    async with ProverPool(list(challenges), 128, SystemClock()) as pool:
        commitments = await pool.commit(challenges)
        for one in commitments:
            assert one.value is not None, one.failure
            trials[one.gpu_uuid], _ = step(trials[one.gpu_uuid], Committed(one.value, 1, bytes(32)))
        answers = await pool.answer({uuid: draw(one, bytes(32)) for uuid, one in challenges.items()})

    for answer in answers:
        assert answer.value is not None, answer.failure
        judged, _ = step(trials[answer.gpu_uuid], Answered(answer.value, 2))
        assert (judged.phase, judged.reasons) == (Phase.PASSED, ())


async def test_one_card_that_is_absent_costs_itself_only(pocl: None) -> None:
    here, gone = asked(64), replace(asked(64), gpu_uuid=GpuUuid("GPU-gone"))

    async with ProverPool([gone.gpu_uuid, CPU], 64, SystemClock()) as pool:
        failed, done = await pool.commit({here.gpu_uuid: here, gone.gpu_uuid: gone})

    assert failed == Outcome(gone.gpu_uuid, None, "No OpenCL device here is GPU-gone.", failed.span_ns)
    assert done.value == prove(here).commitment


@pytest.mark.proves("the prover fills memory with what the definition says is there")
def test_memory_holds_what_was_written_whatever_the_chunks(
    opencl: OpenCl, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories, "CHUNK_LINES", 2)
    fill = Fill(b"m" * 32, 5)
    numbers = (0, LINE_BLOCKS - 1, 2 * LINE_BLOCKS, 3 * LINE_BLOCKS + 7, 5 * LINE_BLOCKS - 1)
    with open_session(opencl, device) as opened:
        memory = Memory(opened)
        assert memory.fill(fill, CHALLENGE.id) == Filled(5)
        key = fill.key(CHALLENGE.id)
        assert memory.values(Probe(numbers)).values == b"".join(block(key, number) for number in numbers)
        with pytest.raises(ComputeFailed, match="not written"):
            memory.values(Probe((5 * LINE_BLOCKS,)))


def test_filling_ends_where_time_does_and_says_how_far_it_came(
    opencl: OpenCl, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories, "CHUNK_LINES", 1)
    moments = iter([0.0, 1.0, 2.0, memories.FILL_S])
    with open_session(opencl, device) as opened:
        assert Memory(opened, lambda: next(moments)).fill(Fill(b"m" * 32, 8), CHALLENGE.id) == Filled(2)


def test_only_a_processor_of_tests_is_filled_where_memory_is_the_hosts() -> None:
    apart = Device(1, "a card", "GPU-1", GIB, is_processor=False)
    assert apart.fill_bytes == GIB
    assert replace(apart, is_unified=True).fill_bytes == 0
    assert replace(apart, is_unified=True, is_processor=True).fill_bytes == GIB
