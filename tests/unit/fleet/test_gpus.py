"""Every figure of the model table is plausible, names the document it was read in, and agrees with what is at hand."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from windrow_master.fleet import gpus
from windrow_master.fleet.gpus import MODELS, SHEETS, GpuModel, Read, Segment, Source
from windrow_master.fleet.gpus.drawings import page
from windrow_master.fleet.gpus.row import COLUMNS, parse

PCI_IDS = Path("/usr/share/misc/pci.ids")
PAGE = Path(__file__).parents[3] / "docs" / "gpu-models.md"
NOT_IN_PCI_IDS = {"hbm3"}
"""Words of a model's name in the driver that the PCI ID Repository does not use."""


def figures(model: GpuModel) -> list[Read]:
    found = [
        model.pci,
        model.memory_gib,
        model.capability,
        model.power_w,
        model.power_range_w,
        model.bandwidth_gb_s,
        model.pcie,
        *model.reported_mib,
    ]
    return [figure for figure in found if figure is not None]


def listed_names(text: str) -> dict[int, str]:
    """Names by device << 16 | vendor, of all devices that a copy of pci.ids lists."""
    names, vendor = {}, 0
    for line in text.splitlines():
        if match := re.match(r"([0-9a-f]{4})  ", line):
            vendor = int(match[1], 16)
        elif match := re.match(r"\t([0-9a-f]{4})  (.+)", line):
            names[int(match[1], 16) << 16 | vendor] = match[2]
        elif line.startswith("C "):
            break
    return names


def words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", name.lower()))


def test_the_table_holds_cards_of_three_makers_for_all_who_buy_them():
    assert len(MODELS) >= 100
    assert {(model.vendor, model.segment) for model in MODELS} == {
        (vendor, segment) for vendor in ("nvidia", "amd", "intel") for segment in Segment
    }


def test_cards_that_share_a_pci_id_are_told_apart_by_their_memory():
    for number in gpus.BY_PCI:
        sharing = [
            model for model in MODELS if number >> 16 in model.pci.value and gpus.vendor_of(number) == model.vendor
        ]
        windows = sorted(model.memory_window_bytes for model in sharing)
        assert all(low[1] < high[0] for low, high in pairwise(windows)), [model.name for model in sharing]
        assert gpus.BY_PCI[number] is sharing[0]
        assert all(gpus.find(number, model.memory_gib.value << 30) is model for model in sharing)
        assert gpus.find(number, 1) is gpus.find(number) is sharing[0]


def test_no_name_stands_twice_with_one_memory_size():
    assert len({(model.name, model.memory_gib.value) for model in MODELS}) == len(MODELS)


def test_every_figure_names_the_document_it_was_read_in():
    for model in MODELS:
        assert model.sources == {figure.source for figure in figures(model)}
        for source in model.sources:
            assert isinstance(source, Source)
            assert len(source) >= 10
            assert source == source.strip()


def test_no_document_is_listed_that_gave_no_figure():
    assert set(Source) == {source for model in MODELS for source in model.sources}


def test_a_row_says_whether_its_makers_own_sheet_was_read():
    for model in MODELS:
        assert model.sheet_read == any(figure.source in SHEETS for figure in figures(model))


def test_every_figure_is_in_a_plausible_range():
    for model in MODELS:
        assert model.pci.value
        assert all(0 < device <= 0xFFFF for device in model.pci.value)
        assert 6 <= model.memory_gib.value <= 288
        assert all(5000 <= reading.value <= 300_000 for reading in model.reported_mib)
        assert model.bandwidth_gb_s is None or 180 <= model.bandwidth_gb_s.value <= 8000
        assert model.capability is None or (6, 0) <= model.capability.value <= (12, 1)
        assert model.power_w is None or 50 <= model.power_w.value <= 1400
        assert model.pcie is None or (model.pcie.value[0] in {3, 4, 5} and model.pcie.value[1] in {8, 16})


def test_the_default_power_lies_in_what_may_be_set():
    for model in MODELS:
        low, high = model.power_range_w.value if model.power_range_w is not None else (0, 10_000)
        assert low < high
        assert model.power_w is None or low <= model.power_w.value <= high


