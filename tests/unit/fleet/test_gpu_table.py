"""Every figure of the model table is plausible, names the document it was read in, and agrees with what is at hand."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from windrow_master.fleet import gpu_table
from windrow_master.fleet.gpu_table import MODELS, GpuModel, Read, Source

PCI_IDS = Path("/usr/share/misc/pci.ids")
NOT_IN_PCI_IDS = {"hbm3"}
"""Words of a model's name in the driver that the PCI ID Repository does not use."""

each_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)


def figures(model: GpuModel) -> list[Read]:
    found = [model.pci, model.memory_gib, model.bandwidth_gb_s, model.capability, *model.reported_mib]
    return [figure for figure in found if figure is not None]


def listed_names() -> dict[int, str]:
    """Names by device << 16 | vendor, of all devices that this machine's copy of pci.ids lists."""
    names, vendor = {}, 0
    for line in PCI_IDS.read_text(encoding="utf-8", errors="replace").splitlines():
        if match := re.match(r"([0-9a-f]{4})  ", line):
            vendor = int(match[1], 16)
        elif match := re.match(r"\t([0-9a-f]{4})  (.+)", line):
            names[int(match[1], 16) << 16 | vendor] = match[2]
        elif line.startswith("C "):
            break
    return names


def words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", name.lower()))


def test_no_pci_id_names_two_models():
    ids = [(model.vendor, device) for model in MODELS for device in model.pci.value]
    assert len(ids) == len(set(ids)) == len(gpu_table.BY_PCI)


def test_no_name_stands_twice():
    assert len({model.name for model in MODELS}) == len(MODELS)


@each_model
def test_every_figure_names_the_document_it_was_read_in(model):
    for figure in figures(model):
        assert isinstance(figure.source, Source)
        assert len(figure.source) >= 10
        assert figure.source == figure.source.strip()


def test_no_document_is_listed_that_gave_no_figure():
    assert set(Source) == {figure.source for model in MODELS for figure in figures(model)}


@each_model
def test_every_figure_is_in_a_plausible_range(model):
    assert model.pci.value
    assert all(0 < device <= 0xFFFF for device in model.pci.value)
    assert 8 <= model.memory_gib.value <= 288
    if model.bandwidth_gb_s is not None:
        assert 250 <= model.bandwidth_gb_s.value <= 8000
    if model.capability is not None:
        assert (6, 0) <= model.capability.value <= (12, 1)
    assert all(8000 <= reading.value <= 300_000 for reading in model.reported_mib)


@each_model
def test_what_drivers_were_seen_to_report_lies_within_the_models_window(model):
    low, high = model.memory_window_bytes
    assert low < model.memory_gib.value << 30 < high
    assert all(low <= reading.value << 20 <= high for reading in model.reported_mib)


def test_the_window_tells_the_sizes_of_one_family_apart():
    sizes = sorted({model.memory_gib.value for model in MODELS})
    for smaller, larger in pairwise(sizes):
        assert smaller * gpu_table.MEMORY_HIGH_PERCENT < larger * 100


@each_model
def test_only_cards_of_cuda_have_a_capability(model):
    assert (model.capability is not None) == (model.vendor == "nvidia")


@each_model
def test_what_was_read_nowhere_is_none_and_named(model):
    assert ("bandwidth_gb_s" in model.unread) == (model.bandwidth_gb_s is None)
    assert ("reported_mib" in model.unread) == (not model.reported_mib)
    assert "capability" not in model.unread


@each_model
def test_a_card_is_found_by_its_id_under_its_maker(model):
    ids = [number for number, found in gpu_table.BY_PCI.items() if found is model]
    assert len(ids) == len(model.pci.value)
    assert all(gpu_table.find(number) is model for number in ids)
    assert {gpu_table.vendor_of(number) for number in ids} == {model.vendor}


def test_a_foreign_id_is_nobodys():
    assert gpu_table.find(0xFFFF10DE) is None
    assert gpu_table.vendor_of(0x12345678) is None


def test_cards_of_one_class_can_stand_in_for_one_another():
    for model in MODELS:
        peers = [each for each in MODELS if each.model_class == model.model_class]
        assert {each.memory_gib.value for each in peers} == {model.memory_gib.value}
        assert {each.capability and each.capability.value for each in peers} == {
            model.capability and model.capability.value
        }


@pytest.mark.skipif(not PCI_IDS.exists(), reason=f"{PCI_IDS} is not on this machine (Debian: apt install pci.ids)")
def test_the_pci_id_repository_lists_every_id_under_its_models_name():
    listed = listed_names()
    assert len(listed) > 10_000
    for number, model in gpu_table.BY_PCI.items():
        name = listed.get(number)
        if name is None:  # a card younger than this copy of the file must come from elsewhere
            assert model.pci.source is not Source.PCI_IDS, f"{number:#010x} {model.name}"
        else:
            assert words(model.name) - NOT_IN_PCI_IDS <= words(name), f"{number:#010x} {model.name}: {name}"
