"""The messages of a challenge's channel come out of any pieces as they went in, and what is none of them is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.challenge.reference import CHALLENGE
from tests.unit.proto.values import OPENING
from windrow_agent.gpu.port import GPU_COUNT_MAX
from windrow_proto.challenge import CARDS_MAX, Answer, Commitment, Failure, Place, Plan, Ready, Selection
from windrow_proto.errors import InvalidInput, TooLarge
from windrow_proto.ids import GpuUuid
from windrow_proto.wire_challenge import HEAD, STEP_BYTES_MAX, StepReader, encode_step, framed

GPU = CHALLENGE.gpu_uuid
STEPS = (
    ("", Plan((GPU, GpuUuid("GPU-2")), 64)),
    (GPU, Ready("a device")),
    (GPU, Failure("no OpenCL here")),
    (GPU, CHALLENGE),
    (GPU, Commitment(CHALLENGE.id, GPU, (bytes(32),))),
    (GPU, Selection(CHALLENGE.id, (Place(1, 2, 3),))),
    (GPU, Answer(CHALLENGE.id, (OPENING,))),
)


@given(st.integers(1, 400))
def test_steps_come_out_of_pieces_of_any_size_as_they_went_in(size: int) -> None:
    data = b"".join(framed(uuid, step) for uuid, step in STEPS)
    reader = StepReader()
    found = [step for at in range(0, len(data), size) for step in reader.feed(data[at : at + size])]
    assert tuple(found) == STEPS


def test_a_length_over_the_limit_is_refused_before_anything_is_kept() -> None:
    with pytest.raises(TooLarge):
        StepReader().feed(HEAD.pack(STEP_BYTES_MAX + 1))


@pytest.mark.parametrize("body", [b"", b"\xff", encode_step(GPU, Ready("x"))[:-1]])
def test_what_is_no_step_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        StepReader().feed(HEAD.pack(len(body)) + body)


@pytest.mark.parametrize("uuids", [(), ("GPU-1", "GPU-1"), ("",), tuple(f"GPU-{n}" for n in range(CARDS_MAX + 1))])
def test_a_plan_names_from_one_to_64_different_cards(uuids: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput):
        Plan(tuple(GpuUuid(uuid) for uuid in uuids), 64)


def test_a_plan_may_hold_all_cards_that_an_agent_lists() -> None:
    assert CARDS_MAX == GPU_COUNT_MAX
