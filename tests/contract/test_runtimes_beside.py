"""What a command finds that runs beside a workload: its processes, and the memory that it shares with them."""

from tests.support.places import REAL, Place, new_id, no_progress, only
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
