"""A host's claims of its cards are held against each other and the model table: lies are named, the honest are not."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.personas import HONEST, LIARS, card, host
from windrow_master.fleet.claims.consistency import FINDINGS_PER_GPU_MAX, RULES, check
from windrow_master.fleet.gpus import BY_PCI, MODELS
from windrow_proto.conditions import ConditionCode
from windrow_proto.model import GpuFacts, GpuSlice, Inventory
from windrow_proto.wire_host import decode_inventory, encode_inventory

H100 = BY_PCI[0x233010DE]


def told(inventory):
    """The codes with the cards they name."""
    return {(finding.code, finding.subject) for finding in check(inventory)}


def test_there_are_enough_of_both():
    assert len(HONEST) >= 50
    assert len(LIARS) >= 20


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_host_is_not_flagged(name):
    assert check(HONEST[name]) == ()


@pytest.mark.parametrize("name", LIARS)
def test_a_host_that_lies_is_flagged_for_its_lie_and_its_neighbours_are_not(name):
    liar = LIARS[name]
    subjects = {str(liar.inventory.gpus[n].uuid) for n in liar.cards} or {""}
    assert told(liar.inventory) == {(liar.code, subject) for subject in subjects}


@pytest.mark.parametrize("name", LIARS)
def test_the_same_is_found_in_what_came_over_the_wire(name):
    inventory = LIARS[name].inventory
    assert check(decode_inventory(encode_inventory(inventory))) == check(inventory)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_no_rule_can_be_taken_out_unseen(rule):
    others = [other for other in RULES if other is not rule]
    caught_by_it = [liar for liar in LIARS.values() if liar.code == rule.code]
    assert caught_by_it
    assert all(not check(liar.inventory, others) for liar in caught_by_it)


def test_each_code_of_the_table_has_one_rule():
    of_one_host = [code for code in ConditionCode if code.startswith("claim.") and not code.endswith("_shared")]
    assert sorted(rule.code for rule in RULES) == sorted(of_one_host)


@pytest.mark.parametrize("name", LIARS)
def test_the_words_of_a_finding_fit_in_a_line(name):
    assert all(0 < len(finding.words) <= 300 for finding in check(LIARS[name].inventory))


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("an H100 with the memory of a 4090", ("24,564 MiB", "73,728 MiB", "86,016 MiB", H100.name)),
        ("a 4090 that claims to be an H100", ("NVIDIA H100 80GB HBM3", "GeForce RTX 4090", "0x268410de")),
        ("an H100 that computes as a 4090", ("8.0", "9.0")),
        ("a power limit above the highest", ("900 W", "700 W")),
        ("an H100 with the bus of a 4090", ("251 GB/s", "3350")),
        ("eight H100, one with less memory", ("80896 MiB", "81559")),
        ("one serial number twice", ("1650000000000", "2 cards")),
    ],
)
def test_a_finding_names_both_figures(name, figures):
    (first, *_) = check(LIARS[name].inventory)
    assert all(figure in first.words for figure in figures), first.words


def test_what_is_absent_is_compared_with_nothing():
    silent = GpuFacts(card().uuid, 0, "nvidia", "", pci_device_id=0x233010DE)
    assert check(host(silent)) == ()
    assert check(host(replace(silent, pci_device_id=0))) == ()


def test_a_model_whose_power_nobody_has_read_may_have_any():
    unread = next(model for model in MODELS if model.power_w is None and model.vendor == "nvidia")
    silent = GpuFacts(card().uuid, 0, "nvidia", unread.name, pci_device_id=unread.pci.value[0] << 16 | 0x10DE)
    assert check(host(replace(silent, power_limit_max_mw=7_000_000))) == ()


def test_a_host_full_of_lies_has_few_findings():
    worst = card(
        memory_bytes=1, power_limit_mw=10**9, pcie_width_max=3, clock_sm_max_mhz=1, core_count=1, name="H100 PCIe"
    )
    assert len(check(host(worst))) == FINDINGS_PER_GPU_MAX


TEXT = st.text(max_size=12) | st.sampled_from(["nvidia", "NVIDIA H100 80GB HBM3", "0000:18:00.0", "GPU-1", "580.95.05"])
NUMBER = st.integers(-1, 1 << 64) | st.sampled_from([0, 1, 9, 0x233010DE, 0x268410DE, 81559 << 20])
ANY = {"str": TEXT, "GpuUuid": TEXT, "int": NUMBER, "int | None": st.none() | NUMBER, "str | None": st.none() | TEXT}
MORE = st.dictionaries(TEXT, NUMBER | TEXT, max_size=3)
SIZES = st.integers(0, (1 << 32) - 1)
PARTS = st.builds(GpuSlice, uuid=TEXT, profile=TEXT, memory_bytes=SIZES, compute_slices=SIZES)
MANY = {"tuple": st.just(()), "tuple[GpuSlice, ...]": st.lists(PARTS, max_size=3).map(tuple)}
KINDS = {**ANY, **MANY, "bool | None": st.none() | st.booleans(), "Mapping": MORE, "Mapping[str, int | str]": MORE}


def kind_of(field):
    whole = str(field.type).replace("windrow_proto.model.", "")
    return KINDS[whole if whole in KINDS else getattr(field.type, "__name__", whole)]


CARDS = st.builds(GpuFacts, **{field.name: kind_of(field) for field in fields(GpuFacts)})


@given(st.builds(Inventory, driver_version=TEXT, gpus=st.lists(CARDS, max_size=4).map(tuple)))
def test_no_facts_make_it_fail(inventory):
    for finding in check(inventory):
        assert finding.code.startswith("claim.")
        assert finding.subject in {"", *(gpu.uuid for gpu in inventory.gpus)}
