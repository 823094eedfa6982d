"""What a command finds that runs beside a workload: its processes, and the memory that it shares with them; and that
nothing of it is left there when it was ended."""

import uuid

from tests.support.places import PROCESSES, REAL, Place, commands, new_id, no_progress, only
from tests.waiting import poll_async
from windrow_agent.runtimes.sandbox import SHARED_MEMORY


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
    assert not list(SHARED_MEMORY.glob(f"left-{name}"))
    assert list(SHARED_MEMORY.glob(f"*/{name}"))
    await place.runtime.remove(spec.workload_id)
    assert not list(SHARED_MEMORY.glob(f"*{spec.workload_id}*"))


async def said(place: Place, spec, script: str) -> str:
    """What a shell says that runs beside a workload."""
    session = await place.runtime.exec(spec.workload_id, ("sh", "-c", script))
    pieces = []
    while (piece := await session.read()) is not None:
        pieces.append(piece)
    await session.close()
    return b"".join(data for stream, data in pieces if stream == 1).decode()
