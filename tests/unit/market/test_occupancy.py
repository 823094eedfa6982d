"""The time of a slot is divided by the states that the audit log has; what was billed comes first."""

from windrow_master.fleet.availability import Availability
from windrow_master.market.occupancy import YES, Change, Fact, Span, Times, by_day, spans
from windrow_proto.units import DAY, HOUR, Microcents

NOW = {Fact.ADMIN: "active", Fact.LINK: "online", Fact.FAULTY: "", Fact.CLOSED: ""}
IDLE, PAUSED, FAULTY, OFFLINE = Availability.IDLE, Availability.PAUSED, Availability.FAULTY, Availability.OFFLINE


def states(now, *changes, until=10):
    return [(one.from_ns, one.to_ns, one.state) for one in spans(NOW | now, changes, 0, until)]


def test_without_any_change_a_slot_was_always_as_it_is_now():
    assert states({}) == [(0, 10, IDLE)]
    assert states({Fact.ADMIN: "draining"}) == [(0, 10, PAUSED)]
    assert states({Fact.ADMIN: "retired"}) == []
    assert states({Fact.LINK: "unknown"}) == [(0, 10, IDLE)]


def test_a_change_says_what_was_before_it_and_the_worse_state_hides_the_other():
    lost, back = Change(2, Fact.LINK, "online", "lost"), Change(6, Fact.LINK, "lost", "online")
    fault = Change(4, Fact.FAULTY, "", YES)
    assert states({Fact.FAULTY: YES}, back, fault, lost) == [
        (0, 2, IDLE),
        (2, 4, OFFLINE),
        (4, 6, FAULTY),
        (6, 10, FAULTY),
    ]


def test_a_change_after_the_window_says_what_was_in_it():
    assert states({}, Change(12, Fact.CLOSED, YES, "")) == [(0, 10, PAUSED)]
    assert states({Fact.ADMIN: "retired"}, Change(4, Fact.ADMIN, "active", "retired")) == [(0, 4, IDLE)]


def test_billed_time_is_taken_from_the_idle_time_first_and_is_never_more_than_there_is():
    times = Times()
    times.add(Span(0, 10 * HOUR, IDLE), 1000, Microcents(100))
    times.add(Span(0, 4 * HOUR, PAUSED), 500, Microcents(50))
    assert (times.total_ns, times.lost[IDLE], times.lost[PAUSED]) == (12 * HOUR, 1_000, 200)
    times.rent(4 * HOUR)
    assert (times.by_state[IDLE], times.lost[IDLE], times.occupancy) == (6 * HOUR, 600, 4 / 12)
    times.rent(20 * HOUR)
    assert times.by_state[Availability.RENTED] == times.total_ns == 12 * HOUR
    assert sum(times.lost.values()) == 0 and Times().occupancy is None


def test_a_span_over_midnight_counts_for_both_days():
    found = by_day([Span(DAY - HOUR, DAY + 2 * HOUR, IDLE), Span(5 * DAY, 6 * DAY, IDLE)], range(3))
    assert found == {0: HOUR, 1: 2 * HOUR, 2: 0}
