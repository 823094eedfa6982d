"""A purchase is believed made, gone or never made only by what its provider's lists prove, and ends in time."""

import pytest

from tests.unit.hybrid.purchases.examples import NOW, RULES, look, machine, offer, purchase
from windrow_master.hybrid.backends.port import Billing, MachineState
from windrow_master.hybrid.purchases.decide import (
    NEVER_JOINED,
    NO_WORK,
    TIME_IS_OVER,
    Effect,
    asked_to_end,
    begun,
    decide,
    idle_until_ns,
    paid_until_ns,
)
from windrow_master.hybrid.purchases.states import FINAL, PAID, State
from windrow_proto.ids import HostId
from windrow_proto.units import HOUR, MINUTE, SECOND

HOST = HostId("host_1")
LAG = RULES.list_lag_ns
GONE = machine(MachineState.TERMINATED, ended_at_ns=NOW + MINUTE)


# --- doubt ---


def test_an_answer_that_was_lost_is_no_refusal_before_lag_late_creation_and_time_out_have_passed() -> None:
    asked = purchase(State.DOUBTFUL)
    early = NOW + RULES.doubt_ns - SECOND
    assert decide(asked, look(early), RULES, early).purchase.state is State.DOUBTFUL
    late = NOW + RULES.doubt_ns
    assert decide(asked, look(late), RULES, late).purchase.state is State.NEVER_MADE


def test_a_list_that_does_not_come_ends_no_doubt() -> None:
    late = NOW + HOUR
    assert decide(purchase(State.DOUBTFUL), look(late, is_answered=False), RULES, late).purchase.state is State.DOUBTFUL


def test_a_list_that_was_asked_for_in_time_and_came_late_ends_no_doubt() -> None:
    assert decide(purchase(State.DOUBTFUL), look(NOW + MINUTE), RULES, NOW + HOUR).purchase.state is State.DOUBTFUL


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (MachineState.PENDING, State.BOOTING),
        (MachineState.RUNNING, State.BOOTING),
        (MachineState.TERMINATED, State.ENDING),
    ],
)
@pytest.mark.parametrize("before", [State.ASKING, State.DOUBTFUL])
def test_a_machine_with_its_tag_ends_the_doubt_whatever_its_state(
    before: State, shown: MachineState, state: State
) -> None:
    found = decide(purchase(before), look(NOW + MINUTE, machine(shown)), RULES, NOW + MINUTE).purchase
    assert (found.state, found.machine_id) == (state, "i-1")


def test_what_a_master_asked_that_died_is_in_doubt_from_now_on() -> None:
    found = decide(purchase(State.ASKING), look(NOW + HOUR), RULES, NOW + HOUR).purchase
    assert (found.state, found.asked_at_ns) == (State.DOUBTFUL, NOW + HOUR)


def test_what_is_wanted_is_not_asked_for_after_its_time() -> None:
    wanted = purchase(State.WANTED)
    assert begun(wanted, NOW + HOUR, 3).state is State.ASKING
    assert begun(wanted, NOW + 2 * HOUR, 3).state is State.NEVER_MADE
    assert decide(wanted, look(NOW + HOUR), RULES, NOW + HOUR).purchase is wanted
    assert decide(wanted, look(NOW, is_answered=False), RULES, NOW + 2 * HOUR).purchase.state is State.NEVER_MADE


def test_one_that_is_to_end_while_in_doubt_is_ended_as_soon_as_it_is_found() -> None:
    told = asked_to_end(purchase(State.DOUBTFUL), NOW + SECOND, "by hand").purchase
    ended = decide(told, look(NOW + MINUTE, machine()), RULES, NOW + MINUTE)
    assert (told.state, ended.purchase.state, ended.purchase.reason) == (State.DOUBTFUL, State.ENDING, "by hand")
    assert Effect.TERMINATE in ended.effects


# --- the end ---


