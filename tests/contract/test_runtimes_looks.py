"""Several look at one workload at once, as an agent does after its restart: they see one end, and leave no trace."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import REAL, Place, no_progress, only, run_to_end, until_ended
from windrow_agent.runtimes import docker_exits
from windrow_agent.runtimes.port import RunState
from windrow_agent.runtimes.shim import write_whole
from windrow_proto.errors import RuntimeUnavailable

LOOKS = 4


async def test_who_looks_at_once_sees_the_same_end(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    noted: list[str] = []

    def slowly(folder: str, name: str, record: dict[str, Any]) -> None:
        noted.append(name)
        time.sleep(0.2)
        write_whole(folder, name, record)

    spec = place.spec("echo", "x")
    await run_to_end(place, spec)
    monkeypatch.setattr(docker_exits, "write_whole", slowly)
    if place.has_containers:  # as if nobody had seen it end
        (tmp_path / "docker" / spec.workload_id / "end.json").unlink()
    found = await asyncio.gather(*(place.runtime.observe(spec.workload_id) for _ in range(LOOKS)))
    assert {(run.state, run.exit_code) for run in found if run is not None} == {(RunState.EXITED, 0)}
    assert len({run.running_ns for run in found if run is not None}) == 1
    assert noted == (["end.json"] if place.has_containers else [])


@only(REAL)
async def test_who_looks_while_it_is_removed_leaves_nothing(place: Place, tmp_path: Path):
    spec = place.spec("true")
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    await until_ended(place, spec.workload_id)
    looks = [place.runtime.observe(spec.workload_id) for _ in range(LOOKS)]
    _, *seen = await asyncio.gather(place.runtime.remove(spec.workload_id), *looks, return_exceptions=True)
    assert not [one for one in seen if isinstance(one, BaseException) and not isinstance(one, RuntimeUnavailable)]
    assert await place.runtime.observe(spec.workload_id) is None
    assert list(tmp_path.glob(f"*/{spec.workload_id}*")) == []
