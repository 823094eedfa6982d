"""What a cluster uses is told to whom it belongs: now, and over time, also where a member was replaced."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.clusters.made import cluster, workload
from tests.unit.master_api.conftest import Api
from tests.unit.master_api.described import assert_described
from tests.unit.master_api.test_fleet_routes import GPU_1, HOST, fleet, send  # noqa: F401  # the fixture
from windrow_master.api import usage_routes
from windrow_master.api.fleet_shapes import reading_json
from windrow_master.api.usage_routes import MemberUsageOut
from windrow_master.clusters.model import ClusterPhase
from windrow_master.clusters.repository import ClusterRepository, WorkloadRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto.metrics import BY_NAME
from windrow_proto.units import MINUTE, time_text

CORES, GPU = BY_NAME["workload_cpu_cores"].number, BY_NAME["workload_gpu_ratio"].number
AT = "/api/v1/clusters/cluster_a/usage"


@pytest.fixture
async def rented(api: Api, fleet: Any) -> Api:  # noqa: F811
    """A Master with a cluster of the first account: a member that was replaced, its successor, and a second one."""
    mine = replace(cluster(ClusterPhase.RUNNING), account_id=api.services.identity.first_account().id)
    members = [
        replace(workload(number=1), replaced_at_ns=1),
        workload(number=2),
        replace(workload(number=3), rank=1),
    ]

    def add(uow: UnitOfWork) -> None:
        uow[ClusterRepository].add(mine, None, bytes(32))
        for one in members:
            uow[WorkloadRepository].add(replace(one, host_id=HOST))

    await api.services.store.write(add, name="test")
    return api


async def test_now_is_what_was_read_last_of_each_member_that_has_figures(rented: Api) -> None:
    nothing = await rented.client.get(AT)
    await send(rented, 1, {("", 101): 250, ("workload_2", CORES): 1500, ("workload_2", GPU): 421})
    found = await rented.client.get(AT)

    assert nothing.json() == {"members": []}
    assert_described(found, usage_routes.UsageOut)
    (member,) = found.json()["members"]
    assert (member["rank"], member["workload_id"], member["host_id"]) == (0, "workload_2", HOST)
    assert (member["cpu_cores"], member["gpu_ratio"], member["memory_used_bytes"]) == (1.5, pytest.approx(0.421), None)
    assert member["at"] == time_text(rented.clock.wall_ns())


async def test_the_stream_of_a_host_tells_of_the_host_and_its_gpus_alone(rented: Api) -> None:
    await send(rented, 1, {("", 101): 250, (GPU_1, 1): 50, ("workload_2", CORES): 1500})
    reading = rented.services.telemetry.live.get(HOST)
    assert reading is not None and reading_json(reading)["gpus"] == {GPU_1: {"gpu_utilization_ratio": 0.5}}


async def test_over_time_a_rank_is_one_line_whoever_had_it(rented: Api) -> None:
    start = rented.clock.wall_ns()
    await send(rented, 1, {("workload_1", CORES): 1000})
    rented.clock.advance(MINUTE)
    await send(rented, 2, {("workload_2", CORES): 2000, ("workload_3", CORES): 500})
    await rented.services.telemetry.view.catch_up()
    span = f"from={time_text(start)}&to={time_text(start + 2 * MINUTE)}&step_s=60"
    found = await rented.client.get(f"{AT}/history?{span}")
    alone = await rented.client.get(f"{AT}/history?{span}&rank=1")

    assert_described(found, usage_routes.UsageHistoryOut)
    lines = {
        one["rank"]: [value for _, value in one["points"] if value is not None]
        for one in found.json()["series"]
        if one["metric"] == "workload_cpu_cores"
    }
    assert lines == {0: [1.0, 2.0], 1: [0.5]}
    assert {one["rank"] for one in alone.json()["series"]} == {1}


async def test_a_metric_of_workloads_is_not_asked_of_a_host(rented: Api) -> None:
    answer = await rented.client.get(f"/api/v1/hosts/{HOST}/history?metric=workload_cpu_cores")
    assert answer.status_code == 422 and "clusters/CLUSTER/usage/history" in answer.json()["detail"]


def test_every_metric_of_workloads_has_its_field() -> None:
    named = {metric.name.removeprefix(usage_routes.PREFIX) for metric in usage_routes.OF_WORKLOADS}
    assert named == MemberUsageOut.model_fields.keys() - {"rank", "workload_id", "host_id", "host_name", "at"}