def test_it_is_gone_when_two_lists_say_so_a_list_lag_apart() -> None:
    first = decide(purchase(State.ENDING), look(NOW + MINUTE, GONE), RULES, NOW + MINUTE).purchase
    soon = NOW + MINUTE + LAG - SECOND
    assert decide(first, look(soon, GONE), RULES, soon).purchase.state is State.ENDING
    later = NOW + MINUTE + LAG
    second = decide(first, look(later, GONE), RULES, later)
    assert (second.purchase.state, second.effects) == (State.GONE, (Effect.BOOK,))
    assert second.purchase.ended_at_ns == GONE.ended_at_ns


def test_one_list_that_shows_it_alive_again_begins_anew() -> None:
    now = NOW + MINUTE
    first = decide(purchase(State.ENDING), look(now, GONE), RULES, now).purchase
    alive = decide(first, look(now + LAG, machine()), RULES, now + LAG)
    assert alive.effects == (Effect.TERMINATE,)
    again = decide(alive.purchase, look(now + 2 * LAG, GONE), RULES, now + 2 * LAG).purchase
    assert (again.state, again.gone_since_ns) == (State.ENDING, now + 2 * LAG)


def test_a_list_that_does_not_show_it_has_to_repeat_that_for_longer() -> None:
    seen = purchase(State.ENDING, seen_at_ns=NOW)
    first = decide(seen, look(NOW + MINUTE), RULES, NOW + MINUTE)
    assert first.effects == (Effect.TERMINATE,)
    at = NOW + MINUTE + LAG
    assert decide(first.purchase, look(at), RULES, at).purchase.state is State.ENDING
    at += RULES.margin_ns
    assert decide(first.purchase, look(at), RULES, at).purchase.state is State.GONE


def test_a_new_machine_that_no_list_shows_yet_is_not_gone() -> None:
    now = NOW + RULES.doubt_ns - SECOND
    assert decide(purchase(State.ENDING), look(now), RULES, now).purchase.gone_since_ns is None


def test_its_end_is_asked_for_again_until_it_is_gone() -> None:
    for at in (NOW + MINUTE, NOW + HOUR):
        for is_answered in (True, False):
            found = machine() if is_answered else None
            look_then = look(at, found, is_answered=is_answered)
            assert decide(purchase(State.ENDING), look_then, RULES, at).effects == (Effect.TERMINATE,)


@pytest.mark.parametrize("state", [one for one in PAID if one is not State.ENDING])
def test_its_providers_word_outranks_all_else_and_its_host_is_lost_at_once(state: State) -> None:
    now = NOW + MINUTE
    found = decide(purchase(state, host_id=HOST), look(now, GONE, is_busy=True), RULES, now)
    assert found.purchase.state is State.ENDING
    assert Effect.LOSE_HOST in found.effects


def test_one_that_is_stopped_is_ended_since_its_disk_is_paid_for() -> None:
    found = decide(purchase(State.SERVING), look(NOW + MINUTE, machine(MachineState.STOPPED)), RULES, NOW + MINUTE)
    assert (found.purchase.state, found.effects) == (State.ENDING, (Effect.TERMINATE,))


@pytest.mark.parametrize("state", [one for one in PAID if one is not State.ENDING])
def test_its_time_ends_it_even_where_no_list_comes(state: State) -> None:
    now = NOW + 2 * HOUR
    found = decide(purchase(state), look(now, is_answered=False, is_busy=True), RULES, now)
    assert (found.purchase.state, Effect.TERMINATE in found.effects) == (State.ENDING, True)


def test_its_work_has_a_moment_to_leave_before_its_time_is_over() -> None:
    now = NOW + 2 * HOUR - RULES.drain_ns
    found = decide(purchase(State.SERVING, host_id=HOST), look(now, machine(), is_busy=True), RULES, now)
    assert (found.purchase.state, found.effects) == (State.DRAINING, (Effect.DRAIN_HOST,))
    assert found.purchase.reason == TIME_IS_OVER


