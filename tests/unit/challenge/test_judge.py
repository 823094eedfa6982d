"""A trial from asking to its verdict: the honest pass, every cheat is refused for its own reason."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.challenge.reference import CHALLENGE, prove, wrong_share
from windrow_master.verification.draw import CHANCE_BYTES, draw
from windrow_master.verification.judge import (
    FINAL,
    Answered,
    Committed,
    Garbled,
    Phase,
    Reason,
    Ticked,
    Trial,
    step,
)
from windrow_master.verification.product import entries
from windrow_master.verification.times import ANSWER_NS, LIMIT_NS, Pace, Timing
from windrow_proto.challenge import Challenge, Matrix, Place, entry
from windrow_proto.ids import GpuUuid
from windrow_proto.units import SECOND

CHANCE = bytes(CHANCE_BYTES)
HONEST = prove(CHALLENGE)
ASKED = Trial(CHALLENGE, asked_ns=0)
COMMITTED, (ASK,) = step(ASKED, Committed(HONEST.commitment, SECOND, CHANCE))
ANSWER = HONEST.answer(CHALLENGE, ASK.selection)
CALIBRATED = Timing(4 * SECOND, 5 * SECOND, 6 * SECOND, True, "a test")


def verdict(prover, *, seed=0, challenge=CHALLENGE):
    """The end of a trial in which this prover commits and answers in time."""
    trial, (ask,) = step(Trial(challenge, 0), Committed(prover.commitment, 1, seed.to_bytes(CHANCE_BYTES, "big")))
    return step(trial, Answered(prover.answer(challenge, ask.selection), 2))[0]


def failed(*reasons):
    return Phase.FAILED, reasons


def end(trial):
    return trial.phase, trial.reasons


def test_an_honest_prover_passes():
    trial, effects = step(COMMITTED, Answered(ANSWER, 2 * SECOND))

    assert end(trial) == (Phase.PASSED, ())
    assert effects == ()
    assert trial.span_ns == SECOND


@pytest.mark.parametrize("size", [64, 128, 256])
def test_the_masters_entries_are_the_sums_of_defined_entries(size):
    challenge = Challenge(b"n" * 32, b"k" * 32, GpuUuid("GPU-1"), size, 1)
    place = Place(0, size - 1, 17)
    seed = challenge.seed(0, bytes(32))
    each = (
        entry(seed, Matrix.A, place.row, along) * entry(seed, Matrix.B, place.column, along) for along in range(size)
    )

    assert entries(challenge, (b"r" * 32,), (place,)) == [sum(each) % 2**32]


def test_a_tenth_of_wrong_entries_is_caught_in_99_of_100_runs():
    provers = [prove(CHALLENGE, wrong_share(0.1, seed)) for seed in range(10)]

    ends = [verdict(provers[run % 10], seed=run).phase for run in range(100)]

    assert ends.count(Phase.FAILED) >= 99


def test_a_round_left_out_is_always_caught():
    lazy = prove(CHALLENGE, lambda found: found * 0)

    assert end(verdict(lazy)) == failed(Reason.WRONG_ENTRY)


def test_an_answer_to_another_nonce_is_a_replay():
    other = replace(CHALLENGE, nonce=b"o" * 32)

    trial, _ = step(Trial(other, 0), Committed(HONEST.commitment, 1, CHANCE))

    assert end(trial) == failed(Reason.REPLAYED)


def test_an_old_answer_under_a_new_name_has_wrong_entries():
    other = replace(CHALLENGE, nonce=b"o" * 32)
    renamed = prove(CHALLENGE)
    renamed.commitment = replace(renamed.commitment, challenge_id=other.id)

    assert end(verdict(renamed, challenge=other)) == failed(Reason.WRONG_ENTRY)


def test_work_of_another_gpu_is_refused_by_name_and_by_entry():
    other = replace(CHALLENGE, gpu_uuid=GpuUuid("GPU-2"))
    named, _ = step(ASKED, Committed(replace(HONEST.commitment, gpu_uuid=other.gpu_uuid), 1, CHANCE))
    theirs = prove(other)
    theirs.commitment = replace(theirs.commitment, challenge_id=CHALLENGE.id, gpu_uuid=CHALLENGE.gpu_uuid)

    assert end(named) == failed(Reason.WRONG_GPU)
    assert end(verdict(theirs)) == failed(Reason.WRONG_ENTRY)


def test_rounds_done_side_by_side_have_wrong_entries():
    assert end(verdict(prove(CHALLENGE, is_chained=False))) == failed(Reason.WRONG_ENTRY)


def test_an_outsourced_commitment_past_its_classs_bound_is_refused():
    trial = Trial(CHALLENGE, 0, CALIBRATED)

    in_time, _ = step(trial, Committed(HONEST.commitment, 9 * SECOND, CHANCE))
    late, effects = step(trial, Committed(HONEST.commitment, 9 * SECOND + 1, CHANCE))

    assert in_time.phase is Phase.COMMITTED
    assert end(late) == failed(Reason.LATE_COMMITMENT)
    assert effects == ()


def test_a_class_that_is_not_calibrated_is_observed_and_not_gated():
    trial = Trial(CHALLENGE, 0, replace(CALIBRATED, calibrated=False))

    slow, _ = step(trial, Committed(HONEST.commitment, LIMIT_NS, CHANCE))

    assert slow.phase is Phase.COMMITTED
    assert slow.pace is Pace.OBSERVED


def test_silence_lapses_in_both_phases():
    assert end(step(ASKED, Ticked(LIMIT_NS))[0]) == (Phase.ASKED, ())
    assert end(step(ASKED, Ticked(LIMIT_NS + 1))[0]) == failed(Reason.LATE_COMMITMENT)
    assert end(step(COMMITTED, Ticked(SECOND + ANSWER_NS + 1))[0]) == failed(Reason.LATE_ANSWER)
    assert end(step(COMMITTED, Answered(ANSWER, SECOND + ANSWER_NS + 1))[0]) == failed(Reason.LATE_ANSWER)


def test_a_repeated_commitment_is_asked_the_same_again_and_another_one_refused():
    again = step(COMMITTED, Committed(HONEST.commitment, 2 * SECOND, b"x" * CHANCE_BYTES))
    changed, _ = step(COMMITTED, Committed(prove(CHALLENGE, wrong_share(1, 0)).commitment, 2 * SECOND, CHANCE))

    assert again == (COMMITTED, (ASK,))
    assert end(changed) == failed(Reason.CHANGED)


def spoilt(**change):
    first, *others = ANSWER.openings
    return replace(ANSWER, openings=(replace(first, **change), *others))


LEAF = ANSWER.openings[0].leaf
PATH = ANSWER.openings[0].path
COLUMN = ASK.selection.places[0].column % 64 * 4


@pytest.mark.parametrize(
    ("answer", "reasons"),
    [
        (replace(ANSWER, openings=ANSWER.openings[:-1]), [Reason.WRONG_COUNT]),
        (replace(ANSWER, openings=ANSWER.openings[::-1]), [Reason.WRONG_ENTRY, Reason.WRONG_ROOT]),
        (replace(ANSWER, challenge_id=bytes(32)), [Reason.REPLAYED]),
        (spoilt(path=PATH[:-1]), [Reason.WRONG_DEPTH]),
        (spoilt(path=(*PATH[:-1], bytes(32))), [Reason.WRONG_ROOT]),
        (spoilt(leaf=bytes(256)), [Reason.WRONG_ENTRY, Reason.WRONG_ROOT]),
        (spoilt(leaf=LEAF[: COLUMN ^ 4] + b"spoi" + LEAF[(COLUMN ^ 4) + 4 :]), [Reason.WRONG_ROOT]),
    ],
    ids=["truncated", "turned", "other id", "short path", "wrong hash", "other leaf", "neighbour changed"],
)
def test_a_wrong_answer_is_refused_for_what_is_wrong(answer, reasons):
    assert end(step(COMMITTED, Answered(answer, 2 * SECOND))[0]) == failed(*reasons)


@pytest.mark.parametrize(
    ("trial", "event", "reason"),
    [
        (ASKED, Answered(ANSWER, 1), Reason.OUT_OF_TURN),
        (ASKED, Garbled(1), Reason.MALFORMED),
        (COMMITTED, Garbled(2 * SECOND), Reason.MALFORMED),
        (ASKED, Committed(replace(HONEST.commitment, roots=()), 1, CHANCE), Reason.WRONG_COUNT),
    ],
)
def test_what_is_out_of_place_fails(trial, event, reason):
    assert end(step(trial, event)[0]) == failed(reason)


EVENTS = [Committed(HONEST.commitment, 1, CHANCE), Answered(ANSWER, 1), Garbled(1), Ticked(10**18)]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("phase", sorted(FINAL))
def test_a_verdict_is_final(phase, event):
    judged = replace(COMMITTED, phase=phase)

    assert step(judged, event) == (judged, ())


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.sampled_from([1, 3, 64]), st.sampled_from([1, 64, 512]))
def test_places_are_of_the_challenge_and_every_round_has_its_share(chance, rounds, count):
    challenge = replace(CHALLENGE, rounds=rounds, size=256)

    places = draw(challenge, chance, count).places

    drawn = max(count, rounds)
    each = [sum(place.round == number for place in places) for number in range(rounds)]
    assert len(places) == drawn
    assert all(place.is_of(challenge) for place in places)
    assert max(each) - min(each) <= 1
    assert draw(challenge, chance, count) == draw(challenge, chance, count)


def test_other_chance_draws_other_places():
    assert draw(CHALLENGE, b"a" * 32) != draw(CHALLENGE, b"b" * 32)
