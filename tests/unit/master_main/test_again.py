"""Work in turns: what one of them meets does not end the ones after it, and a bug met each time is met less often."""

import asyncio
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from tests.master_support import ManualClock
from windrow_master.loops import again, ends_alone, pause_after
from windrow_proto.errors import StorageFailed, Unavailable
from windrow_proto.units import DAY, HOUR, MILLISECOND, MINUTE, SECOND

BUG, WORLD, WELL = ZeroDivisionError("of one row"), StorageFailed("for a moment"), None


class Enough(Exception):
    """The turns are over."""


class Pauses(ManualClock):
    """A clock that takes down how long is waited, and ends the work after so many times."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.waited_ns = most, list[int]()

    async def sleep_ns(self, duration_ns: int) -> None:
        self.waited_ns.append(duration_ns)
        if len(self.waited_ns) == self.most:
            raise Enough


async def pauses(meets: Sequence[Exception | None], pause_ns: int) -> list[int]:
    """How long is waited after each of these turns, in usual pauses."""
    left, clock = iter(meets), Pauses(len(meets))

    async def turn() -> None:
        await asyncio.sleep(0)
        if (error := next(left)) is not None:
            raise error

    with pytest.raises(Enough):
        await again(turn, pause_ns, clock, "rows")
    return [waited_ns // pause_ns for waited_ns in clock.waited_ns]


async def test_a_turn_that_fails_and_one_that_crashes_are_followed_by_the_next_in_its_time() -> None:
    assert await pauses([WORLD, BUG, WELL, WELL], SECOND) == [1, 1, 1, 1]


async def test_a_bug_that_is_met_each_turn_is_met_less_often_and_no_less_often_than_that() -> None:
    assert await pauses([BUG] * 9, SECOND) == [1, 2, 4, 8, 16, 32, 32, 32, 32]


@pytest.mark.parametrize("end", [WELL, WORLD], ids=["well", "refused"])
async def test_a_turn_without_a_bug_brings_the_usual_pause_back(end: Exception | None) -> None:
    assert await pauses([BUG, BUG, BUG, end, end, BUG, BUG], SECOND) == [1, 2, 4, 1, 1, 1, 2]


async def test_what_the_world_refuses_is_tried_again_as_often_as_ever() -> None:
    assert await pauses([WORLD, Unavailable()] * 8, SECOND) == [1] * 16


@pytest.mark.parametrize(
    ("pause_ns", "longest_ns"),
    [(MILLISECOND, 32 * MILLISECOND), (SECOND, 32 * SECOND), (5 * SECOND, MINUTE), (MINUTE, MINUTE), (HOUR, HOUR)],
)
def test_no_pause_is_longer_than_a_minute_or_shorter_than_usual(pause_ns: int, longest_ns: int) -> None:
    assert pause_after(0, pause_ns) == pause_after(1, pause_ns) == pause_ns
    assert pause_after(DAY, pause_ns) == longest_ns


@pytest.mark.parametrize(("error", "event"), [(BUG, "rows_crashed"), (WORLD, "rows_failed")], ids=["bug", "world"])
def test_what_ends_alone_is_logged_by_what_it_met_and_what_comes_after_it_goes_on(error: Exception, event: str) -> None:
    reached = ["before"]
    with capture_logs() as said, ends_alone("rows", host_id="host_1"):
        raise error
    reached.append("after")
    assert [(line["event"], line["host_id"], "exc_info" in line) for line in said] == [(event, "host_1", error is BUG)]
    assert reached == ["before", "after"]


def test_a_cancellation_ends_what_is_around_it_too() -> None:
    with pytest.raises(asyncio.CancelledError), ends_alone("rows"):
        raise asyncio.CancelledError
