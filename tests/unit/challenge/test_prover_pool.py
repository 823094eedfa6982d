"""The agent's side of the provers' processes: whatever a child does, its card alone fails, in time, and it is gone."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.challenge.reference import CHALLENGE
from windrow_agent.challenge import prover_pool
from windrow_agent.challenge.prover_pool import ProverPool
from windrow_agent.challenge.records import BODY_BYTES_MAX, FAILED, HEAD, read_head, record
from windrow_agent.core.gpu_port import GPU_COUNT_MAX
from windrow_proto.clock import SystemClock
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import GpuUuid

READY = (
    "import sys, time, os\nsay = sys.stdout.buffer.write\nsay(bytes.fromhex('0000000101') + b'x')\nsys.stdout.flush()\n"
)

CHILDREN = {
    "ends": ("", "ended before"),
    "ends when ready": (READY, "ended before"),
    "says garbage": ("print('nonsense' * 100, flush=True)", "record of"),
    "says too much": (READY + "say(bytes.fromhex('ffffffff01')); sys.stdout.flush(); time.sleep(600)", "record of"),
    "stops in the middle": (READY + "say(bytes.fromhex('0000000901') + b'half'); sys.stdout.flush()", "ended before"),
    "answers something else": (READY + "say(bytes.fromhex('0000000201') + b'no'); sys.stdout.flush()", "not a"),
    "fails": ("import sys; sys.stdout.buffer.write(bytes.fromhex('0000000400') + b'\\x1bno!')", "\ufffdno!"),
}


def pool(code: str, *uuids: str) -> ProverPool:
    """A pool whose children run this instead of a prover."""
    return ProverPool([GpuUuid(uuid) for uuid in uuids], 64, SystemClock(), (sys.executable, "-c", code))


SILENT = {
    "hangs": ("import time; time.sleep(600)", "START_S", "within 0.5 s"),
    "hangs when ready": (READY + "time.sleep(600)", "COMMIT_S", "within 0.5 s"),
    "closes its stdin": (READY + "os.close(0); time.sleep(600)", "COMMIT_S", ""),
}
"""And the deadline that ends each: the other ones are as shipped, since a busy machine takes seconds to start one."""


@pytest.mark.parametrize(("code", "failure"), CHILDREN.values(), ids=CHILDREN)
async def test_a_child_that_fails_is_an_outcome_and_is_gone(code: str, failure: str) -> None:
    await _fails(code, failure)


@pytest.mark.parametrize(("code", "deadline", "failure"), SILENT.values(), ids=SILENT)
async def test_a_child_that_is_silent_is_an_outcome_at_its_deadline_and_is_gone(
    code: str, deadline: str, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prover_pool, deadline, 0.5)
    await _fails(code, failure)


async def _fails(code: str, failure: str) -> None:
    async with pool(code, CHALLENGE.gpu_uuid) as one:
        (outcome,) = await one.commit({CHALLENGE.gpu_uuid: CHALLENGE})
        child = one._cards[0]._child

    assert outcome.value is None
    assert failure in outcome.failure
    assert child is not None
    assert child.returncode is not None


async def test_no_child_outlives_its_crew_also_when_the_work_is_broken_off() -> None:
    with pytest.raises(RuntimeError, match="broken off"):
        async with pool(READY + "time.sleep(600)", "GPU-1", "GPU-2") as both:
            children = [card._child for card in both._cards]
            raise RuntimeError("broken off")

    for child in children:
        assert child is not None
        with pytest.raises(ProcessLookupError):
            os.kill(child.pid, 0)


async def test_a_program_that_cannot_start_is_an_outcome() -> None:
    async with ProverPool([CHALLENGE.gpu_uuid], 64, SystemClock(), ("/absent/program",)) as one:
        (outcome,) = await one.commit({CHALLENGE.gpu_uuid: CHALLENGE})

    assert "No such file" in outcome.failure


async def test_a_card_of_which_nothing_was_asked_is_out() -> None:
    other = replace(CHALLENGE, gpu_uuid=GpuUuid("GPU-2"))

    async with pool(READY + "time.sleep(600)", CHALLENGE.gpu_uuid) as one:
        (outcome,) = await one.commit({other.gpu_uuid: other})

    assert outcome.failure == "Nothing was asked of this card."


@pytest.mark.parametrize("uuids", [[], ["GPU-1", "GPU-1"], [f"GPU-{n}" for n in range(GPU_COUNT_MAX + 1)]])
def test_no_cards_one_card_twice_or_too_many_are_refused(uuids: list[str]) -> None:
    with pytest.raises(InvalidInput):
        pool("", *uuids)


@given(st.binary(max_size=200), st.booleans())
def test_a_record_says_how_long_it_is_and_whether_it_is_an_answer(body: bytes, is_done: bool) -> None:
    made = record(body) if is_done else record(body, FAILED)

    assert read_head(made[: HEAD.size]) == (len(body), is_done)


@given(st.binary(min_size=HEAD.size, max_size=HEAD.size))
def test_a_head_that_promises_too_much_is_refused(head: bytes) -> None:
    try:
        size, _ = read_head(head)
    except InvalidInput:
        return
    assert size <= BODY_BYTES_MAX


CHILD = """
import os, sys
from windrow_agent.challenge import child
from windrow_agent.challenge.opencl import ComputeFailed
def serve(gpu, size, asked, told):
    os.write(1, b"a driver that prints")
    child._tell(told, f"{gpu} {size}".encode())
    raise ComputeFailed("broken") if asked.read() else EOFError
child.serve = serve
sys.argv = ["child", "--gpu", "GPU-1", "--size", "64"]
sys.exit(child.main())
"""


@pytest.mark.parametrize(
    ("asked", "told", "status"),
    [(b"", record(b"GPU-1 64"), 0), (b"x", record(b"GPU-1 64") + record(b"broken", FAILED), 1)],
    ids=["nothing more is asked", "the work fails"],
)
def test_a_child_says_its_records_and_nothing_that_a_driver_prints(asked: bytes, told: bytes, status: int) -> None:
    done = subprocess.run([sys.executable, "-c", CHILD], input=asked, capture_output=True, timeout=60, check=False)

    assert (done.stdout, done.returncode) == (told, status)
    assert done.stderr == b"a driver that prints"
