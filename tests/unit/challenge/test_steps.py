"""The messages of a challenge's channel come out of any pieces as they went in, and what is none of them is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.challenge.reference import CHALLENGE
from tests.unit.proto.values import OPENING
from windrow_agent.core.gpu_port import GPU_COUNT_MAX
from windrow_proto.challenge import CARDS_MAX, Answer, Commitment, Failure, Place, Plan, Ready, Selection
from windrow_proto.errors import InvalidInput, TooLarge
from windrow_proto.fill import BLOCK_BYTES, LINES_MAX, PROBES_MAX, Fill, Filled, Probe, Values
from windrow_proto.ids import GpuUuid
from windrow_proto.wire_challenge import HEAD, STEP_BYTES_MAX, StepReader, encode_step, framed

GPU = CHALLENGE.gpu_uuid
STEPS = (
    ("", Plan((GPU, GpuUuid("GPU-2")), 64)),
    (GPU, Ready("a device")),
    (GPU, Ready("another", 80 << 30)),
    (GPU, Failure("no OpenCL here")),
    (GPU, CHALLENGE),
    (GPU, Commitment(CHALLENGE.id, GPU, (bytes(32),))),
    (GPU, Selection(CHALLENGE.id, (Place(1, 2, 3),))),
    (GPU, Answer(CHALLENGE.id, (OPENING,))),
    (GPU, Fill(b"n" * 32, 73_728)),
    (GPU, Filled(73_000)),
    (GPU, Filled(0)),
    (GPU, Probe((0, 2**35 - 1))),
    (GPU, Values(bytes(64))),
    (GPU, Values(b"")),
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


@pytest.mark.parametrize("body", [Probe((0,) * (PROBES_MAX + 1)), Values(bytes(PROBES_MAX * BLOCK_BYTES + 1))])
def test_more_blocks_than_may_be_asked_for_are_refused(body: Probe | Values) -> None:
    with pytest.raises((TooLarge, InvalidInput)):
        StepReader().feed(framed(GPU, body))


@pytest.mark.parametrize(("nonce", "lines"), [(b"n" * 32, 0), (b"n" * 32, LINES_MAX + 1), (b"n", 1)])
def test_a_fill_has_a_whole_nonce_and_from_one_line_to_a_tebibyte(nonce: bytes, lines: int) -> None:
    with pytest.raises(InvalidInput):
        Fill(nonce, lines)
