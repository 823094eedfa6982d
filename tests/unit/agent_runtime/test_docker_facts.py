"""A container's time begins when it began and not when it was asked to, whatever the wall clock does meanwhile.

Also what its end and its limits are.
"""

from pathlib import Path
from typing import Any

import pytest

from windrow_agent.core.devices import Devices
from windrow_agent.runtimes.docker_facts import (
    CLUSTER,
    REASON_LATE_NS,
    WORKLOAD,
    command,
    correct_start,
    entrypoint,
    host_config,
    may_lack_reason,
    read_start,
    run_of,
    working_folder,
    write_start,
)
from windrow_agent.runtimes.port import Run
from windrow_agent.runtimes.sandbox import STAY_UP
from windrow_proto.ids import ClusterId, WorkloadId
from windrow_proto.model import WorkloadSpec
from windrow_proto.units import GIB, MIB, MILLISECOND, SECOND

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


def ended(**state: object) -> Run:
    """A container that has ended, as inspected."""
    return run_of(inspected(**state), None, NOW_NS, BEGAN_WALL_NS + SECOND)


def inspected(**state: object) -> dict[str, Any]:
    times = {"Status": "exited", "StartedAt": "2026-01-02T03:04:05Z", "FinishedAt": "2026-01-02T03:04:06Z"}
    labels = {WORKLOAD: "work_1", CLUSTER: "cluster_1"}
    return {"State": times | state, "Config": {"Labels": labels}, "HostConfig": {"Memory": 64 * MIB}}


def test_an_end_for_want_of_memory_says_so_with_the_limit() -> None:
    assert ended(ExitCode=137, OOMKilled=True).detail == "the workload ran out of memory at its limit of 64 MiB"
    assert ended(ExitCode=137, OOMKilled=False).detail == ""
    assert ended(ExitCode=128, Error="no such device").detail == "no such device"


def test_only_a_fresh_end_by_sigkill_under_a_limit_of_memory_may_still_get_its_reason() -> None:
    soon_ns = BEGAN_WALL_NS + 2 * SECOND
    assert may_lack_reason(inspected(ExitCode=137), soon_ns)
    assert not may_lack_reason(inspected(ExitCode=137), soon_ns + REASON_LATE_NS)
    assert not may_lack_reason(inspected(ExitCode=137, OOMKilled=True), soon_ns)
    assert not may_lack_reason(inspected(ExitCode=1), soon_ns)
    assert not may_lack_reason(inspected(ExitCode=137, Status="running"), soon_ns)
    assert not may_lack_reason(inspected(ExitCode=137) | {"HostConfig": {"Memory": 0}}, soon_ns)


@pytest.mark.parametrize(
    ("asked", "host", "given"),
    [(64 * MIB, 8 * GIB, 64 * MIB), (0, 8 * GIB, 7 * GIB), (16 * GIB, 8 * GIB, 7 * GIB), (0, 1 * GIB, GIB // 2)],
)
def test_no_container_may_take_what_its_host_lives_on(asked: int, host: int, given: int) -> None:
    spec = WorkloadSpec(WorkloadId("work_1"), ClusterId("c"), (), "docker", "busybox", memory_bytes=asked)
    limits = host_config(spec, 4, host, Devices())
    assert (limits["mem_limit"], limits["memswap_limit"], limits["pids_limit"]) == (given, given, 4096)


SERVES = {"Entrypoint": ["/serve"], "Cmd": ["--all"], "WorkingDir": "/app"}


@pytest.mark.parametrize(
    ("image", "argv", "asked", "program", "arguments"),
    [
        (SERVES, (), None, None, None),
        (SERVES, ("--one",), None, None, ["--one"]),
        (SERVES, (), "python", ["python"], None),
        (SERVES, ("a.py",), "python", ["python"], ["a.py"]),
        (SERVES, ("sh", "-c", "true"), "", [""], ["sh", "-c", "true"]),
        (SERVES, (), "", [""], list(STAY_UP)),
        ({"Cmd": ["sh"]}, (), None, None, None),
        ({}, (), None, None, list(STAY_UP)),
    ],
)
def test_a_command_is_given_to_the_entry_point_of_the_image_or_of_the_request(
    image: dict[str, Any], argv: tuple[str, ...], asked: str | None, program: object, arguments: object
) -> None:
    spec = WorkloadSpec(WorkloadId("work_1"), ClusterId("c"), (), "docker", "i", argv, entrypoint=asked)
    assert (entrypoint(spec), command(spec, {"Config": image})) == (program, arguments)


@pytest.mark.parametrize(
    ("own", "is_with_files", "folder"),
    [("/app", False, "/app"), ("/app", True, "/workspace"), ("/", False, "/workspace"), (None, False, "/workspace")],
)
def test_work_starts_in_the_folder_of_its_image_unless_its_files_are_in_workspace(
    own: str | None, is_with_files: bool, folder: str
) -> None:
    spec = WorkloadSpec(WorkloadId("work_1"), ClusterId("c"), (), "docker", "i", starts_in_workspace=is_with_files)
    assert working_folder(spec, {"Config": {"WorkingDir": own}}) == folder
