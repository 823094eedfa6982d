"""The order of places: spot first where it was asked for, never above a budget or a cap, each offer once a round."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.hybrid.backends.port import MachineOffer
from windrow_master.hybrid.purchases import costs
from windrow_master.hybrid.purchases.costs import Spent
from windrow_master.hybrid.purchases.model import BackendRow, Buyer, Caps, Purchase
from windrow_master.hybrid.purchases.service import place_at
from windrow_master.hybrid.purchases.states import State
from windrow_master.hybrid.search.decide import decide, paused, seen_of, tried, tried_now
from windrow_master.hybrid.search.model import Candidate, Doing, Search, Seen, Subject, TryState
from windrow_master.hybrid.search.route import (
    AROUND_NS,
    ROUND_MAX,
    Wish,
    candidates,
    duration_ns,
    expected_ns,
    in_order,
)
from windrow_master.jobs.model import AttemptPlace, JobRequest
from windrow_master.prices.offers import Kind
from windrow_proto.errors import QuotaExceeded
from windrow_proto.ids import AccountId, HostId
from windrow_proto.units import GIB, HOUR, MINUTE, SECOND, Bytes, Microcents, parse_money

ACCOUNT = AccountId("account_1")
NOW = 10**18


def offer(
    machine: str = "m5.large",
    zone: str = "a",
    kind: Kind = Kind.ON_DEMAND,
    price: str = "0.1",
    gpu: str = "",
    gpus: int = 0,
    cpus: int = 2,
    memory: int = 8,
) -> MachineOffer:
    return MachineOffer(
        offer_id=f"{machine}/{zone}/{kind}",
        kind=kind,
        gpu=gpu,
        gpu_count=gpus,
        cpus=cpus,
        memory_bytes=Bytes(memory * GIB),
        region="eu-central-1",
        zone=zone,
        country="DE",
        price_per_hour=parse_money(price),
        currency="USD",
        priced_on=date(2026, 11, 1),
    )


def wish(optimize: str | None = None, *, spot: bool = False, was_interrupted: bool = False, **asked: Any) -> Wish:
    resources = JobRequest(argv=("true",), **asked)
    return Wish(resources=resources, optimize=optimize, spot=spot, was_interrupted=was_interrupted)


def order(wanted: Wish, *offers: MachineOffer, backend: str = "aws", service: bool = False) -> list[str]:
    found = candidates(wanted, backend, 0, offers, NOW, is_service=service)
    return [one.offer.offer_id for one in in_order(wanted, found, ())]


def test_spot_comes_first_zone_by_zone_then_the_next_type_then_on_demand() -> None:
    offers = [
        offer("big", "a", Kind.SPOT, "0.08"),
        offer("big", "a", Kind.ON_DEMAND, "0.2"),
        offer("small", "b", Kind.SPOT, "0.06"),
        offer("small", "a", Kind.SPOT, "0.05"),
        offer("small", "a", Kind.ON_DEMAND, "0.1"),
    ]
    spot = ["small/a/spot", "small/b/spot", "big/a/spot"]
    assert order(wish(spot=True), *offers) == [*spot, "small/a/on-demand", "big/a/on-demand"]
    assert order(wish(), *offers) == ["small/a/on-demand", "big/a/on-demand"]
    assert order(wish(spot=True, was_interrupted=True), *offers) == ["small/a/on-demand", "big/a/on-demand", *spot]


def test_the_next_backend_comes_after_all_of_the_cheaper_one() -> None:
    found = [
        *candidates(wish(), "dear", 0, [offer("x", price="0.11")], NOW, is_service=False),
        *candidates(wish(), "cheap", 0, [offer("y"), offer("z", price="0.15")], NOW, is_service=False),
    ]
    assert [one.backend for one in in_order(wish(), found, ())] == ["cheap", "cheap", "dear"]


def test_for_speed_a_service_comes_before_machines_and_for_cost_the_cheaper_one() -> None:
    run = candidates(wish("speed"), "modal", 0, [offer("cpu", price="0.2")], NOW, is_service=True)
    machine = candidates(wish("speed"), "aws", 0, [offer()], NOW, is_service=False)
    assert [one.backend for one in in_order(wish("speed"), [*machine, *run], ())] == ["modal", "aws"]
    assert [one.backend for one in in_order(wish("cost"), [*machine, *run], ())] == ["aws", "modal"]


@pytest.mark.parametrize(
    ("asked", "suits"),
    [
        ({"cpus": 2}, True),
        ({"cpus": 3}, False),
        ({"memory_bytes": Bytes(7 * GIB)}, True),
        ({"memory_bytes": Bytes(8 * GIB)}, False),  # a part is its system's
        ({"country": "DE"}, True),
        ({"country": "FR"}, False),
        ({"max_price_per_hour": parse_money("0.1")}, True),
        ({"max_price_per_hour": parse_money("0.09")}, False),
        ({"gpus": 1}, False),
    ],
)
def test_an_offer_suits_what_it_has(asked: dict[str, Any], suits: bool) -> None:
    assert bool(order(wish(**asked), offer())) is suits


def test_a_gpu_that_is_named_is_bought_and_no_other() -> None:
    offers = [offer("g5", gpu="a10g", gpus=1), offer("p5", gpu="h100", gpus=8, price="0.3"), offer()]
    assert order(wish(gpus=1, gpu_model="H100"), *offers) == ["p5/a/on-demand"]
    assert order(wish(gpus=1, tier="a10g/A"), *offers) == ["g5/a/on-demand"]
    assert order(wish(gpus=1, gpu_model="no such card"), *offers) == []
    assert order(wish(gpus=1, gpu_memory_bytes=Bytes(40 * GIB)), *offers) == ["p5/a/on-demand"]
    assert order(wish(), *offers) == ["m5.large/a/on-demand"]


def test_what_costs_many_times_as_much_is_not_tried() -> None:
    assert order(wish(), offer(), offer("p5", price="0.41")) == ["m5.large/a/on-demand"]


@pytest.mark.parametrize(
    ("changes", "hours"),
    [
        ({}, 4),
        ({"limit_ns": 2 * HOUR}, 2),
        ({"usual_ns": 2 * HOUR}, 3),
        ({"limit_ns": 2 * HOUR, "left": parse_money("1.99")}, None),
        ({"limit_ns": 2 * HOUR, "left": parse_money("2")}, 2),
        ({"left": parse_money("1.5")}, 1.5),
        ({"left": parse_money("0.1")}, None),
        ({"until_ns": NOW + HOUR}, 1),
        ({"until_ns": NOW}, None),
    ],
)
def test_a_machine_is_bought_for_as_long_as_the_work_runs_and_the_budget_pays(
    changes: dict[str, int], hours: float | None
) -> None:
    found = duration_ns(replace(wish(), **changes), parse_money("1"), NOW)  # type: ignore[arg-type]  # its fields
    assert found == (None if hours is None else int(hours * HOUR) + AROUND_NS)


@pytest.mark.parametrize(
    ("changes", "kind", "is_service", "seconds"),
    [
        ({}, Kind.ON_DEMAND, False, None),
        ({"limit_ns": 2 * HOUR}, Kind.ON_DEMAND, False, 7_200 + 300 + 300),
        ({"limit_ns": 2 * HOUR, "usual_ns": HOUR}, Kind.ON_DEMAND, False, 3_600 + 300 + 300),
        ({"usual_ns": HOUR}, Kind.SPOT, False, 3_600 + 360 + 300),
        ({"usual_ns": HOUR}, Kind.SPOT, True, 3_600),
    ],
)
def test_a_place_is_expected_to_be_paid_for_while_the_work_starts_runs_and_is_found_to_be_over(
    changes: dict[str, int], kind: Kind, is_service: bool, seconds: int | None
) -> None:
    found = expected_ns(replace(wish(), **changes), kind, is_service=is_service)  # type: ignore[arg-type]  # its fields
    assert found == (None if seconds is None else seconds * SECOND)


prices = st.integers(0, 5 * 10**8).map(Microcents)
offers_of = st.lists(
    st.builds(
        lambda machine, zone, kind, price: replace(offer(f"t{machine}", f"z{zone}", kind), price_per_hour=price),
        st.integers(0, 5),
        st.integers(0, 2),
        st.sampled_from([Kind.SPOT, Kind.ON_DEMAND]),
        prices,
    ),
    max_size=30,
    unique_by=lambda one: one.offer_id,
)


@given(
    offers=offers_of,
    spot=st.booleans(),
    left=st.none() | prices,
    limit_ns=st.none() | st.integers(MINUTE, 100 * HOUR),
    margin=st.integers(0, 100),
)
def test_no_place_is_above_the_budget_each_is_there_once_and_the_order_is_that_of_any_input(
    offers: list[MachineOffer], spot: bool, left: Microcents | None, limit_ns: int | None, margin: int
) -> None:
    wanted = replace(wish(spot=spot), left=left, limit_ns=limit_ns)
    places = candidates(wanted, "aws", margin, offers, NOW, is_service=False)
    found = in_order(wanted, places, ())
    assert len({one.key for one in found}) == len(found) <= ROUND_MAX
    assert found == in_order(wanted, list(reversed(places)), ())
    for one in found:
        assert one.price_per_hour >= one.offer.price_per_hour
        assert spot or one.offer.kind is Kind.ON_DEMAND
        if left is not None:
            assert one.price_per_hour * (limit_ns or one.duration_ns - AROUND_NS) // HOUR <= left
        if limit_ns is not None:
            assert one.duration_ns == limit_ns + AROUND_NS


caps_of = st.builds(
    Caps,
    per_hour=st.none() | prices,
    per_day=st.none() | prices,
    in_all=prices,
    machines=st.none() | st.integers(0, 4),
    vcpus=st.none() | st.integers(0, 8),
)


@given(offers=offers_of, caps=caps_of, per_day=prices, times=st.integers(1, 6))
def test_whatever_is_bought_in_turn_no_cap_of_backend_or_project_is_passed(
    offers: list[MachineOffer], caps: Caps, per_day: Microcents, times: int
) -> None:
    row = BackendRow(name="aws", kind="ec2", settings={}, caps=caps, created_at_ns=0)
    buyer = Buyer(backend="aws", account_id=ACCOUNT, per_day=per_day)
    living = list[Purchase]()
    for number in range(times):
        for place in in_order(
            wish(spot=True), candidates(wish(spot=True), "aws", 0, offers, NOW, is_service=False), ()
        ):
            one = _bought(place, number)
            try:
                costs.check_caps(row, one, living, Spent())
                costs.check_buyer(buyer, one, living, Spent())
            except QuotaExceeded:
                continue
            living.append(one)
            break
    assert caps.in_all is not None
    assert sum(one.reserved for one in living) <= caps.in_all
    assert caps.per_hour is None or sum(one.dearest_per_hour for one in living) <= caps.per_hour
    assert caps.machines is None or len(living) <= caps.machines
    assert caps.vcpus is None or sum(one.offer.cpus for one in living) <= caps.vcpus
    assert sum(min(int(one.reserved), 24 * one.dearest_per_hour) for one in living) <= per_day


def _bought(place: Candidate, number: int) -> Purchase:
    purchase_id = f"purchase_{number}"
    return costs.wanted(
        purchase_id,  # type: ignore[arg-type]  # a new type of text
        *("aws", ACCOUNT, "master", place.offer, place.duration_ns, NOW, "job_1"),
    )


@given(offers=offers_of, outcomes=st.lists(st.booleans(), max_size=40))
def test_a_round_ends_after_each_offer_was_tried_once_whatever_providers_answer(
    offers: list[MachineOffer], outcomes: list[bool]
) -> None:
    wanted = wish(spot=True)
    places = candidates(wanted, "aws", 0, offers, NOW, is_service=False)
    search, waiting = Search(entry_id="job_1", account_id=ACCOUNT), Subject(doing=Doing.WAITING, name="job")
    for turn in range(len(offers) + 1):
        left = in_order(wanted, places, tried_now(search))
        if not left:
            break
        assert left[0].key not in tried_now(search)
        place = place_of(left[0], turn)
        search = tried(search, place, left[0].offer.offer_id, NOW)
        assert not decide(search, waiting, {f"p{turn}": Seen(TryState.ASKING)}, False, NOW).is_next_due
        search = decide(search, waiting, {f"p{turn}": Seen(TryState.FAILED, "no")}, False, NOW).search
    assert not in_order(wanted, places, tried_now(search))
    later = paused(search, NOW)
    assert not decide(later, waiting, {}, False, NOW).is_next_due
    assert decide(later, waiting, {}, False, later.next_at_ns).is_next_due
    assert not decide(later, waiting, {}, True, later.next_at_ns).is_next_due


def test_work_that_runs_where_it_was_bought_frees_the_machine_and_elsewhere_ends_it() -> None:
    place = place_of(candidates(wish(), "aws", 0, [offer()], NOW, is_service=False)[0], 0)
    search = tried(Search(entry_id="job_1", account_id=ACCOUNT), place, "m5.large/a/on-demand", NOW)
    seen = {"p0": Seen(TryState.READY, "", HostId("host_1"))}
    there = Subject(doing=Doing.RUNNING, name="job", host_ids=frozenset({HostId("host_1")}))
    assert decide(search, there, seen, False, NOW).frees == ["p0"]
    elsewhere = Subject(doing=Doing.RUNNING, name="job", host_ids=frozenset({HostId("host_2")}))
    assert decide(search, elsewhere, seen, False, NOW).ends == [("p0", "its work started elsewhere")]
    over = Subject(doing=Doing.OVER, name="job")
    found = decide(search, over, {"p0": Seen(TryState.BOOTING)}, False, NOW)
    assert (found.ends, found.search.has_ended) == ([("p0", "its work is over")], True)


def test_every_state_of_a_purchase_is_a_state_of_its_try() -> None:
    bought = _bought(candidates(wish(), "aws", 0, [offer()], NOW, is_service=False)[0], 1)
    found = {state: seen_of(replace(bought, state=state)).state for state in State}
    assert found == {
        **dict.fromkeys((State.WANTED, State.ASKING, State.DOUBTFUL), TryState.ASKING),
        State.BOOTING: TryState.BOOTING,
        **dict.fromkeys((State.JOINED, State.SERVING, State.IDLE), TryState.READY),
        **dict.fromkeys((State.DRAINING, State.ENDING, State.GONE, State.REFUSED, State.NEVER_MADE), TryState.FAILED),
    }
    assert seen_of(None).state is TryState.FAILED


def place_of(place: Candidate, number: int) -> AttemptPlace:
    return place_at(place.backend, place.offer, 0, purchase_id=f"p{number}")
