"""Machine classes: what is grouped, what a renter's filters leave, and the prices that were paid."""

from dataclasses import replace
from typing import Any

import pytest

from windrow_master.market.classes import Known, Wanted, classes, is_model, paid_by_day, with_end
from windrow_master.market.model import Ask, Listing, PriceUnit
from windrow_master.market.offers import PriceBook
from windrow_proto.ids import AccountId, ClusterId, GpuUuid, HostId
from windrow_proto.metrics import GPU_MEMORY
from windrow_proto.units import DAY, GIB, Bytes, Microcents

A, B = AccountId("account_a"), AccountId("account_b")
BOOK = PriceBook([Ask(A, "h100/A", Microcents(300), 0, ""), Ask(B, "h100/A", Microcents(200), 0, "")])


def listing(host: str = "a", owner: AccountId = A, free: bool = True, **more: Any) -> Listing:
    found = Listing(HostId(host), owner, "h100/A", True, free, False, ("docker",), Bytes(80 * GIB))
    return replace(found, name="NVIDIA H100 PCIe", region="north", **more)


HOST_A = [listing(card=GpuUuid(f"GPU-{one}"), up_bps=100, is_verified=True, driver="550.54.15") for one in range(4)]
HOST_B = [
    listing("b", B, free=False, up_bps=50, driver="535.1", holders=(ClusterId(f"cluster_{one}"),)) for one in "xy"
]
KNOWN = Known({HostId("a"): 0.99}, {GpuUuid("GPU-0"): {GPU_MEMORY: 5e11}, GpuUuid("GPU-1"): {GPU_MEMORY: 3e11}})


def sizes(**wanted: Any) -> list[int]:
    return [one.on_one_host for one in classes([*HOST_A, *HOST_B], BOOK, KNOWN, Wanted(**wanted))]


def test_hosts_that_are_alike_are_one_class_with_the_least_of_what_is_known_of_them() -> None:
    two, four = classes([*HOST_A, *HOST_B], BOOK, KNOWN)
    assert (four.on_one_host, four.free, four.total, four.host_id) == (4, 4, 4, "a")
    assert (four.reliability, four.up_bps, four.memory_bytes_per_s, four.drivers) == (0.99, 100, 3e11, ("550.54.15",))
    assert (two.free, two.host_id, two.reliability, two.memory_bytes_per_s) == (0, None, None, None)
    (both,) = classes([*HOST_A[:2], *HOST_B], BOOK, KNOWN)
    assert [(one.price_per_hour, one.free, one.total) for one in both.prices] == [(200, 0, 2), (300, 2, 2)]
    assert (both.price_per_hour, both.up_bps, both.verified_hosts, both.hosts) == (300, 50, 1, 2)
    assert both.drivers == ("535.1", "550.54.15")


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        ({}, [2, 4]),
        ({"min_gpus": 3}, [4]),
        ({"max_price": 250}, [2]),
        ({"min_price": 250}, [4]),
        ({"min_reliability": 0.5}, [4]),
        ({"min_up_bps": 51}, [4]),
        ({"min_down_bps": 1}, []),
        ({"is_verified": True}, [4]),
        ({"is_free": True}, [4]),
        ({"driver": "535.2"}, [4]),
        ({"driver": "550.54.15"}, [4]),
        ({"region": "south"}, []),
        ({"min_memory_bytes": 81 * GIB}, []),
        ({"model": "h100"}, [2, 4]),
        ({"unit": PriceUnit.PROCESSOR}, []),
        ({"is_simulated": True}, []),
    ],
)
def test_a_filter_leaves_what_keeps_its_bound(wanted: dict[str, Any], left: list[int]) -> None:
    assert sizes(**wanted) == left


def test_a_host_counts_with_all_of_its_gpus_though_some_are_rented() -> None:
    mixed = [*HOST_A[:2], *(replace(one, is_free=False) for one in HOST_A[2:])]
    (found,) = classes(mixed, BOOK, KNOWN, Wanted(min_gpus=3))
    assert (found.on_one_host, found.free_on_one_host, found.host_id) == (4, 2, None)
    assert classes(mixed, BOOK, KNOWN, Wanted(min_gpus=3, is_free=True)) == ()


def test_only_a_full_class_has_holders_and_the_first_known_end_counts() -> None:
    (full,) = classes(HOST_B, BOOK, KNOWN)
    assert full.holders == ("cluster_x", "cluster_y")
    assert with_end(full, {ClusterId("cluster_y"): 7, ClusterId("cluster_x"): 9}).ends_at_ns == 7
    assert with_end(full, {}).ends_at_ns is None
    (some,) = classes([*HOST_B, listing("b")], BOOK, KNOWN)
    assert some.holders == ()


def test_processors_are_counted_by_the_host_and_a_slice_has_no_speed_of_its_card() -> None:
    cores = [replace(listing(host), tier="cpu/B", is_gpu=False, cpus=16, cpus_free=9, name="") for host in "ab"]
    part = replace(HOST_A[0], tier="h100:1g.10gb/A")
    processors, sliced = classes([*cores, part], BOOK, KNOWN)
    assert (processors.on_one_host, processors.free_on_one_host, processors.total) == (16, 9, 2)
    assert sliced.memory_bytes_per_s is None


@pytest.mark.parametrize(
    ("wanted", "tier", "name", "is_one"),
    [
        ("a10", "a100-80/A", "NVIDIA A100-SXM4-80GB", False),
        ("A100 80GB", "a100-80/A", "NVIDIA A100-SXM4-80GB", True),
        ("4090", "rtx4090/B", "NVIDIA GeForce RTX 4090", True),
        ("h100", "h100:1g.10gb/C", "", True),
        ("h100-pcie", "h100-pcie/C", "", True),
    ],
)
def test_a_model_is_found_by_whole_words(wanted: str, tier: str, name: str, is_one: bool) -> None:
    assert is_model(wanted, tier, name) is is_one


def test_prices_paid_are_summed_up_by_day_with_the_lower_median() -> None:
    begun = [(2 * DAY, Microcents(5)), (DAY + 1, Microcents(4)), (DAY, Microcents(1)), (DAY, Microcents(9))]
    first, second = paid_by_day([*begun, (DAY, Microcents(2))])
    assert (first.day_at_ns, first.lowest, first.median, first.highest, first.rentals) == (DAY, 1, 2, 9, 4)
    assert (second.day_at_ns, second.median, second.rentals) == (2 * DAY, 5, 1)
