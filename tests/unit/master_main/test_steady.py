"""The Master's clock does not jump: years forward, years back, and seconds of every day."""

import itertools
from collections.abc import Mapping

import pytest

from tests.master_support import START_NS, ManualClock
from windrow_master.app.clock import AHEAD_NS_MAX, BEHIND_NS_MAX, STATED_NS, SteadyClock
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import Unavailable
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

YEARS = 10 * 365 * DAY


class Jumping(ManualClock):
    """A machine whose wall clock is set by somebody."""

    def jump(self, by_ns: int) -> None:
        self._wall_ns += by_ns


@pytest.mark.parametrize("jump_ns", [YEARS, -YEARS, 2 * HOUR, -2 * HOUR])
def test_a_jump_moves_nothing_and_time_goes_on(jump_ns: int) -> None:
    machine = Jumping()
    clock = SteadyClock(machine)
    machine.jump(jump_ns)
    assert clock.wall_ns() == START_NS
    for _ in range(60):
        machine.advance(SECOND)
        clock.wall_ns()
    assert abs(clock.wall_ns() - START_NS - MINUTE) <= SECOND
    assert abs(clock.off_ns - jump_ns) <= SECOND


@pytest.mark.parametrize("jump_ns", [YEARS, -YEARS])
def test_a_jump_is_stated_with_the_way_out_and_no_more_once_it_is_taken_back(jump_ns: int) -> None:
    machine = Jumping()
    clock = SteadyClock(machine)
    assert not list(clock.conditions())
    machine.jump(jump_ns)
    machine.advance(SECOND)
    ((code, detail, since_ns),) = clock.conditions()
    assert code is ConditionCode.MASTER_CLOCK_JUMPED and "3649 days" in detail
    assert ("ahead" if jump_ns > 0 else "behind") in detail and abs(since_ns - START_NS) <= 2 * SECOND
    machine.jump(-jump_ns)
    machine.advance(5 * SECOND)
    assert not list(clock.conditions())
    assert clock.wall_ns() == machine.wall_ns()


def test_small_steps_are_followed_at_once_and_never_backwards() -> None:
    machine = Jumping()
    clock = SteadyClock(machine)
    machine.jump(SECOND // 2)
    assert clock.wall_ns() == START_NS + SECOND // 2
    machine.jump(-SECOND // 2)
    assert clock.wall_ns() == START_NS + SECOND // 2
    machine.advance(SECOND)
    assert clock.wall_ns() == machine.wall_ns()


def test_an_hour_in_which_the_machine_stood_still_is_caught_up_with_in_days() -> None:
    machine = Jumping()
    clock = SteadyClock(machine)
    machine.jump(HOUR)
    seen = [clock.wall_ns()]
    for _ in range(3 * 24 * 60):
        machine.advance(MINUTE)
        seen.append(clock.wall_ns())
    steps = [after - before for before, after in itertools.pairwise(seen)]
    assert max(steps) <= MINUTE + MINUTE // 64 + SECOND
    assert abs(clock.off_ns) < STATED_NS


@pytest.mark.parametrize("off_ns", [-YEARS, -BEHIND_NS_MAX - SECOND, AHEAD_NS_MAX + SECOND, YEARS])
def test_a_start_under_a_clock_that_cannot_be_right_is_refused_unless_a_person_says_it_is(off_ns: int) -> None:
    with pytest.raises(Unavailable, match="WINDROW_ACCEPT_CLOCK=on"):
        SteadyClock(ManualClock()).resume(START_NS - off_ns)
    SteadyClock(ManualClock(), accepted=True).resume(START_NS - off_ns)


@pytest.mark.parametrize("off_ns", [0, 7 * DAY, AHEAD_NS_MAX])
def test_a_start_after_a_pause_takes_the_machines_clock(off_ns: int) -> None:
    clock = SteadyClock(ManualClock())
    clock.resume(START_NS - off_ns)
    clock.resume(None)
    assert clock.wall_ns() == START_NS


@pytest.mark.parametrize("last_ago_ns", [0, MINUTE, -MINUTE])
def test_a_master_that_waited_a_week_for_its_seat_leads_in_the_present(last_ago_ns: int) -> None:
    machine = ManualClock()
    clock = SteadyClock(machine)
    machine.advance(7 * DAY)
    clock.resume(machine.wall_ns() - last_ago_ns)
    assert clock.wall_ns() == machine.wall_ns() + max(0, -last_ago_ns)
    machine.advance(SECOND)
    assert abs(clock.off_ns) <= max(0, -last_ago_ns)


def test_a_start_a_little_before_the_last_entry_goes_on_from_that_entry() -> None:
    clock = SteadyClock(ManualClock())
    clock.resume(START_NS + 10 * MINUTE)
    assert clock.wall_ns() == START_NS + 10 * MINUTE


@pytest.mark.parametrize("failure", [Unavailable(), ZeroDivisionError("of one event")], ids=["expected", "bug"])
async def test_each_jump_and_its_end_are_told_once_even_if_the_first_try_fails(failure: Exception) -> None:
    machine, told, looks = Jumping(), [], iter([0, YEARS, 0, 0, -YEARS, 0])
    clock = SteadyClock(machine)

    class Enough(Exception):
        """The looks are over."""

    async def sleep_ns(duration_ns: int) -> None:
        machine.advance(duration_ns)
        try:
            machine.jump(next(looks))
        except StopIteration:
            raise Enough from None

    async def tell(kind: str, text: str, fields: Mapping[str, str]) -> None:
        told.append(kind)
        if len(told) == 1:
            raise failure

    machine.sleep_ns = sleep_ns  # type: ignore[method-assign]
    with pytest.raises(Enough):
        await clock.keep(tell)
    assert told == ["master_clock_jumped", "master_clock_jumped", "master_clock_agrees"]
