"""The engines on hosts to which nobody comes: a firewall drops all of it, so their members meet in a private network.

As test_engines.py, which says what is needed: minutes, and an environment that has the engines.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_engines import DASK, DDP, beside, created, done, ended, gone, interfaces, logs
from tests.support.engines import need_engines
from tests.support.namespaces import need_networks
from tests.support.over_hosts import CLOSED, HOSTS, Several, several_hosts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

RAY = """
import json, socket, time
import ray

ray.init(log_to_driver=False)
while len(ray.nodes()) < 2:
    time.sleep(0.5)

@ray.remote(scheduling_strategy="SPREAD")
def where(data):
    time.sleep(0.2)
    return ray.util.get_node_ip_address(), len(data)

big = ray.put(bytes(32 << 20))
found = ray.get([where.remote(big) for _ in range(12)])
sizes = sorted({size for _, size in found})
print("DONE", json.dumps({"hosts": sorted({host for host, _ in found}), "sizes": sizes}), flush=True)
"""


@pytest.fixture(scope="module")
def programs() -> Path:
    return need_engines()


@pytest.fixture(scope="module")
def closed(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Several]:
    need_networks()
    with several_hosts(tmp_path_factory.mktemp("closed"), "10.94.0") as found:
        for name in HOSTS:
            found.market.networks[name].forbid(incoming=CLOSED)
        yield found


@pytest.mark.proves("torchrun: DDP over two hosts that drop all that comes to them")
def test_ddp_over_two_closed_hosts_ends_with_one_loss(closed: Several, programs: Path) -> None:
    links = interfaces(closed)
    torchrun = ("torchrun", "--nproc-per-node", "1", "--no-python", "python", "-c", DDP)
    cluster = created(closed, programs, "gang", 2, *torchrun)
    last = ended(closed, cluster)
    said = [logs(closed, cluster, rank) for rank in range(2)]
    assert last["reason"] == "exit 0" and all("DONE" in one for one in said), said
    found = [done(one) for one in said]
    assert last["network"]["mode"] == "tunnels", last["network"]
    assert sorted(found[0]["hosts"]) == sorted(one["address"] for one in last["workloads"])
    assert found[0]["loss"] < 0.1 and abs(found[0]["loss"] - found[1]["loss"]) < 1e-6
    gone(closed, cluster, links)


@pytest.mark.proves("Dask: a computation on three hosts that drop all that comes to them")
def test_dask_computes_on_three_closed_hosts(closed: Several, programs: Path) -> None:
    links = interfaces(closed)
    cluster = created(closed, programs, "dask", 3, "python", "-c", DASK)
    last = ended(closed, cluster)
    said = logs(closed, cluster, 0)
    assert last["reason"] == "exit 0", said
    assert done(said)["hosts"] == sorted(one["address"] for one in last["workloads"])
    assert last["network"]["mode"] == "tunnels", last["network"]
    gone(closed, cluster, links)


@pytest.mark.proves("Ray: tasks and a large object on two hosts that drop all that comes to them")
def test_ray_runs_tasks_on_two_closed_hosts(closed: Several, programs: Path, tmp_path: Path) -> None:
    links = interfaces(closed)
    cluster = created(closed, programs, "ray", 2)
    with beside(closed, cluster, RAY, tmp_path) as (process, said):
        code = process.wait(300)
    assert code == 0, said()
    found = done(said())
    now = closed.cluster(str(cluster["id"]))
    assert (found["hosts"], found["sizes"]) == (sorted(one["address"] for one in now["workloads"]), [32 << 20])
    assert now["network"]["mode"] == "tunnels", json.dumps(now["network"])
    gone(closed, cluster, links)
