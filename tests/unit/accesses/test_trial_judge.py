"""The judge of a trial: what counts as acknowledged has to be in the log, each sequence by itself."""

import pytest

from windrow_master.accesses.failover_test.judge import is_whole, judge
from windrow_master.accesses.failover_test.model import Return, Verdict, Watched
from windrow_master.telemetry.model import LogRecord
from windrow_proto.ids import BootId, HostId
from windrow_proto.intervals import Intervals
from windrow_proto.messages import Gap
from windrow_proto.model import Kind, Lane
from windrow_proto.samples import Sample, encode_batch
from windrow_proto.units import SECOND
from windrow_proto.wire_link import encode_gap

HOST = HostId("host_1")
BOOT, OTHER = BootId(b"a" * 16), BootId(b"b" * 16)
KILLED_NS = 1_000 * SECOND
BODY = encode_batch([Sample(KILLED_NS, {("", 100): 5, ("", 101): 7}), Sample(KILLED_NS + SECOND, {("", 100): 6})])
SAMPLES = 4
"""Two instants of two metrics; an absent value is a sample as well."""


def through(last: int) -> Intervals:
    return Intervals(((1, last),)) if last else Intervals()


def batch(sequence: int, boot: BootId = BOOT) -> LogRecord:
    """One arrives every five seconds; the twentieth just when the Access dies."""
    return LogRecord(HOST, boot, sequence, Kind.TELEMETRY, KILLED_NS + (sequence - 20) * 5 * SECOND, BODY)


def gap(sequence: int, first: int, last: int) -> LogRecord:
    body = encode_gap(Gap(Lane.TELEMETRY, BOOT, ((first, last),), "spool_cap"))
    return LogRecord(HOST, BOOT, sequence, Kind.GAP, KILLED_NS + sequence, body)


def watched(samples: int = 20, evidence: int = 3) -> dict[HostId, Watched]:
    return {HOST: Watched(HOST, BOOT, through(samples), through(evidence))}


def back(unacked: Intervals = Intervals(), had: int = 20, evidence_unacked: Intervals = Intervals()) -> Return:  # noqa: B008  # frozen
    return Return(KILLED_NS + SECOND, "access_b", BOOT, unacked, evidence_unacked, had, 3)


def judged(
    stored: list[LogRecord],
    *,
    acked: int = 24,
    returns: tuple[Return, ...] = (back(),),
    evidence: int = 3,
    older: tuple[LogRecord, ...] = (),
    before: int = 20,
) -> Verdict:
    acks, committed = {HOST: through(acked)}, {HOST: through(evidence)}
    return judge(watched(before), {HOST: returns}, acks, committed, stored, KILLED_NS, older)


def test_where_all_that_was_acknowledged_is_in_the_log_nothing_is_lost() -> None:
    found = judged([batch(n) for n in range(10, 25)])
    assert (found.lost_batches, found.lost_samples, found.lost_evidence, found.given_up) == (0, 0, 0, 0)
    assert (found.acked_batches, found.acked_samples) == (15, 15 * SAMPLES)


@pytest.mark.parametrize("missing", [11, 19, 20, 21, 24])
def test_a_batch_that_the_marks_acknowledge_and_the_log_does_not_hold_is_lost(missing: int) -> None:
    found = judged([batch(n) for n in range(10, 25) if n != missing])
    assert (found.lost_batches, found.lost_samples) == (1, SAMPLES)


def test_a_batch_that_the_agent_holds_for_acknowledged_is_lost_though_no_mark_says_so() -> None:
    # It came back with 21 and 23 unacknowledged: so it was told that 22 is safe. The Master knows nothing of it.
    marks = Intervals.of([(1, 21), (23, 23)])
    records = [batch(n) for n in (*range(10, 22), 23)]
    unacked = Intervals.of([(21, 21), (23, 23)])
    found = judge(watched(), {HOST: (back(unacked),)}, {HOST: marks}, {HOST: through(3)}, records, KILLED_NS)
    assert found.lost_batches == 1
    honest = Intervals.of([(21, 23)])
    found = judge(watched(), {HOST: (back(honest),)}, {HOST: marks}, {HOST: through(3)}, records, KILLED_NS)
    assert found.lost_batches == 0, "it is on its way, or will be told as a gap"


