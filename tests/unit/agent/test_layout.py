"""Layouts that an owner may write, and partitions that the Master cannot have made against them."""

from dataclasses import replace

import pytest

from tests.support.personas import card, geforce
from windrow_agent.core.layout import cut_refusal, grant_refusal, layout_of, parse_layouts, with_layouts
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import GpuUuid, SlotId
from windrow_proto.model import GpuSlice, Isolation, PartitionSpec, SlotGrant

PART = GpuSlice(GpuUuid("MIG-1"), "3g.40gb", Isolation.MIG, 40448 << 20, 3)
WHOLE, CUT = card(), replace(card(), mig_enabled=True, slices=(PART,))
LAYOUTS = parse_layouts(["0=3g.40gb,2g.20gb,2g.20gb"])


@pytest.mark.parametrize(
    "text", ["0", "=1g.10gb", "0=", "0=1g.10gb,", "0=8gb", "0=0g.10gb", "0=" + ",".join(["1g.10gb"] * 8), "0=1g.10gb;x"]
)
def test_a_layout_that_is_none_is_refused(text):
    with pytest.raises(InvalidInput, match="is not a layout"):
        parse_layouts([text])


def test_a_card_is_named_once():
    with pytest.raises(InvalidInput, match="twice"):
        parse_layouts(["0=1g.10gb", "0=2g.20gb"])


def test_a_cards_own_layout_counts_before_its_index_and_before_all():
    layouts = parse_layouts(["all=1g.10gb", "0=2g.20gb", f"{card(1).uuid}=3g.40gb,1g.10gb+me"])
    assert [gpu.layout for gpu in with_layouts((card(0), card(1), card(2)), layouts)] == [
        ("2g.20gb",),
        ("3g.40gb", "1g.10gb+me"),
        ("1g.10gb",),
    ]


def test_without_a_word_of_the_owner_a_card_stays_whole_and_one_without_mig_in_any_case():
    assert layout_of(card(), {}) == ()
    assert layout_of(geforce(mig_enabled=None), parse_layouts(["all=1g.10gb"])) == ()


@pytest.mark.parametrize(
    ("spec", "layouts", "held", "words"),
    [
        (PartitionSpec(GpuUuid("GPU-x"), ("3g.40gb",)), LAYOUTS, (), "no GPU GPU-x"),
        (PartitionSpec(WHOLE.uuid, ("3g.40gb",)), {}, (), "has allowed no layout"),
        (PartitionSpec(WHOLE.uuid), {}, (), "has allowed no layout"),
        (PartitionSpec(WHOLE.uuid, ("7g.80gb",)), LAYOUTS, (), "and no other"),
        (PartitionSpec(WHOLE.uuid, LAYOUTS["0"]), LAYOUTS, (WHOLE.uuid,), "in use"),
        (PartitionSpec(WHOLE.uuid), LAYOUTS, ("MIG-1",), "in use: MIG-1"),
    ],
)
def test_a_card_is_cut_only_as_its_owner_allows_and_only_while_nobody_uses_it(spec, layouts, held, words):
    refused = cut_refusal(spec, (CUT,), layouts, held)
    assert refused is not None
    assert words in refused.detail


def test_the_owners_own_layout_and_the_whole_card_may_be_asked_for():
    for profiles in (LAYOUTS["0"], ()):
        assert cut_refusal(PartitionSpec(WHOLE.uuid, profiles), (WHOLE,), LAYOUTS, ("GPU-other",)) is None


def grant(uuid, isolation):
    return (SlotGrant(SlotId(uuid), 1, GpuUuid(uuid), isolation),)


@pytest.mark.parametrize(
    ("slots", "gpus", "cutting", "words"),
    [
        (grant(WHOLE.uuid, Isolation.WHOLE), (WHOLE,), WHOLE.uuid, "being cut"),
        (grant("MIG-1", Isolation.MIG), (CUT,), CUT.uuid, "being cut"),
        (grant(CUT.uuid, Isolation.WHOLE), (CUT,), "", "cannot be had as a whole"),
        (grant("MIG-2", Isolation.MIG), (CUT,), "", "no such slice"),
        (grant("MIG-1", Isolation.WHOLE), (CUT,), "", "of another isolation"),
    ],
)
def test_a_grant_that_the_cards_cannot_serve_is_refused(slots, gpus, cutting, words):
    refused = grant_refusal(slots, gpus, cutting)
    assert refused is not None
    assert words in refused.detail


def test_a_slice_a_whole_card_and_a_share_of_the_processors_are_served():
    slots = grant("MIG-1", Isolation.MIG) + grant(card(1).uuid, Isolation.WHOLE) + (SlotGrant(SlotId("cpu/0"), 1),)
    assert grant_refusal(slots, (CUT, card(1)), "") is None
