"""A command that runs beside a workload: its processes, and the memory that it shares with them; and that
nothing of it is left there when it was ended."""

import asyncio
import signal
import uuid
from pathlib import Path

import pytest

from tests.support.places import PROCESSES, REAL, Place, commands, new_id, no_progress, only
from tests.waiting import PATIENCE_S, poll_async
from windrow_agent.runtimes import cgroups, sandbox, shared_memory
from windrow_agent.runtimes.port import RunState
from windrow_agent.runtimes.process import ProcessRuntime
from windrow_agent.runtimes.process_end import mark
from windrow_proto.errors import Conflict, NotFound
from windrow_proto.ids import HostId, WorkloadId


@only(REAL)
async def test_an_exec_sees_the_processes_of_its_workload(place: Place):
    nap = "sleep 8765"
    spec = place.spec("sh", "-c", f"{nap} & wait")
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    look = "for one in /proc/[0-9]*; do tr '\\0' ' ' < $one/cmdline; echo; done"

    async def sees() -> bool:
        return f"{nap} " in (await said(place, spec, look)).splitlines()

    await poll_async(sees, what="the command of the workload is seen")


@only(PROCESSES)
async def test_a_command_that_is_ended_while_it_begins_processes_leaves_none(place: Place):
    spec = place.spec()
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    nap = f"sleep {10**7 + uuid.uuid4().int % 10**7}"
    many = f"echo up; i=0; while [ $i -lt 500 ]; do ({nap}; :) & i=$((i+1)); done; wait"
    session = await place.runtime.exec(spec.workload_id, ("sh", "-c", many))
    assert (await session.read()) == (1, b"up\n")
    await session.close()
    await poll_async(lambda: nap not in commands(), what="all that it began have ended")


@only("bubblewrap")
async def test_shared_memory_is_a_workloads_own_and_goes_with_it(place: Place):
    name = f"left-{new_id()}"
    spec = place.spec("sh", "-c", f"echo kept > /dev/shm/{name}; sleep 600")
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)

    async def is_kept() -> bool:
        return await said(place, spec, f"cat /dev/shm/{name}") == "kept\n"

    await poll_async(is_kept, what="a command beside it reads what it wrote")
    assert not list(shared_memory.FOLDER.glob(f"left-{name}"))
    assert list(shared_memory.FOLDER.glob(f"*/{name}"))
    await place.runtime.remove(spec.workload_id)
    assert not list(shared_memory.FOLDER.glob(f"*{spec.workload_id}*"))


@only("bubblewrap")
async def test_a_command_beside_a_removal_makes_nothing_anew(place: Place, monkeypatch: pytest.MonkeyPatch):
    spec, loop = place.spec(), asyncio.get_running_loop()
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)

    inner = sandbox.inner

    def removed_meanwhile(outer: int) -> int | None:
        found = inner(outer)
        asyncio.run_coroutine_threadsafe(place.runtime.remove(spec.workload_id), loop).result(PATIENCE_S)
        return found

    monkeypatch.setattr(sandbox, "inner", removed_meanwhile)
    with pytest.raises((NotFound, Conflict)):
        await place.runtime.exec(spec.workload_id, ("true",))
    assert await place.again().list() == ()
    assert not list(shared_memory.FOLDER.glob(f"*{spec.workload_id}*"))


@only("bubblewrap")
async def test_what_is_left_of_a_workload_whose_folder_is_gone_is_found_and_goes(place: Place):
    nap = f"sleep {10**7 + uuid.uuid4().int % 10**7}"
    spec = place.spec("sh", "-c", f"{nap} & wait")
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    groups = [Path(one["folder"]) for one in cgroups.of(cgroups.find(), spec)]
    (place.folder / "process").rename(place.folder / "away")  # as of a host whose disk was emptied

    neighbour = ProcessRuntime(place.folder / "other", place.folder, HostId("host_other"))
    assert await neighbour.list() == ()
    after = place.again()
    (run,) = await after.list()
    assert (run.workload_id, run.state) == (spec.workload_id, RunState.CREATED)
    await after.remove(spec.workload_id)
    assert await after.list() == ()
    assert nap not in commands()
    await poll_async(lambda: spec.workload_id not in commands(), what="its shim has ended")
    assert not [one for one in groups if one.exists()]


@only(PROCESSES)
async def test_what_carries_the_mark_of_a_workload_goes_with_it_although_nothing_else_is_left(place: Place):
    own, others = new_id(), new_id()
    begun = [await _napping(one) for one in (own, others)]
    await place.runtime.remove(own)
    assert await begun[0].wait() == -signal.SIGKILL
    assert begun[1].returncode is None
    begun[1].kill()
    await begun[1].wait()


async def _napping(workload_id: WorkloadId) -> asyncio.subprocess.Process:
    name, value = mark(workload_id).decode().split("=")
    return await asyncio.create_subprocess_exec("/bin/sleep", "600", env={name: value})


async def said(place: Place, spec, script: str) -> str:
    """Returns the output of a shell that runs beside a workload."""
    session = await place.runtime.exec(spec.workload_id, ("sh", "-c", script))
    pieces = []
    while (piece := await session.read()) is not None:
        pieces.append(piece)
    await session.close()
    return b"".join(data for stream, data in pieces if stream == 1).decode()