def test_what_came_out_of_order_and_lies_further_back_in_the_log_is_not_lost() -> None:
    stored = [batch(n) for n in range(10, 25) if n != 15]
    assert judged(stored).lost_batches == 1
    assert judged(stored, older=(batch(15),)).lost_batches == 0


def test_what_was_never_acknowledged_and_is_told_as_a_gap_was_given_up_and_not_lost() -> None:
    found = judged([*(batch(n) for n in range(10, 25) if n not in {22, 23}), gap(25, 22, 23)], acked=25)
    assert (found.lost_batches, found.given_up) == (0, 2)


def test_a_gap_does_not_excuse_what_was_acknowledged_before() -> None:
    found = judged([*(batch(n) for n in range(10, 25) if n not in {18, 23}), gap(25, 18, 23)], acked=25)
    assert (found.lost_batches, found.given_up) == (1, 1)


def test_a_log_without_anything_of_an_agent_has_lost_what_came_after_the_kill() -> None:
    assert judged([], acked=24).lost_batches == 4


def test_records_of_another_boot_or_host_prove_nothing() -> None:
    stored = [batch(n) for n in range(10, 25) if n != 21]
    stranger = LogRecord(HostId("host_2"), BOOT, 21, Kind.TELEMETRY, KILLED_NS, BODY)
    assert judged([*stored, batch(21, OTHER), stranger]).lost_batches == 1


@pytest.mark.parametrize(
    ("committed", "unacked", "lost"), [(3, (), 0), (2, (), 1), (2, ((3, 3),), 1), (5, ((6, 9),), 0), (4, ((6, 9),), 1)]
)
def test_evidence_that_was_committed_before_or_that_the_agent_let_go_has_to_be_committed(
    committed: int, unacked: tuple[tuple[int, int], ...], lost: int
) -> None:
    one = back(evidence_unacked=Intervals.of(unacked))
    found = judged([batch(n) for n in range(10, 25)], returns=(one,), evidence=committed)
    assert found.lost_evidence == lost


def test_the_longest_silence_is_one_that_ended_after_the_kill_and_the_usual_one_was_before() -> None:
    late = LogRecord(HOST, BOOT, 21, Kind.TELEMETRY, KILLED_NS + 12 * SECOND, BODY)
    found = judged([*(batch(n) for n in range(10, 21)), late], acked=21)
    assert (found.longest_gap_ns, found.usual_gap_ns) == (12 * SECOND, 5 * SECOND)
    assert judged([]).longest_gap_ns is None


def test_an_agent_is_whole_when_it_is_back_has_sent_anew_and_left_no_new_hole() -> None:
    (one,) = watched().values()
    assert not is_whole(one, (), through(20), through(20))
    assert not is_whole(one, (back(),), through(20), through(20)), "nothing was sent since"
    assert is_whole(one, (back(),), through(21), through(21))
    holed = Intervals.of([(1, 20), (22, 22)])
    assert not is_whole(one, (back(),), holed, holed)


def test_a_hole_that_was_there_before_is_not_of_this_test() -> None:
    before, now = Intervals.of([(1, 5), (8, 20)]), Intervals.of([(1, 5), (8, 21)])
    one = Watched(HOST, BOOT, before, Intervals())
    assert is_whole(one, (back(),), now, now)


def test_an_agent_that_was_started_anew_is_whole_with_the_first_batch_of_its_new_boot() -> None:
    (one,) = watched().values()
    anew = Return(KILLED_NS, "access_b", OTHER, Intervals(), Intervals(), 20, 3)
    assert not is_whole(one, (anew,), through(20), Intervals())
    assert is_whole(one, (anew,), through(20), through(1))
