"""Requests say where hosts are and how good; a refusal names the host's own value, the nearest and what to change."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.placement.test_plan import OWNER, RENTER, cpu, gpu, host, placed, request
from windrow_master.clusters.model import ClusterRequest
from windrow_master.clusters.request import checked
from windrow_master.fleet.distances import HOSTS_MAX, distance, distances
from windrow_master.placement.model import Candidate, Obstacle, Placement, Refusal, Snapshot
from windrow_master.placement.plan import plan
from windrow_master.placement.record import parse_record, record_bytes
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import ClusterId
from windrow_proto.units import MILLISECOND

HERE = host(
    "here",
    cpu("here"),
    region="eu-2",
    country="DE",
    labels=("disk=nvme", "quiet"),
    bandwidth_mbps=400,
    near_ms=42,
    reliability_percent=97,
)
UNKNOWN = host("unknown", cpu("unknown"), owner_account=RENTER)


def refused(asked: dict[str, object], *hosts: Candidate) -> Refusal:
    answer = plan(request(**asked), Snapshot(hosts))
    assert isinstance(answer, Refusal)
    return answer


@pytest.mark.parametrize(
    ("field", "fits", "fails", "obstacle", "reason", "way", "changes"),
    [
        (
            *("region", "eu-2", "eu-1", Obstacle.REGION),
            "not in the region eu-1 (in eu-2, 42 ms away)",
            *("in the region eu-2 instead of eu-1", "eu-2"),
        ),
        (
            *("near", "eu-1:42", "eu-1", Obstacle.NEAR),
            "more than 30 ms from eu-1 (in eu-2, 42 ms away)",
            *("within 42 ms of eu-1 instead of 30 ms", "eu-1:42"),
        ),
        (
            *("country", "DE", "FR", Obstacle.COUNTRY),
            "not in the country FR (in DE)",
            *("in the country DE instead of FR", "DE"),
        ),
        (
            *("provider_id", str(OWNER), str(RENTER), Obstacle.PROVIDER),
            *("not of the provider that you name", "of another provider", None),
        ),
        (
            *("labels", ("quiet",), ("quiet", "rack=7"), Obstacle.LABEL),
            "without the label rack=7 (it has disk=nvme, quiet)",
            *("without the label rack=7", ("quiet",)),
        ),
        (
            *("min_bandwidth_mbps", 400, 401, Obstacle.BANDWIDTH),
            "too little bandwidth (400 Mbit/s, you ask for 401)",
            *("with 400 Mbit/s instead of 401", 400),
        ),
        (
            *("min_reliability_percent", 97, 98, Obstacle.RELIABILITY),
            "not reliable enough (97 %, you ask for 98 %)",
            *("with 97 % reliability instead of 98 %", 97),
        ),
        (
            *("verified", False, True, Obstacle.UNVERIFIED),
            "not verified (now unverified)",
            *("on a host that is not verified", False),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.islower() else "",
)
def test_each_field_is_kept_refused_and_relaxed(field, fits, fails, obstacle, reason, way, changes) -> None:
    assert isinstance(plan(request(**{field: fits}), Snapshot((HERE,))), Placement)
    refusal = refused({field: fails}, HERE)
    (found,), (told,) = refusal.reasons, refusal.ways
    assert (found.code, found.reason) == (obstacle, reason)
    assert told.text == f"Fits on here {way}, for 0.02 per hour"
    assert told.changes == {field: changes}
    assert placed(plan(request(**{field: fails, **told.changes}), Snapshot((HERE,)))).chosen.host_name == "here"


@pytest.mark.parametrize(
    ("asked", "reason", "way"),
    [
        ({"region": "eu-1"}, "not in the region eu-1 (its own is not known)", "in any region"),
        ({"near": "eu-1"}, "its distance from eu-1 is not measured (in no region)", "at any distance from eu-1"),
        ({"country": "DE"}, "not in the country DE (nobody says where)", "in any country"),
        ({"labels": ("quiet",)}, "without the label quiet (it has none)", "without the label quiet"),
        ({"min_bandwidth_mbps": 1}, "too little bandwidth (not measured)", "with bandwidth that is not measured"),
        (
            {"min_reliability_percent": 1},
            "not reliable enough (too little was seen of it)",
            "with reliability that is not known",
        ),
    ],
    ids=str,
)
def test_what_is_not_known_is_said_as_such(asked: dict[str, object], reason: str, way: str) -> None:
    refusal = refused(asked, UNKNOWN)
    assert refusal.reasons[0].reason == reason
    assert f"Fits on unknown {way}, for" in refusal.ways[0].text


def test_the_nearest_that_has_it_is_told_with_its_milliseconds() -> None:
    far = host("far", gpu(0, "far"), region="us-1", near_ms=95)
    near = host("near", gpu(0, "near", cents=900), region="eu-2", near_ms=12)
    bare = host("bare", cpu("bare"), region="eu-3", near_ms=5)
    refusal = refused({"gpus": 1, "near": "eu-1:10"}, far, near, bare)
    assert refusal.detail == (
        "No host of this market has 1 x GPU within 10 ms of eu-1, free or not: it can run only when one joins. "
        "The nearest elsewhere is eu-2, 12 ms from eu-1."
    )
    assert not refusal.is_possible
    assert [one.text for one in refusal.reasons] == [
        "2 hosts: more than 10 ms from eu-1 (nearest: near, in eu-2, 12 ms away)",
        "bare: no GPU",
    ]
    first, *_ = refusal.ways
    assert first.text == "Fits on near within 12 ms of eu-1 instead of 10 ms, for 9.00 per hour", "the nearest first"
    named = refused({"gpus": 1, "region": "eu-1"}, far, near)
    assert named.detail.endswith("The nearest elsewhere is eu-2, 12 ms from eu-1.")


def test_a_distance_that_nobody_may_ask_for_is_left_out_of_the_request() -> None:
    (way,) = refused({"near": "eu-1"}, replace(HERE, near_ms=1500)).ways
    assert (way.changes, way.text[:36]) == ({"near": None}, "Fits on here at any distance from eu")


def test_a_region_that_is_only_busy_is_waited_for() -> None:
    busy = host("busy", replace(gpu(0, "busy"), taken="in use, running"), region="eu-1", near_ms=0)
    near = host("near", gpu(0, "near"), region="eu-2", near_ms=42)
    refusal = refused({"gpus": 1, "near": "eu-1"}, busy, near)
    assert refusal.is_possible
    assert refusal.detail == "No host can run this now: no free GPU. The nearest elsewhere is eu-2, 42 ms from eu-1."
    unmeasured = refused({"gpus": 1, "near": "eu-1"}, busy, replace(near, near_ms=None))
    assert unmeasured.detail.endswith("No host is in eu-1, and nobody has measured how far it is: hosts are in eu-2.")


def test_a_record_has_the_place_that_was_asked_for() -> None:
    asked = request(labels=("quiet",), near="eu-1:50", min_bandwidth_mbps=10)
    data = record_bytes(placed(plan(asked, Snapshot((HERE, UNKNOWN)))).decision)
    assert parse_record(data).request == asked


def test_the_distance_of_two_regions_is_the_median_of_what_hosts_measured_both_ways() -> None:
    regions = {"r1": "eu-1", "r2": "eu-2"}
    measured = [("eu-1", {"r1": 1, "r2": 11 * MILLISECOND}), ("eu-1", {"r2": 13 * MILLISECOND + 1})]
    found = distances(
        [*measured, ("eu-2", {"r1": 900 * MILLISECOND, "gone": 5}), ("", {"r1": 1}), ("eu-3", {})], regions
    )
    assert found == {("eu-1", "eu-2"): 14}
    assert [distance(found, *pair) for pair in (("eu-2", "eu-1"), ("eu-9", "eu-9"), ("eu-1", "eu-3"))] == [14, 0, None]
    crowd = [("eu-1", {"r2": MILLISECOND})] * HOSTS_MAX + [("eu-1", {"r2": 99 * MILLISECOND})] * 2 * HOSTS_MAX
    assert distances(crowd, regions) == {("eu-1", "eu-2"): 1}


TEXTS = st.text(max_size=8)
ABSURD = st.one_of(
    *(
        st.tuples(st.just("near"), one)
        for one in (st.just("eu-1:1001"), st.just("eu-1:-1"), st.just("a b"), st.just(""))
    ),
    st.tuples(st.just("near"), st.integers(1001, 10**9).map(lambda ms: f"eu-1:{ms}")),
    st.tuples(
        st.just("country"), TEXTS.filter(lambda text: not (len(text) == 2 and text.isascii() and text.isupper()))
    ),
    st.tuples(st.just("region"), st.sampled_from(["", "x" * 65, "a\0"])),
    st.tuples(st.just("provider_id"), st.sampled_from(["", "x" * 129])),
    st.tuples(
        st.just("labels"), st.sampled_from([("",), ("=",), ("a b",), ("-a",), ("a=",), tuple("abcdefghijklmnopq")])
    ),
    st.tuples(st.just("labels"), st.tuples(st.just("disk=nvme"), st.sampled_from(["disk=hdd", "disk", "disk=nvme"]))),
    st.tuples(st.just("min_bandwidth_mbps"), st.integers(max_value=0) | st.integers(1_000_001)),
    st.tuples(st.just("min_reliability_percent"), st.integers(max_value=0) | st.integers(101)),
)


@given(ABSURD)
def test_what_is_absurd_or_contradicts_itself_is_refused_by_its_name(given_value: tuple[str, object]) -> None:
    field, value = given_value
    asked: dict[str, Any] = {field: value}
    with pytest.raises(InvalidInput, match=f"^{field} must be") as refusal:
        checked(ClusterRequest(argv=("true",), **asked), ClusterId("cluster_1"))
    assert refusal.value.subject == field
