"""The table of a GPU's fields: each row once, each by its own names, and what is read is read by it."""

from dataclasses import replace

import pytest

from tests.unit.proto import values
from windrow_proto.gpu_fields import FIELD_IDS, GPU_FIELDS, GpuField, Group, Rate, Source, fact
from windrow_proto.metrics import METRICS, Scope
from windrow_proto.model import GpuFacts, Inventory

BY_NAME = {one.name: one for one in GPU_FIELDS}
GPU = replace(values.GPU, more={"persistence_mode": 0, "bar1_bytes": 128 << 30, "power_limit_default_mw": 700_000})


def test_no_row_and_no_dcgm_name_is_there_twice():
    named = [one.dcgm for one in GPU_FIELDS if one.dcgm and one.source is not Source.FACT]

    assert len(BY_NAME) == len(GPU_FIELDS)
    assert len(named) == len(set(named))


def test_every_metric_of_a_gpu_is_a_row_with_its_names_and_rate():
    of_gpus = {metric.name: metric for metric in METRICS if metric.scope is Scope.GPU}
    rows = {one.name: one for one in GPU_FIELDS if one.source is Source.METRIC}

    assert rows.keys() == of_gpus.keys()
    assert all(one.rate is (Rate.TEN if of_gpus[name].slow else Rate.SECOND) for name, one in rows.items())


def test_every_attribute_of_a_gpu_is_a_row():
    split = {"compute_capability_major", "compute_capability_minor", "more", "slices", "layout"}
    rows = {one.name for one in GPU_FIELDS if one.source is Source.FACT}

    assert set(GpuFacts.__slots__) - split == rows - {"compute_capability"}


def test_the_ids_of_errors_by_place_are_those_of_nvml():
    import pynvml

    assert FIELD_IDS[pynvml.NVML_FI_DEV_ECC_SBE_VOL_L1] == "ecc_corrected_l1"
    assert FIELD_IDS[pynvml.NVML_FI_DEV_ECC_DBE_VOL_DEV] == "ecc_uncorrected_memory"
    assert FIELD_IDS[pynvml.NVML_FI_DEV_ECC_DBE_VOL_CBU] == "ecc_uncorrected_cbu"
    assert FIELD_IDS[pynvml.NVML_FI_DEV_ECC_SBE_AGG_L1] == "ecc_corrected_l1_lifetime"
    assert FIELD_IDS[pynvml.NVML_FI_DEV_ECC_DBE_AGG_CBU] == "ecc_uncorrected_cbu_lifetime"
    assert FIELD_IDS[pynvml.NVML_FI_DEV_PCIE_COUNT_LANE_ERROR] == "pcie_lane_errors"
    assert FIELD_IDS[pynvml.NVML_FI_DEV_REMAPPED_UNC] == "remapped_uncorrected"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("name", "NVIDIA H100 80GB HBM3"),
        ("vbios", None),
        ("pci_device_id", "0x233010de"),
        ("compute_capability", "9.0"),
        ("power_limit_mw", 350.0),
        ("power_limit_default_mw", 700.0),
        ("clock_sm_max_mhz", 1980e6),
        ("persistence_mode", False),
        ("ecc_enabled", True),
        ("bar1_bytes", 128 << 30),
        ("brand", None),
        ("driver_version", "580.1"),
        ("cuda_version", None),
        ("gpu_power_watts", None),
    ],
)
def test_a_fact_is_in_its_unit_and_absent_is_none(name: str, said: object):
    found = fact(BY_NAME[name], GPU, Inventory(driver_version="580.1"))

    assert (found, type(found)) == (said, type(said))


def test_what_is_not_read_says_why():
    silent = [one for one in GPU_FIELDS if one.source is Source.UNREAD]

    assert all(isinstance(one, GpuField) and one.note and one.rate is Rate.NEVER for one in silent)
    assert {one.group for one in GPU_FIELDS} == set(Group)
