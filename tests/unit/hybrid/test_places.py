"""Tiers, registered resources and offers of the price book as places."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from windrow_master.hybrid import places
from windrow_master.hybrid.model import Resource, Seen, declared_of
from windrow_master.hybrid.places import class_of, market_places, resource_places, waits_of, wanted_of
from windrow_master.hybrid.routing import Work, cost_of, recommend
from windrow_master.market.model import Offer, PriceUnit
from windrow_master.prices.shipped import shipped
from windrow_proto.units import MICROCENTS_PER_UNIT, SECOND, Microcents, parse_money

READ = date(2026, 8, 24)
P4D = {"gpu": True, "gpu_count": 8, "gpu_type": "NVIDIA A100"}


def resource(kind: str, **said: Any) -> Resource:
    return Resource(1, "r", declared_of({"resource_type": kind, "capabilities": P4D, **said}), 0)


def tier(name: str, free: int = 2, **changes: Any) -> Offer:
    price = Microcents(MICROCENTS_PER_UNIT)
    known: dict[str, Any] = {"tier": name, "unit": PriceUnit.GPU, "simulated": False, "free": free, "total": 4}
    known |= {"hosts": 1, "price_per_hour": price, "suggestion": price, "suggestion_reason": "", "runtimes": ()}
    known |= {"min_memory_bytes": None, "on_one_host": 4, "free_on_one_host": free}
    return Offer(**known | changes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NVIDIA A100", "a100-40"),
        ("A100-SXM4-80GB", "a100-80"),
        ("NVIDIA V100", "v100-16"),
        ("Tesla T4", "t4"),
        ("rtx 4090", "rtx4090"),
        ("h100", "h100"),
        ("quantum", ""),
        ("NVIDIA", ""),
        ("", ""),
    ],
)
def test_a_gpu_is_known_by_what_people_call_it(text: str, expected: str) -> None:
    assert class_of(text) == expected


def test_a_tier_is_a_place_for_as_many_gpus_as_are_wanted() -> None:
    found = list(market_places([tier("h100/A"), tier("l4/B"), tier("h100:1g.10gb/A")], Work(gpus=2)))
    assert [(one.backend, one.gpu_memory_gib, one.per_hour) for one in found] == [
        ("windrow/h100/A", 80.0, 2 * MICROCENTS_PER_UNIT),
        ("windrow/l4/B", 24.0, 2 * MICROCENTS_PER_UNIT),
    ]
    (full,) = market_places([tier("h100/A", free=1)], Work(gpus=2))
    assert full.status == "busy"


def test_gpus_of_several_hosts_are_not_a_place_for_work_on_one() -> None:
    (spread,) = market_places([tier("h100/A", free=4, on_one_host=2, free_on_one_host=1)], Work(gpus=2))
    assert (spread.gpu_count, spread.status) == (2, "busy")
    cores = tier("cpu/A", free=8, total=8, on_one_host=4, free_on_one_host=4, unit=PriceUnit.PROCESSOR)
    route = recommend(Work(gpus=0, cpus=5), market_places([cores], Work(gpus=0, cpus=5)))
    assert [one.reason for one in route.refused] == ["5 CPUs are wanted; it has 4."]


def test_processors_are_for_who_wants_no_gpu_and_what_is_simulated_for_nobody() -> None:
    tiers = [tier("cpu/A", unit=PriceUnit.PROCESSOR), tier("h100/A", simulated=True)]
    assert [one.backend for one in market_places(tiers, Work(gpus=0))] == ["windrow/cpu/A"]
    assert list(market_places(tiers, Work(gpus=1))) == []


def test_a_machine_of_ones_own_costs_nothing_and_needs_a_host_to_be_used() -> None:
    (own,) = resource_places([resource("on-premise")], shipped(), READ, "a")
    assert (own.per_hour, own.gpu, own.gpu_count, own.not_usable) == (0, "a100-40", 8, places.NOT_BOUND)
    route = recommend(Work(hours=1), [own])
    assert route.chosen is None and "costs nothing" in route.ranked[0].pros


def seen(gpus: dict[str, tuple[int, int]] | None, cpus: int | None = 16) -> Seen:
    return Seen("box", True, True, 1, "a", gpus, cpus)


@pytest.mark.parametrize(
    ("gpus", "gpu", "count", "status"),
    [
        ({"a100-40": (8, 8)}, "a100-40", 8, "available"),
        ({"a100-40": (8, 1)}, "a100-40", 8, "busy"),
        ({"a100-40": (4, 4)}, "a100-40", 4, "available"),
        ({"t4": (1, 1), "l4": (4, 4)}, "l4", 4, "available"),
        ({"": (8, 8)}, "a100-40", 8, "available"),
        ({}, "a100-40", 0, "busy"),
        (None, "a100-40", 8, "available"),
    ],
)
def test_what_a_bound_host_shows_counts_more_than_what_was_declared(
    gpus: dict[str, tuple[int, int]] | None, gpu: str, count: int, status: str
) -> None:
    shown = replace(resource("on-premise", max_parallel_jobs=8), bound_host="host_1", seen=seen(gpus))
    (place,) = resource_places([shown], shipped(), READ, "a", gpus_wanted=2)
    assert (place.gpu, place.gpu_count, place.status, place.cpus) == (gpu, count, status, 16)


def test_a_resource_that_claims_a_gpu_its_host_lacks_is_not_recommended_for_it() -> None:
    shown = replace(resource("on-premise"), bound_host="host_1", seen=seen({}))
    route = recommend(Work(gpus=1, hours=1), resource_places([shown], shipped(), READ, "a", gpus_wanted=1))
    assert [one.reason for one in route.refused] == ["1 GPU is wanted; it has 0."]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("NVIDIA A100", "a100-"),
        ("A100-SXM4-80GB", "a100-80"),
        ("h100", "h100"),
        ("rtx4060ti", "rtx4060ti-"),
        ("quantum", ""),
        ("", ""),
    ],
)
def test_a_name_that_leaves_the_memory_open_means_each_of_its_family(text: str, wanted: str) -> None:
    assert wanted_of(text) == wanted


def test_a_place_of_the_family_that_is_wanted_is_suitable() -> None:
    work = Work(gpu="a100-", hours=1)
    route = recommend(work, market_places([tier("a100-80/A"), tier("a100-40/A"), tier("a10/A")], work))
    assert {one.place.gpu for one in route.ranked} == {"a100-80", "a100-40"}
    assert [one.reason for one in route.refused] == ["The GPU wanted is a100; it has a10."]


def test_a_place_without_a_host_does_not_say_when_it_starts() -> None:
    (own,) = resource_places([resource("on-premise")], shipped(), READ, "a")
    assert "starts" not in "; ".join(recommend(Work(hours=1), [own]).ranked[0].pros)


def test_where_none_fits_the_offer_that_comes_closest_is_named() -> None:
    work = Work(gpus=1, gpu_memory_gib=1_000, hours=1)
    found = {one.backend: one for one in places.book_places(shipped(), READ, work)}
    most = max(
        memory
        for listed in shipped().find(READ)
        if listed.offer.provider.name == "aws" and listed.offer.kind == "on-demand"
        if (memory := places.memory_of(listed.offer.gpu)) is not None
    )
    assert found["aws/on-demand"].gpu_memory_gib == most


def test_a_cloud_is_priced_by_its_registration_or_else_by_the_book() -> None:
    known = {"provider": "AWS", "region": "us-east-1"}
    (said,) = resource_places([resource("cloud", cost_per_hour_usd=32.77, **known)], shipped(), READ, "a")
    assert (said.per_hour, said.source) == (3_277_000_000, "its registration")
    (found,) = resource_places([resource("cloud", **known)], shipped(), READ, "a")
    assert found.source.startswith("p4d.24xlarge: AWS") and found.per_hour == 2_195_764_200
    (unknown,) = resource_places([resource("cloud", provider="Nimbus")], shipped(), READ, "a")
    assert recommend(Work(), [unknown]).refused[0].reason.startswith("Nobody said what it costs")


def test_of_each_provider_and_kind_the_cheapest_that_fits_is_a_place() -> None:
    work = Work(gpus=8, gpu="h100", hours=1)
    found = {one.backend: one for one in places.book_places(shipped(), READ, work)}
    assert found["lambda/on-demand"].offer == "8x H100 SXM"
    assert found["aws/on-demand"].offer.startswith("p5.48xlarge in ")
    route = recommend(work, found.values())
    assert route.chosen is None  # none is connected
    reasons = {one.place.backend: one.reason for one in route.refused}
    assert "8 GPUs are wanted; it has 1." in reasons["runpod/on-demand"]
    assert "The price is of" in reasons["aws/spot"]
    assert "The GPU wanted is h100; it has t4." in reasons["aws/reserved"]


def test_a_machine_that_is_bought_is_paid_for_after_its_work_and_starts_as_others_did() -> None:
    work, bought = Work(gpu="l4", hours=1), {"ec2/on-demand": (90.0, 120.0)}
    assumed = {one.backend: one for one in places.book_places(shipped(), READ, work)}
    known = {one.backend: one for one in places.book_places(shipped(), READ, work, bought)}
    assert assumed["aws/on-demand"].start_s == (300, 600)
    assert known["aws/on-demand"].start_s == (90.0, 120.0)
    assert known["runpod/on-demand"] == assumed["runpod/on-demand"]
    place = known["aws/on-demand"]
    cost, kept = cost_of(work, place), cost_of(work, replace(place, rest_s=0.0))
    assert cost is not None and kept is not None
    assert cost.total - kept.total == place.per_hour * 300 // 3600, "five minutes without work"


def test_an_offer_of_the_wrong_country_is_no_place_where_another_is_right() -> None:
    work = Work(gpu="l4", countries=("DE",), hours=1)
    found = {one.backend: one for one in places.book_places(shipped(), READ, work)}
    assert found["aws/on-demand"].country == "DE"


def test_what_starts_took_here_counts_where_there_are_enough() -> None:
    few = [("l4/A", seconds * SECOND) for seconds in range(1, 5)]
    assert waits_of(few) == {}
    many = few + [("cpu", seconds * SECOND) for seconds in range(10, 110, 10)]
    found = waits_of(many)
    assert set(found) == {"cpu", ""}
    assert found["cpu"] == (55.0, 99.0)


def test_a_backend_where_the_project_may_buy_is_in_the_place_of_its_provider_with_what_its_region_sells() -> None:
    work, connected = Work(gpu="l4", hours=1), [places.Connected("eu", "ec2", "eu-central-1")]
    found = {one.backend: one for one in places.book_places(shipped(), READ, work, connected=connected)}
    assert (found["eu/on-demand"].buys, found["eu/on-demand"].provider) == ("eu", "aws")
    assert " in eu-central-1" in found["eu/on-demand"].offer
    assert "aws/on-demand" not in found
    assert found["aws/reserved"].buys == ""
    route = recommend(work, found.values())
    (bought,) = [one for one in route.ranked if one.place.backend == "eu/on-demand"]
    assert "a machine is bought for it, at eu" in bought.cons
    assert route.chosen is None, "nothing is bought unless somebody says so"


def test_a_backend_in_a_region_without_a_price_leaves_its_provider_as_it_is() -> None:
    work, nowhere = Work(gpu="l4"), [places.Connected("mars", "ec2", "mars-1"), places.Connected("box", "ssh", "")]
    assert list(places.book_places(shipped(), READ, work, connected=nowhere)) == list(
        places.book_places(shipped(), READ, work)
    )


MODAL = places.Connected("lab-modal", "modal", "", margin_percent=10)


def test_modal_is_a_place_where_it_is_connected_with_all_that_it_bills_in_the_price() -> None:
    work = Work(gpu="h100", hours=2, interruptible=True)
    alone = {one.backend: one for one in places.book_places(shipped(), READ, work)}
    assert (alone["modal/spot"].buys, alone["modal/spot"].note) == ("", "processors and memory are billed besides")
    found = {one.backend: one for one in places.book_places(shipped(), READ, work, connected=[MODAL])}
    assert "modal/spot" not in found
    place = found["lab-modal/spot"]
    assert (place.buys, place.offer, place.cpus, place.rest_s) == ("lab-modal", "gpu=H100:1", 8, 0.0)
    beside = parse_money("0.141912") * 4 + parse_money("0.024192") * 32
    assert place.per_hour == -(-(alone["modal/spot"].per_hour + beside) * 110 // 100)
    assert place.note.startswith("8 CPUs and 32 GiB are in this price; it ends after 23 h")
    route = recommend(work, [place])
    assert "a run is started for it, at lab-modal" in route.ranked[0].cons
    assert route.chosen is None, "nothing is bought unless somebody says so"


@pytest.mark.parametrize(
    ("asked", "offer"),
    [
        ({"gpus": 3}, "gpu=T4:4"),
        ({"gpus": 1, "gpu_memory_gib": 70.0}, "gpu=A100-80GB:1"),
        ({"gpus": 1, "cpus": 20}, "gpu=T4:4"),
        ({"gpus": 0, "cpus": 3}, "cpu=4"),
    ],
)
def test_of_modal_the_cheapest_that_fits_is_compared(asked: dict[str, Any], offer: str) -> None:
    (place,) = places.run_places(shipped(), READ, Work(**asked), [MODAL])
    assert place.offer == offer


def test_gpus_of_modal_are_for_work_that_may_be_interrupted_and_processors_for_any() -> None:
    places_of = [*places.run_places(shipped(), READ, Work(), [MODAL])]
    (refused,) = recommend(Work(hours=1), places_of).refused
    assert refused.reason.startswith("It may be taken back at any time")
    work = Work(gpus=0, cpus=2, hours=1)
    (ranked,) = recommend(work, [*places.run_places(shipped(), READ, work, [MODAL])]).ranked
    assert ranked.place.backend == "lab-modal/on-demand"


def test_the_margin_of_a_backend_is_in_the_price_of_its_machines() -> None:
    work = Work(gpu="l4", hours=1)
    free, dearer = (
        {one.backend: one for one in places.book_places(shipped(), READ, work, connected=[connected])}["eu/on-demand"]
        for connected in (
            places.Connected("eu", "ec2", "eu-central-1"),
            places.Connected("eu", "ec2", "eu-central-1", margin_percent=20),
        )
    )
    assert dearer.per_hour == -(-free.per_hour * 120 // 100)
