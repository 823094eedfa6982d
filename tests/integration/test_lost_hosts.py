"""A market takes away the remains of hosts that a test has killed for good."""

import asyncio
import json
import uuid
from pathlib import Path

import pytest

from tests.services import need
from tests.support.places import commands, new_id, no_progress
from tests.support.regions import clear_hosts
from windrow_agent.runtimes import cgroups, shared_memory
from windrow_agent.runtimes.process import ProcessRuntime
from windrow_proto.ids import ClusterId, HostId, WorkloadId
from windrow_proto.model import WorkloadSpec

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_nothing_stays_of_what_a_host_ran_and_another_market_keeps_its_own(tmp_path: Path) -> None:
    need("bubblewrap")
    one, other = (asyncio.run(_begun(tmp_path / name / "host-a")) for name in ("market", "another"))
    assert len(_left(one)) > 2
    clear_hosts(tmp_path / "market")
    assert _left(one) == []
    assert len(_left(other)) > 2
    clear_hosts(tmp_path / "another")
    assert _left(other) == []


async def _begun(host: Path) -> WorkloadId:
    """A workload of a host whose agent is no more."""
    host_id = HostId(f"host_{uuid.uuid4().hex}")
    (host / "identity").mkdir(parents=True)
    (host / "identity" / "identity.json").write_text(json.dumps({"id": host_id}))
    runtime = ProcessRuntime(host / "process", host, host_id)
    spec = WorkloadSpec(new_id(), ClusterId("cluster_x"), (), "process", "", ("sleep", "600"))
    await runtime.prepare(spec, no_progress)
    await runtime.start(spec.workload_id)
    return spec.workload_id


def _left(workload_id: WorkloadId) -> list[str]:
    """Its processes, control groups and shared memory."""
    found = [line for line in commands().splitlines() if workload_id in line]
    places = [*cgroups.find().folders.values(), shared_memory.FOLDER]
    return found + [str(path) for place in places for path in place.glob(f"windrow-{workload_id}*")]
