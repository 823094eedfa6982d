"""A kept route is answered again from its record, to the same bytes."""

import random
from datetime import timedelta

import pytest

from windrow_master.hybrid.kept import (
    PLACES_MAX,
    forecast_json,
    parse_forecast,
    parse_record,
    record_bytes,
    replayed,
    taken,
)
from windrow_master.hybrid.model import Resource, declared_of
from windrow_master.hybrid.places import all_places
from windrow_master.hybrid.routing import WEIGHTS, Work, recommend
from windrow_master.market.model import Offer, PriceUnit
from windrow_master.prices.book import PriceBook
from windrow_master.prices.shipped import shipped
from windrow_proto.units import Microcents

ROUTES = 1_000
BOOK = PriceBook(shipped().offers[::10])
TODAY = max(one.source.read_on for one in BOOK.offers if one.source.read_on) + timedelta(days=1)


def work(rng: random.Random) -> Work:
    return Work(
        gpus=rng.choice((0, 1, 1, 2, 8)),
        gpu=rng.choice((None, None, "h100", "a100-80", "l4")),
        gpu_memory_gib=rng.choice((None, 24, 40.0, 79.5)),
        hours=rng.choice((None, 0.1, 3, 2.5, 700.0)),
        hours_from=rng.choice(("given", "history")),
        interruptible=rng.random() < 0.5,
        checkpoint_minutes=rng.choice((None, 30.0)),
        dataset_gb=rng.choice((0.0, 50, 1e4)),
        framework=rng.choice((None, "pytorch")),
        max_cost=rng.choice((None, Microcents(500_000_000))),
        optimize=rng.choice(tuple(WEIGHTS)),
        preferred_provider=rng.choice((None, "AWS")),
        countries=rng.choice(((), ("US", "DE"))),
    )


def resource(rng: random.Random, number: int) -> Resource:
    said = {
        "resource_type": rng.choice(("on-premise", "cloud", "edge")),
        "provider": "AWS",
        "capabilities": {"gpu_type": "NVIDIA A100", "gpu_count": rng.choice((1, 4)), "gpu_memory_gb": 40},
        "network_bandwidth_gbps": rng.choice((None, 10, 2.5)),
        "cost_per_hour_usd": rng.choice((None, 0, 1.1)),
        "supported_frameworks": rng.choice(([], ["pytorch"])),
    }
    return Resource(number, f"lab-{number}", declared_of(said), 1, bound_host=rng.choice((None, "host_1")))


def test_a_thousand_kept_routes_are_answered_again_to_the_same_bytes() -> None:
    rng = random.Random(37)
    chosen = 0
    for number in range(ROUTES):
        wanted = work(rng)
        price = Microcents(rng.randrange(10**9))
        free = rng.choice((0, 4))
        tier = Offer(
            "h100/A", PriceUnit.GPU, False, free, 4, 1, price, price, "", (), None, on_one_host=4, free_on_one_host=free
        )
        places = all_places([tier], [resource(rng, number)], BOOK, TODAY, wanted)
        route = recommend(wanted, places)
        record = record_bytes(wanted, route)
        assert replayed(record) == record
        assert parse_record(record) == (wanted, route)
        chosen += route.chosen is not None
    assert 100 < chosen < ROUTES


def test_the_forecast_of_a_job_is_that_of_the_place_it_took() -> None:
    asked = Work(hours=1.0)
    own = Resource(1, "lab", declared_of({"resource_type": "on-premise", "capabilities": {"gpu_count": 1}}), 1)
    bound = Resource(2, "box", own.declared, 1, bound_host="host_1")
    route = recommend(asked, all_places((), [own, bound], BOOK, TODAY, asked))

    def backend(host_id: str | None, tier: str | None) -> str | None:
        found = taken(route, host_id, tier)
        assert parse_forecast(forecast_json(found)) == found
        return None if found is None else found.place.backend

    assert backend("host_1", None) == "resource/box"
    assert backend(None, None) == "resource/box"
    assert (backend("host_2", None), backend(None, "h100/A")) == (None, None)


@pytest.mark.parametrize("price", [None, 0.5])
def test_of_a_long_answer_the_best_places_are_kept_and_answered_again_to_the_same_bytes(price: float | None) -> None:
    asked = Work(hours=1.0)
    said = {"resource_type": "cloud" if price else "on-premise", "provider": "AWS", "capabilities": {"gpu_count": 1}}

    def resource(number: int) -> Resource:
        few = {"capabilities": {"gpu_count": 0}} if number % 2 else {}
        cost = {"cost_per_hour_usd": price and price + number / 1e3}
        return Resource(number, f"lab-{number:04}", declared_of({**said, **few, **cost}), 1)

    many = [resource(number) for number in range(3 * PLACES_MAX)]
    tier = Offer(
        "h100/A",
        PriceUnit.GPU,
        False,
        4,
        4,
        1,
        Microcents(10**9),
        Microcents(10**9),
        "",
        (),
        None,
        on_one_host=4,
        free_on_one_host=4,
    )
    route = recommend(asked, all_places([tier], many, BOOK, TODAY, asked))
    record = record_bytes(asked, route)
    _, known = parse_record(record)
    assert len(route.ranked) > PLACES_MAX < len(route.refused)
    assert len(known.ranked) == PLACES_MAX + 1 and known.refused == route.refused[:PLACES_MAX]
    assert known.chosen == route.chosen is not None
    assert taken(known, None, "h100/A") == route.chosen
    assert replayed(record) == record
