"""Every runtime tells what a workload uses while it runs, and nothing before and after that."""

import pytest

from tests.support.places import Place, new_id, no_progress
from tests.waiting import poll_async
from windrow_agent.core.workload_usage import Usage
from windrow_agent.runtimes import process_usage
from windrow_proto.units import MIB, SECOND

WORK = "dd if=/dev/zero of=big bs=1M count=24 conv=fsync && while :; do :; done"
"""Writes a file of 24 MiB, all of it on the disk, then keeps one processor busy. `sync` would wait for what every other
test has written."""


async def test_what_a_workload_uses_is_told_while_it_runs_and_grows_with_its_work(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A minute as shipped, and the first look may be before its work.
    monkeypatch.setattr(process_usage, "SIZE_EVERY_S", 0.1)
    spec = place.spec("sh", "-c", WORK) if place.is_real else place.spec()
    await place.runtime.prepare(spec, no_progress)
    assert await place.runtime.usage(spec.workload_id) is None
    await place.runtime.start(spec.workload_id)
    first = await place.runtime.usage(spec.workload_id)
    assert first is not None and first.cpu_ns is not None

    async def has_worked() -> Usage | None:
        await place.runtime.pause(spec.workload_id, place.clock)  # the disk of containers is measured meanwhile
        found = await place.runtime.usage(spec.workload_id)
        assert found is not None and found.cpu_ns is not None and first.cpu_ns is not None
        has_run = found.cpu_ns - first.cpu_ns > SECOND // 2 and (found.memory_bytes or 0) > 0
        return found if has_run and (found.disk_bytes or 0) > 20 * MIB else None

    found = await poll_async(has_worked, what="its work shows in its figures")
    assert found is not None
    if place.kind in ("docker", "bubblewrap"):
        assert found.network_receive_bytes is not None and found.network_transmit_bytes is not None

    await place.runtime.stop(spec.workload_id, 0)
    assert await place.runtime.usage(spec.workload_id) is None
    await place.runtime.remove(spec.workload_id)
    assert await place.runtime.usage(new_id()) is None
