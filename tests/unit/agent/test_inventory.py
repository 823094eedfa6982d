"""Raw facts become an inventory: cleaned, ordered, bounded, and with a hash that follows them."""

import dataclasses
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_agent.core.gpu_port import Condition, GpuInventory
from windrow_agent.core.inventory import HostFacts, build_inventory, clean_id, clean_text, machine_id_hash
from windrow_proto.conditions import ConditionCode
from windrow_proto.ids import GpuUuid
from windrow_proto.model import GpuFacts, Inventory, inventory_hash
from windrow_proto.wire_host import decode_inventory, encode_inventory

HOST = HostFacts("box", "Debian 12", "Linux 6.1", "Some CPU", 16, 8, 64 << 30, 1 << 40, "0123456789abcdef\n")


def gpu(index: int, uuid: str = "", **facts: Any) -> GpuFacts:
    made = GpuFacts(GpuUuid(uuid or f"GPU-{index}"), index, "nvidia", "NVIDIA H100", "00000000:18:00.0", 1, 2)
    return dataclasses.replace(made, **facts)


def inventory(host: HostFacts = HOST, *gpus: GpuFacts, conditions: tuple[str, ...] = ()) -> Inventory:
    return build_inventory(
        host,
        GpuInventory(gpus, "580.95.05", "13.0"),
        agent_version="0.1.0",
        simulated=False,
        runtimes=("process", "docker"),
        runtime_versions={"docker": "27.0"},
        conditions=conditions,
    )


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"),
        ("Intel(R) Xeon(R)   CPU @ 2.20GHz", "Intel(R) Xeon(R) CPU @ 2.20GHz"),
        ("<img src=x onerror=alert(1)>", "img src=x onerror=alert(1)"),
        ("a\x00b\x1b[31mc\r\nd\u2028e", "a b [31mc d e"),
        ("safe\u202eexe.gnp", "safe exe.gnp"),
        ("zero\u200bwidth\ufeff", "zero width"),
        ("\ue000private\U0010ffff", "private"),
        ("e\u0301", "é"),
        ("x" * 5000, "x" * 128),
        ("", ""),
    ],
)
def test_names_are_reduced_to_one_visible_line(raw: str, clean: str):
    assert clean_text(raw) == clean


@given(st.text(max_size=400))
def test_a_cleaned_name_is_short_visible_and_clean_again(raw: str):
    clean = clean_text(raw)
    assert len(clean) <= 128
    assert not any(unicodedata.category(c).startswith("C") or c in "<>`\n" for c in clean)
    assert clean == clean.strip()


@given(st.text(max_size=400))
def test_a_cleaned_key_has_no_character_that_means_something_elsewhere(raw: str):
    assert all(c.isascii() and (c.isalnum() or c in "._:-") for c in clean_id(raw))


def test_the_machine_id_leaves_only_as_a_hash_under_our_prefix():
    made = inventory()
    assert made.machine_id_hash == machine_id_hash("0123456789abcdef")
    assert "0123456789abcdef" not in repr(made)
    assert len(made.machine_id_hash) == 64
    assert machine_id_hash("  \n") == ""


def test_equal_hosts_hash_equally_whatever_the_order_of_telling():
    one = inventory(HOST, gpu(0), gpu(1), conditions=("gpu.hot:GPU-1", "gpu.hot:GPU-0"))
    other = inventory(HOST, gpu(1), gpu(0), conditions=("gpu.hot:GPU-0", "gpu.hot:GPU-1"))
    assert inventory_hash(one) == inventory_hash(other)
    assert one.runtimes == ("docker", "process")


@pytest.mark.parametrize("change", [{"ecc_enabled": True}, {"power_limit_mw": 5}, {"vbios": "9"}, {"numa_node": 0}])
def test_any_changed_fact_changes_the_hash(change: dict[str, Any]):
    changed = dataclasses.replace(gpu(0), **change)
    assert inventory_hash(inventory(HOST, gpu(0))) != inventory_hash(inventory(HOST, changed))


def test_absent_facts_stay_absent_over_the_wire():
    made = inventory(HOST, gpu(0))
    back = decode_inventory(encode_inventory(made))
    assert back == made
    assert (back.gpus[0].memory_bytes, back.gpus[0].serial, back.gpus[0].ecc_enabled) == (None, None, None)


def test_a_second_gpu_of_the_same_uuid_is_left_out():
    assert [one.index for one in inventory(HOST, gpu(0, "GPU-a"), gpu(1, "GPU-a")).gpus] == [0]


def test_a_hostile_host_still_makes_a_sendable_inventory():
    hostile = HostFacts("<b>\x00" * 999, "\u202e", "k" * 9999, "`rm`", -5, -1, -1, -1, "\ud800")
    made = inventory(hostile, gpu(0, "GPU-\n<x>", name="\x1b]0;pwn\x07", serial="s" * 999, pci_bus_id="../../x"))
    assert decode_inventory(encode_inventory(made)) == made
    assert (made.cpu_count, made.os, made.gpus[0].uuid, made.gpus[0].pci_bus_id) == (0, "", "GPU-_x_", ".._.._x")


def test_a_condition_is_written_as_code_and_subject():
    assert Condition(ConditionCode.GPU_LOST, "GPU-1", "detail").text == "gpu.lost:GPU-1"
    assert Condition(ConditionCode.GPU_NO_DRIVER).text == "gpu.no_driver"
