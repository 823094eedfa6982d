"""Records over a network that drops, repeats, reorders or cuts: every record is delivered once, and few fly."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.proto.values import BOOT
from windrow_proto.ids import BootId
from windrow_proto.intervals import RANGES_MAX, Intervals
from windrow_proto.messages import Ack, LaneMarks
from windrow_proto.model import FrameClass, Lane
from windrow_proto.units import SECOND
from windrow_proto.windows import (
    MISSING_AFTER_NS,
    OVERDUE_NS,
    WINDOW_RECORDS_MAX,
    Accepted,
    ReceiveLane,
    RecordKey,
    SendWindow,
)

OLD = BootId(b"o" * 16)


class Wire:
    """An agent's window and a Master's lanes with a bad network between; the Master commits some arrivals, not all."""

    def __init__(self, random: Random, lane: Lane, credits: int) -> None:
        self.random = random
        self.window = SendWindow(lane, credits)
        self.lanes = {boot: ReceiveLane(Intervals()) for boot in (OLD, BOOT)}
        self.up: list[RecordKey] = []
        self.down: list[Ack] = []
        self.delivered: list[RecordKey] = []
        self.acked: list[RecordKey] = []
        self.now_ns = 0

    def send(self) -> None:
        self.up += [ready.key for ready in self.window.take(self.random.randint(1, 8), self.now_ns)]
        assert self.window.in_flight <= self.window.credits

    def receive(self, is_fair: bool = False) -> None:
        if not self.up:
            return
        key = self.up.pop(0 if is_fair else self.random.randrange(len(self.up)))
        lane = self.lanes[key.origin_boot]
        if lane.accept(key.origin_sequence) is not Accepted.NEW:
            return
        if is_fair or self.random.random() < 0.8:
            lane.commit([key.origin_sequence])
            self.delivered.append(key)
        else:
            lane.abort([key.origin_sequence])

    def acknowledge(self) -> None:
        have = tuple(lane.ack(self.window.lane, boot) for boot, lane in self.lanes.items())
        missing = tuple(lane.missing(self.now_ns).to_marks(self.window.lane, boot) for boot, lane in self.lanes.items())
        self.down.append(Ack(have, missing, 1))

    def hear(self) -> None:
        if self.down:
            self.acked += self.window.on_ack(self.down.pop(self.random.randrange(len(self.down))))

    def spoil(self) -> None:
        match self.random.randrange(4):
            case 0 if self.up:
                self.up.pop(self.random.randrange(len(self.up)))
            case 1 if self.up:
                self.up.append(self.random.choice(self.up))
            case 2:
                self.window.on_disconnect()
                self.up, self.down = [], []
            case _:
                self.now_ns += 20 * SECOND
                self.window.overdue(self.now_ns)

    def heal(self) -> None:
        for _ in range(200):
            if not self.window.in_flight and not self.window.pending:
                return
            self.now_ns += OVERDUE_NS
            self.window.overdue(self.now_ns)
            self.send()
            while self.up:
                self.receive(is_fair=True)
            self.acknowledge()
            while self.down:
                self.hear()


@settings(max_examples=100, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([Lane.EVIDENCE, Lane.TELEMETRY]), st.integers(1, 6))
def test_every_offered_record_is_delivered_exactly_once_whatever_the_network_does(random, lane, credits):
    wire = Wire(random, lane, credits)
    offered = [RecordKey(boot, n) for boot in (OLD, BOOT) for n in range(1, 16)]
    for key in offered:
        assert wire.window.offer(key, is_live=key.origin_boot == BOOT)
        for _ in range(random.randrange(5)):
            random.choice([wire.send, wire.receive, wire.acknowledge, wire.hear, wire.spoil])()

    wire.heal()

    assert sorted(wire.delivered) == sorted(offered)
    assert sorted(wire.acked) == sorted(offered)


def test_live_goes_before_backlog_and_what_came_back_is_not_live_any_more():
    window = SendWindow(Lane.TELEMETRY, 10)
    window.offer(RecordKey(OLD, 1), is_live=False)
    window.offer(RecordKey(BOOT, 1), is_live=True)

    first = window.take(1, 0)
    window.on_disconnect()
    window.offer(RecordKey(BOOT, 2), is_live=True)

    assert [(r.key.origin_boot, r.frame_class) for r in first] == [(BOOT, FrameClass.LIVE)]
    assert [(r.key, r.frame_class) for r in window.take(9, 0)] == [
        (RecordKey(BOOT, 2), FrameClass.LIVE),
        (RecordKey(BOOT, 1), FrameClass.BACKLOG),
        (RecordKey(OLD, 1), FrameClass.BACKLOG),
    ]


def test_evidence_goes_in_order_and_stays_evidence():
    window = SendWindow(Lane.EVIDENCE, 2)
    for n in (1, 2, 3):
        window.offer(RecordKey(BOOT, n), is_live=True)

    assert [r.key.origin_sequence for r in window.take(9, 0)] == [1, 2]
    window.on_disconnect()
    assert [(r.key.origin_sequence, r.frame_class) for r in window.take(9, 0)] == [
        (1, FrameClass.EVIDENCE),
        (2, FrameClass.EVIDENCE),
    ]


def test_a_window_is_bounded_and_offers_are_idempotent():
    window = SendWindow(Lane.EVIDENCE, 0)
    for n in range(1, WINDOW_RECORDS_MAX + 1):
        assert window.offer(RecordKey(BOOT, n), is_live=False)

    assert window.offer(RecordKey(BOOT, 1), is_live=False)
    assert not window.offer(RecordKey(BOOT, WINDOW_RECORDS_MAX + 1), is_live=False)
    assert window.take(9, 0) == []
    acked = window.on_ack(
        Ack((LaneMarks(Lane.EVIDENCE, BOOT, ((1, 10),)), LaneMarks(Lane.TELEMETRY, BOOT, ((11, 20),))), (), 1)
    )
    assert [key.origin_sequence for key in acked] == list(range(1, 11))
    assert window.pending == WINDOW_RECORDS_MAX - 10


def test_what_was_forced_out_is_not_sent_again():
    window = SendWindow(Lane.TELEMETRY, 5)
    for n in (1, 2):
        window.offer(RecordKey(BOOT, n), is_live=True)
    window.take(1, 0)

    window.forget(RecordKey(BOOT, 1))
    window.forget(RecordKey(BOOT, 9))
    window.on_disconnect()

    assert [r.key.origin_sequence for r in window.take(9, 0)] == [2]


def test_a_hole_is_asked_for_once_it_has_lasted_and_not_after_a_gap_told_of_it():
    lane = ReceiveLane(Intervals.of([(1, 3)]))
    assert lane.accept(6) is Accepted.NEW
    assert lane.missing(0).ranges == ()
    assert lane.missing(MISSING_AFTER_NS - 1).ranges == ()
    lane.accept(9)

    assert lane.missing(MISSING_AFTER_NS).ranges == ((4, 5),)
    assert lane.missing(2 * MISSING_AFTER_NS).ranges == ((4, 5), (7, 8))
    lane.fill([(4, 5)])
    assert lane.missing(3 * MISSING_AFTER_NS).ranges == ((7, 8),)


def test_nothing_is_acknowledged_before_it_is_committed():
    lane = ReceiveLane(Intervals())
    lane.accept(1)

    assert lane.accept(1) is Accepted.DUPLICATE
    assert lane.ack(Lane.EVIDENCE, BOOT).ranges == ()
    lane.abort([1])
    assert lane.accept(1) is Accepted.NEW
    lane.commit([1])
    assert lane.ack(Lane.EVIDENCE, BOOT).ranges == ((1, 1),)
    assert lane.accept(1) is Accepted.DUPLICATE


def test_a_sender_that_leaves_too_many_holes_has_to_wait_until_some_are_filled():
    lane = ReceiveLane(Intervals.of((n, n) for n in range(1, 2 * RANGES_MAX, 2)))

    assert lane.accept(10**6) is Accepted.LATER
    assert lane.accept(2) is Accepted.NEW


def test_it_says_when_the_oldest_in_flight_is_overdue():
    window = SendWindow(Lane.EVIDENCE, 2)
    for number in (1, 2):
        window.offer(RecordKey(BOOT, number), is_live=False)
    assert window.overdue_at_ns() is None
    window.take(1, 5)
    window.take(1, 9)
    assert window.overdue_at_ns() == 5 + OVERDUE_NS
    window.on_ack(Ack((LaneMarks(Lane.EVIDENCE, BOOT, ((1, 1),)),), (), 1))
    assert window.overdue_at_ns() == 9 + OVERDUE_NS
    assert window.overdue(9 + OVERDUE_NS) == 1
    assert window.overdue_at_ns() is None
