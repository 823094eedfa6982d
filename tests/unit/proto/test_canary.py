"""Counts of both ends of a connection, compared over a second way: who is honest is never accused."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_proto.canary import (
    KEPT_MAX,
    STRIKES,
    AgentCanary,
    Canary,
    CanaryReply,
    Heard,
    MasterCanary,
    Outflow,
    Sent,
    Tally,
)
from windrow_proto.model import Lane
from windrow_proto.wire_link import encode_canary_reply

LANES = st.sampled_from([Lane.CONTROL, Lane.EVIDENCE])


class Both:
    """Two ends, and a first Access between them that keeps what it likes."""

    def __init__(self) -> None:
        self.agent_tally, self.master_tally = Tally(), Tally()
        self.agent, self.master = AgentCanary(self.agent_tally), MasterCanary(self.master_tally)
        self.outflow = Outflow()
        self.sequences = {(up, lane): 1000 * lane for up in (True, False) for lane in Lane}

    def say(self, up: bool, lane: Lane, *, is_kept: bool = False) -> tuple[Tally, Lane, int]:
        """Send one; returns how it is heard, if it is kept."""
        sender, hearer = (self.agent_tally, self.master_tally) if up else (self.master_tally, self.agent_tally)
        self.sequences[up, lane] += 1
        sender.count_sent(lane, self.sequences[up, lane])
        if not is_kept:
            hearer.count_heard(lane, self.sequences[up, lane])
        return hearer, lane, self.sequences[up, lane]

    def ask(self) -> bool:
        return self.agent.on_reply(self.master.judge(self.agent.next(), self.outflow))

    def sample(self, *, is_kept: bool = False) -> None:
        """Send telemetry."""
        self.say(True, Lane.TELEMETRY, is_kept=is_kept)

    def report(self, *, waits: bool = False, shed: int = 0) -> None:
        """The Access says what waits in it, and how many frames it has shed since it said so last."""
        self.outflow = Outflow(self.outflow.empty + (not waits), self.outflow.shed + shed)


@given(st.lists(st.lists(st.tuples(st.booleans(), LANES), max_size=5), min_size=1, max_size=12))
def test_an_access_that_passes_everything_on_is_never_accused(rounds: list[list[tuple[bool, Lane]]]) -> None:
    both = Both()
    for said in rounds:
        for up, lane in said:
            both.say(up, lane)
        reply = both.master.judge(both.agent.next())
        assert not reply.is_kept_back
        assert not both.agent.on_reply(reply)


@given(st.booleans(), LANES, st.integers(0, 5), st.integers(0, 20))
def test_one_message_kept_back_is_certain_three_canaries_later_whatever_goes_on(
    up: bool, lane: Lane, before: int, after: int
) -> None:
    both = Both()
    for _ in range(before):
        both.say(up, lane)
    assert not both.ask()  # the first says nothing of what was before it
    both.say(up, lane, is_kept=True)
    found, told = [], 0
    for _ in range(1 + STRIKES):
        for _ in range(after):
            both.say(up, lane)
        found.append(both.ask())
        told += both.master.is_certain
    assert found[-1] and not found[0]
    assert told == 1


def test_nothing_is_counted_of_what_may_wait_where_the_access_says_nothing_of_its_queue() -> None:
    both = Both()
    for _ in range(6):
        for lane in (Lane.TELEMETRY, Lane.CHANNEL, Lane.SECOND):
            both.say(True, lane, is_kept=True)
        both.say(False, Lane.SECOND, is_kept=True)
        assert not both.ask()


@pytest.mark.parametrize("up", [True, False])
def test_an_access_that_passes_no_channel_on_is_found_out_by_four_canaries(up: bool) -> None:
    both = Both()
    for _ in range(3):
        both.say(up, Lane.CHANNEL)
        both.report()
        assert not both.ask()
    found = []
    for _ in range(4):
        both.say(up, Lane.CHANNEL, is_kept=True)
        both.report()
        found.append(both.ask())
    assert found == [False, False, True, True]


@given(st.data())
def test_a_slow_line_whose_channels_are_always_behind_accuses_nobody(data: st.DataObject) -> None:
    """In order, and at least one of those that wait between two canaries; the Access need not know that they do."""
    both = Both()
    waiting: dict[bool, deque[int]] = {True: deque(), False: deque()}
    for _ in range(12):
        for up, line in waiting.items():
            for _ in range(data.draw(st.integers(0, 4))):
                both.say(up, Lane.CHANNEL, is_kept=True)
                line.append(both.sequences[up, Lane.CHANNEL])
            hearer = both.master_tally if up else both.agent_tally
            for _ in range(data.draw(st.integers(min(1, len(line)), len(line)))):
                hearer.count_heard(Lane.CHANNEL, line.popleft())
        both.report()
        reply = both.master.judge(both.agent.next(), both.outflow)
        assert not reply.is_kept_back
        both.agent.on_reply(reply)


def test_channels_of_a_host_that_does_not_count_them_are_not_judged() -> None:
    both = Both()
    for number in range(6):
        both.say(False, Lane.CHANNEL)
        del both.agent_tally.heard[Lane.CHANNEL]  # an older release
        both.report()
        assert not both.ask(), number


def test_what_is_late_by_one_pause_is_no_accusation() -> None:
    both = Both()
    for up in (True, False) * 4:
        hearer, lane, sequence = both.say(up, Lane.CONTROL, is_kept=True)
        assert not both.ask()
        hearer.count_heard(lane, sequence)  # before anything that was sent after it, as a stream does


@given(st.data())
def test_a_second_access_that_holds_canaries_up_accuses_nobody(data: st.DataObject) -> None:
    """It may delay, drop and pass on late; it cannot write one. What goes by the first Access arrives at once."""
    both = Both()
    held = []
    for _ in range(30):
        for _ in range(data.draw(st.integers(0, 3))):
            both.say(data.draw(st.booleans()), data.draw(LANES))
        held.append(both.agent.next())
        if data.draw(st.booleans()):
            held.pop(0)  # dropped
        elif data.draw(st.booleans()):
            reply = both.master.judge(held.pop(0))
            assert not reply.is_kept_back
            both.agent.on_reply(reply)


def test_a_reply_to_another_canary_or_said_twice_says_nothing() -> None:
    both = Both()
    for number in (1, 2, 3):
        both.agent.next()
        reply = CanaryReply(number, kept_up=1)
        assert both.agent.on_reply(reply) is (number == STRIKES or number > STRIKES)
        assert not both.agent.on_reply(reply)
    assert not both.agent.on_reply(CanaryReply(9, kept_up=1))


def test_an_access_that_passes_no_telemetry_on_and_says_that_nothing_waits_is_found_out_by_three_canaries() -> None:
    both = Both()
    for _ in range(3):
        both.sample()
        both.report()
        assert not both.ask()
    found, told = [], 0
    for _ in range(4):
        both.sample(is_kept=True)
        both.report()
        found.append(both.ask())
        told += both.master.is_certain
    assert (found, told) == ([False, False, True, True], 1)


def test_nothing_is_held_against_one_that_sheds_and_says_so_or_in_which_telemetry_waits() -> None:
    for waits, shed in ((True, 0), (False, 1), (True, 1)):
        both = Both()
        for _ in range(8):
            both.sample(is_kept=True)
            both.report(waits=waits, shed=shed)
            assert not both.ask()


def test_where_no_telemetry_is_sent_or_any_comes_nobody_is_accused() -> None:
    both = Both()
    for number in range(12):
        both.report()
        if number % 3 == 0:
            both.sample(is_kept=True)
            both.sample()
        assert not both.ask()


def test_a_host_that_does_not_say_what_telemetry_it_sent_is_not_judged_by_it() -> None:
    both = Both()
    for number in range(6):
        both.sample(is_kept=True)
        both.report()
        both.agent._samples_then = 0  # an older release
        assert not both.ask(), number


@given(st.data())
def test_an_honest_access_under_any_load_is_never_accused(data: st.DataObject) -> None:
    """Telemetry waits in it for as long as it likes, is shed, and overtakes other telemetry; of all that it says so."""
    both = Both()
    waiting: list[int] = []

    def passed(count: int) -> None:
        for _ in range(count):
            sequence = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
            if sequence > both.master_tally.samples:  # others are refused as replayed
                both.master_tally.count_heard(Lane.TELEMETRY, sequence)

    for _ in range(12):
        for _ in range(data.draw(st.integers(0, 3))):
            both.sample(is_kept=True)
            waiting.append(both.sequences[True, Lane.TELEMETRY])
        for _ in range(data.draw(st.integers(0, 2))):  # reports of the time until the next canary
            shed = data.draw(st.integers(0, len(waiting)))
            del waiting[:shed]
            passed(data.draw(st.integers(0, len(waiting))))
            both.report(waits=bool(waiting), shed=shed)
        reply = both.master.judge(both.agent.next(), both.outflow)
        assert not reply.is_kept_back
        both.agent.on_reply(reply)


def test_a_host_that_says_any_numbers_is_answered_with_such_as_a_reply_can_tell() -> None:
    most = (1 << 64) - 1
    both = Both()
    both.say(False, Lane.CONTROL)
    both.master.judge(both.agent.next(), both.outflow)
    for number in (2, 3, 4):
        both.say(False, Lane.EVIDENCE)
        both.report()
        sent, heard = dict.fromkeys(Lane, Sent(0, most)), dict.fromkeys(Lane, Heard(most, 0))
        reply = both.master.judge(Canary(number, number - 1, sent, heard, most), both.outflow)
        assert encode_canary_reply(reply)
        assert (reply.kept_up, reply.kept_down) == (KEPT_MAX, KEPT_MAX)
