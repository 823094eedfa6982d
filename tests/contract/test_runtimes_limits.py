"""A process workload is limited as a whole by control groups, where this machine lets some be made, and none stays."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.support.places import PROCESSES, Place, no_progress, only, until_ended
from tests.waiting import poll_async
from windrow_agent.runtimes import cgroups
from windrow_agent.runtimes.port import Run, RunState
from windrow_agent.runtimes.process import ProcessRuntime
from windrow_proto.ids import WorkloadId
from windrow_proto.model import WorkloadSpec
from windrow_proto.units import MIB

pytestmark = only(PROCESSES)

MOST = 200
"""In place of the shipped limit: a bomb is a bomb, and this machine has other things to do."""
BOMB = ("sh", "-c", "sh -c 'while :; do sleep 600 & done'; sleep 600")
"""A shell that cannot fork ends, so another one keeps the workload."""


@pytest.fixture(autouse=True)
def parents() -> cgroups.Parents:
    found = cgroups.find()
    if "memory" not in found.folders or "pids" not in found.folders:
        pytest.skip("no control groups can be made here: run as root, where they are mounted writable")
    return found


@pytest.mark.proves("a process workload that takes all memory or processes is stopped at its limit, with the reason")
async def test_a_memory_hog_ends_at_its_limit_and_says_so(place: Place) -> None:
    spec = place.spec("tail", "/dev/zero", memory_bytes=64 * MIB)
    await _started(place, spec)
    run = await until_ended(place, spec.workload_id)
    again = await place.again().observe(spec.workload_id)
    log = (place.folder / "process" / spec.workload_id / "log").read_bytes()[-400:]
    assert (run.exit_code, run.detail) == (137, "the workload ran out of memory at its limit of 64 MiB"), log
    assert again == run


async def test_what_it_starts_counts_together_and_what_ends_by_itself_has_no_such_reason(place: Place) -> None:
    thrice = "for n in 1 2 3; do tail /dev/zero & done; wait; exit 3"
    together = place.spec("sh", "-c", thrice, memory_bytes=64 * MIB)
    alone = place.spec("sh", "-c", "head -c 30m /dev/zero | tail -n 1 > /dev/null; exit 3", memory_bytes=256 * MIB)
    ends = []
    for spec in (together, alone):
        await _started(place, spec)
        run = await until_ended(place, spec.workload_id)
        ends.append((run.exit_code, run.detail))
    assert ends == [(3, "the workload ran out of memory at its limit of 64 MiB"), (3, "")]


async def test_a_fork_bomb_stays_below_its_limit_and_goes_with_its_deletion(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "PROCESSES_MAX", MOST)
    spec = place.spec(*BOMB)
    await _started(place, spec)
    (folder,) = (one for one in _folders(place, spec.workload_id) if (one / "pids.max").exists())
    most = await poll_async(lambda: (n := _members(folder)) >= MOST - 2 and n, what="the bomb is at its limit")
    await place.runtime.remove(spec.workload_id)
    assert most <= MOST
    assert not folder.exists()


async def test_a_command_beside_it_is_limited_with_it(place: Place) -> None:
    spec = place.spec("sleep", "300", memory_bytes=64 * MIB)
    await _started(place, spec)
    session = await place.runtime.exec(spec.workload_id, ("tail", "/dev/zero"))
    while await session.read() is not None:
        pass
    await session.close()
    run = await place.runtime.observe(spec.workload_id)
    assert session.exit_code == 137
    assert run is not None and run.state is RunState.RUNNING


@pytest.mark.parametrize("how", ["it ended", "it runs", "its shim was killed"])
async def test_a_deletion_leaves_no_group(place: Place, how: str) -> None:
    assert isinstance(place.runtime, ProcessRuntime)
    words = "true" if how == "it ended" else "env -u WINDROW_WORKLOAD_ID sleep 300"  # without its mark
    spec = place.spec("sh", "-c", words)
    await _started(place, spec)
    if how == "it ended":
        await until_ended(place, spec.workload_id)
    if how == "its shim was killed":
        os.kill(place.runtime.shim_pid(spec.workload_id) or 0, signal.SIGKILL)
        await poll_async(lambda: _is_lost(place, spec), what="the loss is seen")
    folders = _folders(place, spec.workload_id)
    await place.runtime.remove(spec.workload_id)
    assert folders and not [one for one in folders if one.exists()]


async def test_the_facts_say_what_is_limited(place: Place, parents: cgroups.Parents) -> None:
    facts = await place.runtime.facts()
    assert f"limited by control groups (version {parents.version})" in facts.detail


async def _started(place: Place, spec: WorkloadSpec) -> Run:
    await place.runtime.prepare(spec, no_progress)
    return await place.runtime.start(spec.workload_id)


async def _is_lost(place: Place, spec: WorkloadSpec) -> bool:
    run = await place.runtime.observe(spec.workload_id)
    return run is not None and run.state is RunState.LOST


def _folders(place: Place, workload_id: WorkloadId) -> list[Path]:
    record = json.loads((place.folder / "process" / workload_id / "launch.json").read_bytes())
    return [Path(group["folder"]) for group in record["groups"]]


def _members(folder: Path) -> int:
    return len((folder / "cgroup.procs").read_text().split())