def test_what_drivers_were_seen_to_report_lies_within_the_models_window():
    for model in MODELS:
        low, high = model.memory_window_bytes
        assert low < model.memory_gib.value << 30 < high
        assert all(low <= reading.value << 20 <= high for reading in model.reported_mib)


def test_only_cards_of_cuda_have_a_capability():
    for model in MODELS:
        assert model.capability is None or model.vendor == "nvidia"


def test_what_was_read_nowhere_is_none_and_named():
    for model in MODELS:
        for name in ("bandwidth_gb_s", "power_w", "power_range_w", "pcie"):
            assert (name in model.unread) == (getattr(model, name) is None)
        assert ("reported_mib" in model.unread) == (not model.reported_mib)
        assert ("capability" in model.unread) == (model.vendor == "nvidia" and model.capability is None)


def test_a_card_is_found_by_its_id_under_its_maker():
    for model in MODELS:
        numbers = [number for number in gpus.BY_PCI if gpus.find(number, model.memory_gib.value << 30) is model]
        assert sorted(number >> 16 for number in numbers) == sorted(model.pci.value)
        assert {gpus.vendor_of(number) for number in numbers} == {model.vendor}


def test_a_foreign_id_is_nobodys():
    assert gpus.find(0xFFFF10DE) is None
    assert gpus.find(0xFFFF10DE, 80 << 30) is None
    assert gpus.vendor_of(0x12345678) is None


def test_cards_of_one_class_can_stand_in_for_one_another():
    for model in MODELS:
        peers = [each for each in MODELS if each.model_class == model.model_class]
        assert {each.memory_gib.value for each in peers} == {model.memory_gib.value}
        assert len({each.vendor for each in peers}) == 1
        assert len({each.capability.value for each in peers if each.capability is not None}) <= 1


@pytest.mark.parametrize(
    "row",
    [
        "2335 NVDR|h200|141 SHTS|||||",
        "2335 NVDR|h200|141 NOBODY||||||H200",
        "2335|h200|141 SHTS||||||H200",
        "|h200|141 SHTS||||||H200",
        "2335 NVDR|h200|||||||H200",
        "2335 NVDR|h200|141 SHTS||9 CUDA||||H200",
        "2335 NVDR|h200|141 SHTS|||700 [200 NVML|||H200",
        "2335 NVDR|h200|141 SHTS|||||x16 NVML|H200",
    ],
)
def test_a_row_that_cannot_be_read_is_named(row):
    with pytest.raises(ValueError, match=re.escape(row)):
        parse("nvidia", Segment.DATA_CENTRE, f"{'|'.join(COLUMNS)}\n{row}")


def test_a_table_with_other_columns_is_refused():
    with pytest.raises(ValueError, match="columns are"):
        parse("nvidia", Segment.DATA_CENTRE, "name|class")


@pytest.mark.skipif(not PCI_IDS.exists(), reason=f"{PCI_IDS} is not on this machine (Debian: apt install pci.ids)")
def test_the_pci_id_repository_lists_every_id_under_its_models_name():
    text = PCI_IDS.read_text(encoding="utf-8", errors="replace")
    listed = listed_names(text)
    assert len(listed) > 10_000
    [date] = re.findall(r"^#\tDate: +(\S+)", text, re.MULTILINE)
    held = {Source.PCI} if date < "2026-05-24" else {Source.PCI, Source.PCIN}
    for model in MODELS:
        for device in model.pci.value if model.pci.source in held else ():
            name = listed[device << 16 | {"nvidia": gpus.NVIDIA, "amd": gpus.AMD, "intel": gpus.INTEL}[model.vendor]]
            assert words(model.name) - NOT_IN_PCI_IDS <= words(name), f"{device:#06x} {model.name}: {name}"


def test_the_documented_table_is_fresh():
    assert PAGE.read_text() == page(), "run: python -m windrow_master.fleet.gpus.drawings > docs/gpu-models.md"
