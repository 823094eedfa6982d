"""The memory of a card is judged by its contents: less than its host says fails with a figure."""

from dataclasses import replace

import pytest

from tests.unit.challenge.reference import CHALLENGE
from windrow_master.verification import memory as memories
from windrow_master.verification.memory import (
    FILL_NS,
    PROBES,
    VALUES_NS,
    Memory,
    Verdict,
    broken,
    draw,
    evidence,
    filled,
    lines_for,
    ticked,
    valued,
)
from windrow_proto.fill import BLOCK_BYTES, LINE_BLOCKS, LINES_MAX, Fill, Filled, Values, block
from windrow_proto.units import GIB, MIB, SECOND

CHANCE = b"c" * 32
LINES = lines_for(80 * GIB)
ASKED = Memory(CHALLENGE.id, Fill(b"n" * 32, LINES), 80 * GIB, 0)
PROBED = filled(ASKED, Filled(LINES), 4 * SECOND, CHANCE)


def truth(memory: Memory) -> bytes:
    key = memory.fill.key(memory.challenge_id)
    return b"".join(block(key, number) for number in memory.probe.blocks)


def test_nine_tenths_of_what_a_host_says_are_asked_for() -> None:
    assert LINES == 73_728
    assert (lines_for(MIB), lines_for(0), lines_for(1 << 60)) == (0, 0, LINES_MAX)


def test_every_part_of_what_was_written_is_looked_at_and_no_place_is_known_before() -> None:
    blocks = PROBED.probe.blocks
    part = LINES * LINE_BLOCKS // PROBES
    assert [number // part for number in blocks] == list(range(PROBES))
    assert draw(CHALLENGE.id, LINES, b"d" * 32).blocks != blocks
    assert all(0 <= number < LINE_BLOCKS for number in draw(CHALLENGE.id, 1, CHANCE).blocks)


def test_memory_that_holds_what_was_written_is_proved_with_its_figures() -> None:
    done = valued(PROBED, Values(truth(PROBED)), 5 * SECOND)
    assert (done.verdict, done.wrong, done.span_ns, done.due_ns) == (Verdict.PROVED, 0, 4 * SECOND, None)
    assert done.words == "72.00 of 80.00 GiB of its memory were filled and 64 places of it held what was written"
    assert evidence(done)["memory_filled_bytes"] == 72 * GIB


@pytest.mark.parametrize("held", [b"", bytes(BLOCK_BYTES * PROBES), b"\xff" * BLOCK_BYTES * (PROBES + 1)])
def test_other_values_are_wrong(held: bytes) -> None:
    assert valued(PROBED, Values(held), 5 * SECOND).wrong == PROBES


def test_one_wrong_place_is_enough_and_is_counted() -> None:
    done = valued(PROBED, Values(truth(PROBED)[:-1] + b"?"), 5 * SECOND)
    assert (done.verdict, done.wrong) == (Verdict.WRONG, 1)
    assert done.words.startswith("1 of 64 places of its memory did not hold what was written")


@pytest.mark.parametrize(("lines", "verdict"), [(61_440, Verdict.PROBED), (61_439, Verdict.SHORT), (0, Verdict.SHORT)])
def test_room_for_less_than_three_quarters_is_another_card(lines: int, verdict: Verdict) -> None:
    assert filled(ASKED, Filled(lines), SECOND, CHANCE).verdict is verdict


def test_nobody_fills_more_than_was_asked() -> None:
    assert filled(ASKED, Filled(LINES + 1), SECOND, CHANCE).filled_bytes == 72 * GIB


def test_what_comes_too_late_or_never_fails() -> None:
    assert filled(ASKED, Filled(LINES), FILL_NS + 1, CHANCE).verdict is Verdict.LATE
    assert (ticked(ASKED, FILL_NS), ticked(ASKED, FILL_NS + 1).verdict) == (ASKED, Verdict.LATE)
    late_ns = 4 * SECOND + VALUES_NS + 1
    assert valued(PROBED, Values(truth(PROBED)), late_ns).verdict is Verdict.LATE
    assert ticked(PROBED, late_ns).verdict is Verdict.LATE


def test_what_is_judged_stays_and_what_is_out_of_turn_changes_nothing() -> None:
    done = valued(PROBED, Values(truth(PROBED)), 5 * SECOND)
    for again in (
        filled(done, Filled(1), 6 * SECOND, CHANCE),
        valued(done, Values(b""), 6 * SECOND),
        ticked(done, 10 * FILL_NS),
        broken(done, "gone"),
    ):
        assert again == done
    assert valued(ASKED, Values(b""), SECOND) == ASKED
    assert filled(PROBED, Filled(1), 5 * SECOND, CHANCE) == PROBED


def test_a_prover_that_fails_leaves_it_untold() -> None:
    said = broken(PROBED, "It was killed.")
    assert (said.verdict, said.words) == (Verdict.UNTOLD, "its memory was not proved: It was killed")
    assert Verdict.UNTOLD not in memories.FAILED
    assert "broken off" in broken(replace(ASKED), "").words
