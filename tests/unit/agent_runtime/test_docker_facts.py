"""A container's time begins when it began and not when it was asked to, whatever the wall clock does meanwhile."""

from pathlib import Path

import pytest

from windrow_agent.runtimes.docker_facts import correct_start, read_start, write_start
from windrow_proto.units import MILLISECOND, SECOND

ASKED_NS, NOW_NS = 50 * SECOND, 51 * SECOND
BEGAN = {"State": {"StartedAt": "2026-01-02T03:04:05.25Z"}}
BEGAN_WALL_NS = 1_767_323_045 * SECOND + 250 * MILLISECOND


@pytest.mark.parametrize(
    ("wall_ns", "began_ns"),
    [
        (BEGAN_WALL_NS + 200 * MILLISECOND, NOW_NS - 200 * MILLISECOND),
        (BEGAN_WALL_NS + 400 * 24 * 3600 * SECOND, ASKED_NS),
        (BEGAN_WALL_NS - 400 * 24 * 3600 * SECOND, NOW_NS),
    ],
    ids=["steady", "the clock leapt ahead", "the clock fell back"],
)
def test_the_start_is_moved_to_the_container_s_own_within_what_was_noted(
    tmp_path: Path, wall_ns: int, began_ns: int
) -> None:
    note = tmp_path / "start.json"
    write_start(note, ASKED_NS)

    correct_start(note, BEGAN, NOW_NS, wall_ns)

    found = read_start(note)
    assert found is not None and found.monotonic_ns == began_ns


def test_without_a_note_or_a_beginning_nothing_is_made_up(tmp_path: Path) -> None:
    note = tmp_path / "start.json"
    correct_start(note, BEGAN, NOW_NS, BEGAN_WALL_NS)
    assert read_start(note) is None

    write_start(note, ASKED_NS)
    correct_start(note, {"State": {"StartedAt": "0001-01-01T00:00:00Z"}}, NOW_NS, BEGAN_WALL_NS)
    found = read_start(note)
    assert found is not None and found.monotonic_ns == ASKED_NS
