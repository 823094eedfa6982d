"""Places are filtered, priced, scored and ordered; what excludes a place is told in one sentence."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.hybrid.routing import Place, Where, Work, cost_of, excluded, recommend, span
from windrow_proto.units import MICROCENTS_PER_UNIT, Microcents


def usd(amount: float) -> Microcents:
    return Microcents(round(amount * MICROCENTS_PER_UNIT))


def place(name: str = "a", hourly: float = 1.0, **changes: Any) -> Place:
    known: dict[str, Any] = {
        "backend": name,
        "where": Where.ELSEWHERE,
        "resource_type": "cloud",
        "provider": name,
        "offer": f"{name}.large",
        "gpu": "h100",
        "gpu_count": 8,
        "gpu_memory_gib": 80.0,
        "per_hour": usd(hourly),
        "start_s": (0.0, 0.0),
    }
    return Place(**known | changes)


@pytest.mark.parametrize(
    ("work", "change", "said"),
    [
        ({"gpus": 9}, {}, "9 GPUs are wanted; it has 8."),
        ({"gpu": "a100-80"}, {}, "The GPU wanted is a100-80; it has h100."),
        ({"gpu_memory_gib": 81.0}, {}, "A GPU with 81 GiB is wanted; its have 80."),
        ({"gpu_memory_gib": 1.0}, {"gpu_memory_gib": None}, "The memory of its GPUs is not known."),
        ({"framework": "jax"}, {"frameworks": ("pytorch",)}, "jax is not among its frameworks: pytorch."),
        ({"resource_type": "edge"}, {}, "edge is wanted; it is cloud."),
        ({"required_provider": "AWS"}, {}, "The provider wanted is AWS."),
        ({"allowed_providers": ("b", "c")}, {}, "a is not among the allowed: b, c."),
        ({"countries": ("DE",)}, {"country": "US"}, "Its data centre is in US; allowed: DE."),
        ({"countries": ("DE",)}, {}, "Its data centre is in an unknown country; allowed: DE."),
        ({}, {"status": "maintenance"}, "It is maintenance."),
        ({}, {"not_priced": "Its price is old."}, "Its price is old."),
        ({}, {"interruptions_per_hour": 0.1}, "It may be taken back at any time"),
        ({"max_cost_per_hour": usd(0.5)}, {}, "It costs 1.00 an hour; the limit is 0.50."),
        ({"hours": 3, "max_cost": usd(2)}, {}, "The run would cost 3.00; the limit is 2.00."),
    ],
)
def test_what_a_place_lacks_excludes_it_with_that_sentence(
    work: dict[str, Any], change: dict[str, Any], said: str
) -> None:
    wanted, lacking = Work(**work), place(**change)
    assert excluded(wanted, lacking).startswith(said)
    route = recommend(wanted, [lacking])
    assert (route.ranked, route.chosen, route.refused[0].place) == ([], None, lacking)


def test_a_place_that_lacks_nothing_is_not_excluded() -> None:
    work = Work(gpus=8, gpu="h100", gpu_memory_gib=80.0, framework="jax", hours=1, max_cost=usd(1), countries=("DE",))
    assert excluded(work, place(country="DE")) == ""
    assert excluded(Work(interruptible=True, required_provider="A"), place(interruptions_per_hour=0.1)) == ""


def test_a_cheaper_place_that_is_otherwise_equal_comes_first_and_a_tie_goes_by_name() -> None:
    route = recommend(Work(hours=2), [place("b", 1.0), place("c", 0.9), place("a", 1.0)])
    assert [one.place.backend for one in route.ranked] == ["c", "a", "b"]


def test_a_place_that_cannot_be_used_yet_is_ranked_and_not_chosen() -> None:
    route = recommend(Work(), [place("near", 0.1, not_usable="not connected"), place("far", 5.0)])
    assert [one.place.backend for one in route.ranked] == ["near", "far"]
    assert route.chosen is not None and route.chosen.place.backend == "far"
    assert "not connected" in route.ranked[0].cons


def test_what_matters_changes_the_order() -> None:
    slow_and_cheap, quick_and_dear = place("slow", 0.5, start_s=(900.0, 1_800.0)), place("quick", 4.0)

    def first(optimize: str) -> str:
        return recommend(Work(optimize=optimize, hours=4), [slow_and_cheap, quick_and_dear]).ranked[0].place.backend

    assert (first("cost"), first("speed")) == ("slow", "quick")


def test_a_preferred_provider_wins_where_little_lies_between() -> None:
    route = recommend(Work(preferred_provider="B"), [place("a"), place("b", 1.05)])
    assert route.ranked[0].place.backend == "b"


def test_data_that_has_to_move_costs_time_and_money() -> None:
    far = place(bandwidth_gbps=1.0)
    still, moving = cost_of(Work(hours=1), far), cost_of(Work(hours=1, dataset_gb=450.0), far)
    assert still is not None and moving is not None
    assert (still.total, moving.total) == (usd(1), usd(2))
    (one,) = recommend(Work(hours=1, dataset_gb=450.0), [far]).ranked
    assert "the data takes about 60 min to get there" in one.cons


def test_results_that_leave_a_place_cost_what_its_provider_charges() -> None:
    dear, unknown = place(egress_per_gb=usd(0.09)), place("b", egress_per_gb=None)
    work = Work(hours=1, results_gb=100.0)
    cost = cost_of(work, dear)
    assert cost is not None and (cost.total, cost.low) == (usd(10), usd(9.85))
    said = {one.place.backend: one.cons for one in recommend(work, [dear, unknown]).ranked}
    assert "9.00 of the cost is for results that leave it" in said[dear.backend]
    assert "what it charges for results that leave it is not known" in said["b"]
    assert not any("results" in word for one in recommend(Work(hours=1), [dear, unknown]).ranked for word in one.cons)


def test_a_run_without_a_length_has_no_total_and_little_confidence() -> None:
    (one,) = recommend(Work(), [place()]).ranked
    assert (one.cost, one.confidence) == (None, "low")


@pytest.mark.parametrize(
    ("work", "where", "rate", "expected"),
    [
        ({"hours": 1}, Where.MARKET, 0.0, "high"),
        ({"hours": 1}, Where.ELSEWHERE, 0.0, "medium"),
        ({"hours": 1, "hours_from": "history"}, Where.ELSEWHERE, 0.0, "low"),
        ({"hours": 1, "interruptible": True}, Where.ELSEWHERE, 0.1, "low"),
    ],
)
def test_confidence_falls_with_what_is_not_known(
    work: dict[str, Any], where: Where, rate: float, expected: str
) -> None:
    (one,) = recommend(Work(**work), [place(where=where, interruptions_per_hour=rate)]).ranked
    assert one.confidence == expected


def test_interruptions_cost_the_work_since_the_last_checkpoint() -> None:
    spot = place(interruptions_per_hour=0.1)
    often = cost_of(Work(hours=10, interruptible=True, checkpoint_minutes=10), spot)
    never = cost_of(Work(hours=10, interruptible=True), spot)
    assert often is not None and never is not None
    assert often.total == usd(10 + (360 + 300) / 3600)
    assert never.total > often.total


PLACES = st.builds(
    place,
    st.text("abcdefgh", min_size=1, max_size=3),
    st.floats(0, 50),
    gpu=st.sampled_from(["h100", "a100-80"]),
    gpu_count=st.integers(0, 8),
    gpu_memory_gib=st.sampled_from([None, 24.0, 80.0]),
    status=st.sampled_from(["available", "busy", "unavailable"]),
    frameworks=st.sampled_from([(), ("pytorch",), ("jax",)]),
    not_usable=st.sampled_from(["", "not connected"]),
    interruptions_per_hour=st.sampled_from([0.0, 0.1]),
    start_s=st.sampled_from([(0.0, 0.0), (300.0, 600.0)]),
)
WORKS = st.builds(
    Work,
    gpus=st.integers(1, 8),
    gpu=st.sampled_from([None, "h100"]),
    gpu_memory_gib=st.sampled_from([None, 40.0]),
    framework=st.sampled_from([None, "pytorch"]),
    hours=st.sampled_from([None, 0.5, 12.0]),
    max_cost_per_hour=st.sampled_from([None, usd(10)]),
    interruptible=st.booleans(),
    optimize=st.sampled_from(["balanced", "cost", "speed"]),
)


@given(WORKS, st.lists(PLACES, max_size=6, unique_by=lambda one: one.backend))
def test_nothing_that_lacks_something_is_ever_chosen(work: Work, places: list[Place]) -> None:
    route = recommend(work, places)
    assert len(route.ranked) + len(route.refused) == len(places)
    assert all(excluded(work, one.place) == "" for one in route.ranked)
    assert all(excluded(work, one.place) == one.reason != "" for one in route.refused)
    if route.chosen is not None:
        assert route.chosen.place.not_usable == "" and route.chosen.place.status == "available"
        assert route.chosen.place.gpu_count >= work.gpus


@given(WORKS, st.lists(PLACES, max_size=6, unique_by=lambda one: one.backend), PLACES)
def test_a_place_that_lacks_something_never_changes_the_order(work: Work, places: list[Place], more: Place) -> None:
    added = replace(more, backend="zzzz", status="unavailable")
    before, after = recommend(work, places), recommend(work, [added, *places])
    assert [one.place.backend for one in before.ranked] == [one.place.backend for one in after.ranked]


@given(WORKS, st.lists(PLACES, max_size=6, unique_by=lambda one: one.backend), st.randoms())
def test_the_order_of_the_places_does_not_matter(work: Work, places: list[Place], chance: Any) -> None:
    mixed = list(places)
    chance.shuffle(mixed)
    assert recommend(work, places) == recommend(work, mixed)


@given(WORKS, PLACES)
def test_the_interval_holds_the_middle(work: Work, one: Place) -> None:
    cost = cost_of(work, one)
    assert cost is None or 0 <= cost.low <= cost.total <= cost.high


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (5_399, "90 min"), (9_000, "2.5 h")]
)
def test_times_are_written_as_people_say_them(seconds: float, text: str) -> None:
    assert span(seconds) == text
