"""Shares by MPS: the owner's text, the parts that a host offers then, and the environment of a program in a part."""

from dataclasses import replace

import pytest

from tests.support.personas import card
from windrow_agent.core.layout import grant_refusal
from windrow_agent.core.sharing import Share, environment, parse_shares, share_of, share_refusal, with_shares
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import ClusterId, GpuUuid, SlotId, WorkloadId
from windrow_proto.model import GpuSlice, Isolation, SlotGrant, WorkloadSpec
from windrow_proto.units import MIB

WHOLE = card()
SHARES = parse_shares(["0=50,25,25"])
(SHARED,) = with_shares((WHOLE,), SHARES)
FIRST, SECOND = (part.uuid for part in SHARED.slices[:2])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0", "1 to 16 parts"),
        ("=50", "1 to 16 parts"),
        ("0=", "is no percentage"),
        ("0=50,", "is no percentage"),
        ("0=0", "is no percentage"),
        ("0=101", "is no percentage"),
        ("0=-5", "is no percentage"),
        ("0=²", "is no percentage"),
        ("0=50,51", "101 %"),
        ("0=" + ",".join(["1"] * 17), "1 to 16 parts"),
    ],
)
def test_a_share_that_is_none_is_refused(text, words):
    with pytest.raises(InvalidInput, match=words):
        parse_shares([text])


def test_a_card_is_shared_once():
    with pytest.raises(InvalidInput, match="twice"):
        parse_shares(["0=50", "0=25"])


def test_a_shared_card_has_its_parts_by_name_and_together_they_are_at_most_the_card():
    assert [(part.profile, part.isolation, part.compute_slices) for part in SHARED.slices] == [
        ("mps.50", Isolation.MPS, 50),
        ("mps.25", Isolation.MPS, 25),
        ("mps.25", Isolation.MPS, 25),
    ]
    assert len({part.uuid for part in SHARED.slices}) == 3
    assert all(part.uuid.startswith(f"MPS-{WHOLE.uuid.removeprefix('GPU-')}") for part in SHARED.slices)
    assert WHOLE.memory_bytes is not None
    assert WHOLE.memory_bytes - 3 * MIB < sum(part.memory_bytes for part in SHARED.slices) <= WHOLE.memory_bytes


@pytest.mark.parametrize(
    "gpu",
    [
        replace(WHOLE, mig_enabled=True),
        replace(WHOLE, memory_bytes=None),
        replace(WHOLE, compute_capability_major=6),
        replace(WHOLE, compute_capability_major=None),
        replace(WHOLE, vendor="amd"),
        card(1),
    ],
)
def test_a_card_that_cannot_be_shared_or_is_not_meant_has_no_parts(gpu):
    assert with_shares((gpu,), SHARES) == (gpu,)


def work(*slots, runtime="process"):
    return WorkloadSpec(WorkloadId("work_1"), ClusterId("cluster_1"), slots, runtime)


def grant(uuid, isolation=Isolation.MPS):
    return SlotGrant(SlotId(uuid), 1, GpuUuid(uuid), isolation)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (work(grant(WHOLE.uuid, Isolation.WHOLE)), "cannot be had as a whole"),
        (work(grant("MPS-other-1")), "no such part"),
        (work(grant(FIRST, Isolation.MIG)), "something better"),
        (work(grant(FIRST, Isolation.WHOLE)), "something better"),
        (work(grant(FIRST), runtime="docker"), "not containers"),
        (work(grant(FIRST), grant(SECOND)), "one part"),
    ],
)
def test_a_grant_that_a_shared_card_cannot_serve_is_refused(spec, words):
    refused = share_refusal(spec, (SHARED, card(1)))
    assert refused is not None
    assert words in refused.detail


def test_a_part_a_whole_card_beside_it_and_processors_are_served():
    spec = work(grant(FIRST), grant(card(1).uuid, Isolation.WHOLE), SlotGrant(SlotId("cpu/0"), 1))
    assert share_refusal(spec, (SHARED, card(1))) is None
    assert grant_refusal(spec.slots, (SHARED, card(1)), "") is None


def test_a_part_is_found_by_its_name():
    assert share_of(SECOND, (card(1), SHARED)) == Share(WHOLE.uuid, 25, SHARED.slices[1].memory_bytes)
    assert share_of("MPS-x", (SHARED,)) is None


def test_a_program_is_told_its_card_its_threads_and_its_memory():
    assert environment(Share(WHOLE.uuid, 25, 20480 * MIB), "/p", "/l") == {
        "CUDA_VISIBLE_DEVICES": WHOLE.uuid,
        "CUDA_MPS_PIPE_DIRECTORY": "/p",
        "CUDA_MPS_LOG_DIRECTORY": "/l",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=20480M",
    }


def test_a_slice_of_mig_beside_them_is_none_of_theirs():
    mig = GpuSlice(GpuUuid("MIG-1"), "1g.10gb", Isolation.MIG, 1, 1)
    cut = replace(WHOLE, mig_enabled=True, slices=(mig,))
    assert with_shares((cut,), SHARES) == (cut,)
