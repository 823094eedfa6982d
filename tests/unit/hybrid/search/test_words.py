"""The sentences about work that waits for a place elsewhere, or runs there."""

from dataclasses import replace
from typing import Any

import pytest

from windrow_master.hybrid.search import words
from windrow_master.hybrid.search.model import Search, Try, TryState
from windrow_master.jobs.model import AttemptPlace, JobRequest
from windrow_proto.ids import AccountId
from windrow_proto.units import MINUTE, SECOND, parse_money

NOW = 1_800_000_000 * SECOND
"""08:00 UTC."""
PLACE = AttemptPlace(
    backend="aws",
    machine="g5.xlarge",
    region="eu-central-1",
    zone="eu-central-1b",
    is_spot=True,
    price_per_hour=parse_money("0.42"),
    currency="USD",
    purchase_id="purchase_2",
)
RUN = replace(
    PLACE, backend="modal", is_service=True, machine="A10", region="", zone="", purchase_id="", run_id="purchase_2"
)
ASKED = JobRequest(argv=("x",), backend="aws", spot=True)


def search(state: TryState, place: AttemptPlace = PLACE, **more: Any) -> Search:
    """One whose last try was begun a minute ago."""
    first = replace(PLACE, zone="eu-central-1a", purchase_id="purchase_1")
    at: dict[str, Any] = {"at_ns": NOW - MINUTE, "since_ns": NOW - MINUTE}
    tries = (
        Try(number=1, place=first, offer_id="a", state=TryState.FAILED, said="no capacity.", **at),
        Try(number=2, place=place, offer_id="b", state=state, **at),
    )
    return Search(entry_id="job_1", account_id=AccountId("account_1"), tries=tries, tried=2, **more)


def test_work_that_waits_for_a_machine_says_which_since_when_and_until_when() -> None:
    waiting = search(TryState.BOOTING)
    said = words.told(waiting, NOW)
    assert said is not None
    assert said.has_place
    assert said.short == "a machine is being bought at aws eu-central-1b"
    assert "g5.xlarge, spot, 0.42 USD an hour): asked 60 s ago, it boots." in said.why
    assert words.start(waiting, NOW) == ["It is expected to start there at about 08:05 UTC."]
    assert words.changes(waiting, ASKED, NOW) == [
        "Its machine has until 08:14 UTC to join; then it is ended, and the next place is tried.",
        "A host of this market that has room for it first starts it, and the machine is ended.",
    ]


@pytest.mark.parametrize(
    ("state", "place", "says"),
    [
        (TryState.ASKING, PLACE, "If aws eu-central-1b gives no machine, the next place is tried."),
        (TryState.READY, PLACE, "it starts there next; from 08:04 UTC on, the next place is tried."),
        (TryState.BOOTING, RUN, "If the run does not begin at modal, the next place is tried."),
    ],
)
def test_what_ends_the_wait_is_said_for_each_state_of_a_try(state: TryState, place: AttemptPlace, says: str) -> None:
    assert words.changes(search(state, place), ASKED, NOW)[0].endswith(says)


def test_an_estimate_that_has_passed_is_not_told() -> None:
    assert words.start(search(TryState.BOOTING), NOW + 10 * MINUTE) == []


def test_work_for_which_nothing_was_had_says_why_when_it_is_tried_again_and_with_what_it_could_go_elsewhere() -> None:
    paused = search(TryState.FAILED, next_at_ns=NOW + 5 * MINUTE, said="at aws eu-central-1a, no capacity")
    said = words.told(paused, NOW)
    assert said is not None
    assert not said.has_place
    assert said.short == "no place at aws either, tried again at 08:05 UTC"
    assert said.why == (
        "There is no room here, and no place at aws: at aws eu-central-1a, no capacity. "
        "All places are tried again at 08:05 UTC."
    )
    tried_again = "All places are tried again at 08:05 UTC."
    assert words.changes(paused, replace(ASKED, backend="any"), NOW) == [tried_again]
    assert words.changes(paused, replace(ASKED, spot=False), NOW) == [
        tried_again,
        "With --spot, spot machines are tried, too.",
        "With --backend any, each backend that its project may use is tried.",
    ]
    assert (words.told(paused, NOW + 6 * MINUTE), words.changes(paused, ASKED, NOW + 6 * MINUTE)) == (None, [])


def test_work_that_runs_elsewhere_says_where_why_and_what_was_tried_before() -> None:
    tries = search(TryState.USED).tries
    assert words.here(PLACE, tries, ASKED, is_over=False) == [
        "It runs on a machine that was bought for it at aws eu-central-1b, spot g5.xlarge (0.42 USD an hour), "
        "since this market had no room for it.",
        "Tried before: aws eu-central-1a, spot g5.xlarge (0.42 USD an hour): no capacity.",
    ]
    as_run = words.here(RUN, search(TryState.USED, RUN).tries, replace(ASKED, optimize="cost"), is_over=True)
    assert as_run[0].startswith("It ran as a run at modal, spot A10 ")
    assert as_run[0].endswith("since the lowest cost was asked for.")
    assert words.here(PLACE, (), ASKED, is_over=False)[0].startswith(
        "It runs on a machine that was bought for other work of its project: aws"
    )