def test_one_that_drains_is_ended_when_its_work_has_left_or_its_moment_is_over() -> None:
    drains = purchase(State.DRAINING, host_id=HOST)
    now = NOW + RULES.drain_ns - SECOND
    assert decide(drains, look(now, machine(), is_busy=True), RULES, now).purchase.state is State.DRAINING
    assert decide(drains, look(now, machine()), RULES, now).purchase.state is State.ENDING
    now += SECOND
    assert decide(drains, look(now, machine(), is_busy=True), RULES, now).purchase.state is State.ENDING


@pytest.mark.parametrize("state", FINAL)
def test_one_that_was_believed_over_and_is_alive_is_ended(state: State) -> None:
    found = decide(purchase(state), look(NOW + HOUR, machine()), RULES, NOW + HOUR)
    assert (found.purchase.state, found.effects) == (State.ENDING, (Effect.TERMINATE,))
    assert not decide(purchase(state), look(NOW + HOUR, GONE), RULES, NOW + HOUR).effects


# --- boot and idleness ---


def test_one_whose_agent_does_not_join_in_time_is_ended_and_its_console_kept() -> None:
    now = NOW + RULES.boot_ns
    assert decide(purchase(), look(now - 1, machine()), RULES, now - 1).purchase.state is State.BOOTING
    found = decide(purchase(), look(now, machine()), RULES, now)
    assert (found.purchase.reason, found.effects) == (NEVER_JOINED, (Effect.KEEP_CONSOLE, Effect.TERMINATE))


def test_one_whose_agent_joined_serves_rests_and_serves_again() -> None:
    one, states = purchase(host_id=HOST), list[State]()
    for minute, is_busy in enumerate((False, True, True, False, True), 1):
        at = NOW + minute * MINUTE
        one = decide(one, look(at, machine(), is_busy=is_busy), RULES, at).purchase
        states.append(one.state)
    assert states == [State.JOINED, State.SERVING, State.SERVING, State.IDLE, State.SERVING]
    assert one.idle_ns == 2 * MINUTE


def test_nothing_idles_past_the_limit() -> None:
    idle = purchase(State.IDLE, host_id=HOST, idle_since_ns=NOW + MINUTE, launched_at_ns=NOW)
    until = idle_until_ns(idle, RULES)
    assert until <= NOW + MINUTE + RULES.idle_ns
    found = decide(idle, look(until, machine()), RULES, until)
    assert (found.purchase.state, found.purchase.reason) == (State.DRAINING, NO_WORK)
    assert found.effects == (Effect.DRAIN_HOST,)


@pytest.mark.parametrize(
    ("billing", "since_min", "until_min"),
    [
        (Billing(1, 60), 10, 15),  # by the second: a short rest
        (Billing(3600, 3600), 35, 59),  # by the hour: until just before the next one
        (Billing(3600, 3600), 10, 40),  # and never past the limit
        (Billing(3600, 3600), 57, 62),
    ],
)
def test_time_that_is_paid_for_anyway_is_waited_for(billing: Billing, since_min: int, until_min: int) -> None:
    since = NOW + since_min * MINUTE
    idle = purchase(State.IDLE, offer=offer(billing=billing), idle_since_ns=since, launched_at_ns=NOW)
    assert idle_until_ns(idle, RULES) == NOW + until_min * MINUTE


def test_one_that_had_no_work_yet_waits_for_it_up_to_the_limit() -> None:
    joined = purchase(State.JOINED, idle_since_ns=NOW + MINUTE, launched_at_ns=NOW)
    assert idle_until_ns(joined, RULES) == NOW + MINUTE + RULES.idle_ns


@pytest.mark.parametrize(("used_s", "paid_s"), [(0, 60), (59, 60), (60, 60), (61, 61)])
def test_a_minute_at_least_is_paid_for(used_s: int, paid_s: int) -> None:
    assert paid_until_ns(NOW, NOW + used_s * SECOND, Billing(1, 60)) == NOW + paid_s * SECOND
