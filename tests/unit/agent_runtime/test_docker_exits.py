"""The end of a container is its own or its host's doing, by the daemon's memory of it."""

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from windrow_agent.runtimes import docker_exits
from windrow_agent.runtimes.port import ENDED_BY_HOST, Run, RunState
from windrow_proto.errors import RuntimeUnavailable
from windrow_proto.ids import ClusterId, WorkloadId

MINE, OTHER = "c1", "c2"
NOWHERE = "unix:///nonexistent"
ENDED = Run(WorkloadId("work_1"), ClusterId("c"), (), "docker", RunState.EXITED, running_ns=7, exit_code=137)


def event(action: str, container: str = MINE, signal: str = "") -> dict[str, Any]:
    return {"Type": "container", "Action": action, "Actor": {"ID": container, "Attributes": {"signal": signal}}}


START, DIE, TERM, KILL = event("start"), event("die"), event("kill", signal="15"), event("kill", signal="9")
TALK = {"Type": "network", "Action": "connect", "Actor": {"ID": MINE, "Attributes": {}}}
REMEMBERED = {
    "it ended by itself": ([START, DIE], False),
    "another was killed": ([START, event("kill", OTHER, "9"), event("die", OTHER), DIE], False),
    "it was told to look at its settings again": ([START, event("kill", signal="1"), DIE], False),
    "it was killed and started again, by hand": ([START, KILL, DIE, START, DIE], False),
    "its start is forgotten": ([DIE], False),
    "its daemon has forgotten it among much else": ([TALK] * docker_exits.REMEMBERED, False),
    "its daemon was stopped and it obeyed": ([START, TERM, DIE, event("stop")], True),
    "its daemon was stopped and it did not obey": ([START, TERM, KILL, DIE, event("stop")], True),
    "its image asks for another signal": ([START, event("kill", signal="3"), DIE], True),
    "its daemon is another one now": ([], True),
    "its daemon is another one now and has begun others": ([TALK, event("start", OTHER), event("die", OTHER)], True),
    "its daemon came back and started it again, by hand": ([DIE, START], True),
}


@pytest.mark.parametrize(("events", "is_by_host"), REMEMBERED.values(), ids=REMEMBERED)
def test_an_end_is_its_own_where_the_daemon_saw_it_and_nobody_asked_for_it(
    events: list[dict[str, Any]], is_by_host: bool
) -> None:
    assert docker_exits.says_host(events, MINE) is is_by_host


def test_what_was_seen_first_stands_and_needs_no_daemon(tmp_path: Path) -> None:
    notes = threading.Lock()
    with pytest.raises(RuntimeUnavailable):  # and nothing is made up meanwhile
        docker_exits.seen(tmp_path, notes, ENDED, NOWHERE, MINE, bytes)
    assert docker_exits.seen(tmp_path, notes, ENDED, "", MINE, bytes) == ENDED
    assert docker_exits.seen(tmp_path, notes, ENDED, NOWHERE, MINE, bytes) == ENDED


def test_an_end_by_the_host_has_no_exit_code_and_the_time_that_was_seen_first(tmp_path: Path) -> None:
    (tmp_path / docker_exits.NOTE).write_text(json.dumps({"running_ns": 5, "is_by_host": True}))
    seen = docker_exits.seen(tmp_path, threading.Lock(), ENDED, NOWHERE, MINE, bytes)
    assert (seen.state, seen.exit_code, seen.running_ns, seen.detail) == (RunState.LOST, None, 5, ENDED_BY_HOST)


def test_what_an_older_agent_noted_stands(tmp_path: Path) -> None:
    (tmp_path / docker_exits.NOTE).write_text(json.dumps({"running_ns": 5}))
    seen = docker_exits.seen(tmp_path, threading.Lock(), ENDED, NOWHERE, MINE, bytes)
    assert (seen.state, seen.exit_code, seen.running_ns) == (RunState.EXITED, 137, 5)


def test_the_note_of_what_is_removed_meanwhile_is_not_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    assert docker_exits.seen(folder, threading.Lock(), ENDED, "", MINE, bytes) == ENDED
    assert not folder.exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            b"[FATAL tini (7)] exec /no/such failed: No such file or directory\n",
            "The command '/no/such' could not be run: No such file or directory.",
        ),
        (b"sh: nope: not found\n", ""),
        (b"", ""),
    ],
)
def test_a_command_that_an_init_could_not_run_is_named(tmp_path: Path, line: bytes, words: str) -> None:
    ended = replace(ENDED, exit_code=127)
    looks = [line]
    for _ in range(2):  # the second answers from the note
        seen = docker_exits.seen(tmp_path, threading.Lock(), ended, "", MINE, lambda: looks.pop())
        assert (seen.exit_code, seen.detail) == (127, words)
