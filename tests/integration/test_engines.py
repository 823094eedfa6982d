"""The engines themselves on clusters over several hosts: Ray with Tune, PyTorch's DDP by torchrun, and Dask.

Through the shipped daemons and the command line, each host in a network of its own. They take minutes, and an
environment that has the engines (tests/support/engines.py):

    WINDROW_ENGINES=FOLDER python -m pytest -s tests/integration/test_engines.py
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines import need_engines
from tests.support.namespaces import need_networks
from tests.support.over_hosts import HOSTS, WAIT_S, Several, several_hosts
from tests.support.stack import WINDROW, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FINISHED_S = 480.0
"""Before a Ray cluster that has lost a host for good is given up, ten minutes after that."""
TRIALS = 12
TUNE = f"""
import json, time
import ray
from ray import tune

HERE = ray.util.get_node_ip_address

def descend(config):
    x = 10.0
    for _ in range(24):
        x -= 2 * config["rate"] * (x - 3.0)
        time.sleep(0.4)
        tune.report({{"loss": (x - 3.0) ** 2, "host": HERE()}})

class Told(tune.Callback):
    ended, at, is_half, failures = 0, {{}}, False, 0

    def on_trial_result(self, iteration, trials, trial, result, **more):
        self.at[trial.trial_id] = result["host"]
        early = [self.at[t.trial_id] for t in trials if t.status == "RUNNING" and t.trial_id in self.at]
        away = [host for host in early if host != head]
        if self.ended >= {TRIALS} // 2 and away and not self.is_half and result["training_iteration"] < 8:
            self.is_half = True
            print("HALF", away[0], flush=True)

    def on_trial_complete(self, iteration, trials, trial, **more):
        self.ended += 1
        print("ended", self.ended, "on", self.at[trial.trial_id], flush=True)

    def on_experiment_end(self, trials, **more):
        self.failures = sum(t.num_failures for t in trials)

ray.init(log_to_driver=False)
while len(ray.nodes()) < 3:
    time.sleep(0.5)
head, told, wanted = HERE(), Told(), len(ray.nodes())
rates = [0.01 * (1 + n) for n in range({TRIALS})]
tuner = tune.Tuner(
    descend,
    param_space={{"rate": tune.grid_search(rates)}},
    tune_config=tune.TuneConfig(metric="loss", mode="min"),
    run_config=tune.RunConfig(failure_config=tune.FailureConfig(max_failures=3), callbacks=[told], verbose=0),
)
results = tuner.fit()
best = results.get_best_result().config["rate"]
alive = sum(node["Alive"] for node in ray.nodes())
steps = sorted({{r.metrics["training_iteration"] for r in results}})
done = {{"trials": len(results), "errors": results.num_errors, "best": round(best, 3), "failures": told.failures}}
print("DONE", json.dumps(done | {{"steps": steps, "nodes": wanted, "alive": alive}}), flush=True)
"""
DDP = """
import json, os, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)
inputs = torch.randn(256, 16, dtype=torch.float64)
wanted = torch.sin(inputs.sum(1, keepdim=True))
layers = torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)
model = DistributedDataParallel(torch.nn.Sequential(*layers).double())
steps = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(200):
    loss = ((model(inputs[rank::size]) - wanted[rank::size]) ** 2).mean()
    steps.zero_grad()
    loss.backward()
    steps.step()
whole = loss.detach().clone()
dist.all_reduce(whole)
where = [None] * size
dist.all_gather_object(where, os.environ["WINDROW_ADDRESS"])
print("DONE", json.dumps({"rank": rank, "loss": whole.item() / size, "hosts": where}), flush=True)
dist.destroy_process_group()
"""
DASK = """
import json
import dask.array as da
from dask.distributed import Client

with Client() as client:
    client.wait_for_workers(3, timeout=60)
    x = da.arange(4_000_000, chunks=200_000, dtype="int64")
    total = int((x % 97 * 3).sum().compute())
    where = client.run(lambda: __import__("os").environ["WINDROW_ADDRESS"])
    print("DONE", json.dumps({"total": total, "hosts": sorted(where.values())}), flush=True)
"""

GROWING = """
import json, time
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

ray.init(log_to_driver=False)
alive = lambda: sum(node["Alive"] for node in ray.nodes())
while alive() < 3:
    time.sleep(0.5)
task = ray.remote(ray.util.get_node_ip_address)
on = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in ray.nodes()]
hosts = sorted(ray.get([task.options(scheduling_strategy=one).remote() for one in on]))
print("THREE", flush=True)
while alive() > 1:
    time.sleep(0.5)
print("DONE", json.dumps({"hosts": hosts}), flush=True)
"""


@pytest.fixture(scope="module")
def programs() -> Path:
    return need_engines()


@pytest.fixture(scope="module")
def several(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Several]:
    need_networks()
    with several_hosts(tmp_path_factory.mktemp("engines"), "10.95.0") as found:
        yield found


def in_environment(programs: Path) -> str:
    return f"PATH={programs}:/usr/bin:/bin"


def created(several: Several, programs: Path, kind: str, hosts: int, *argv: str) -> dict[str, Any]:
    """One command line, once there is space for it."""
    several.fits({"kind": kind, "hosts": hosts, "argv": list(argv)})
    words = ("--kind", kind, "--hosts", str(hosts), "--env", in_environment(programs), "--json")
    made = several.market.renter.windrow("cluster", "create", *words, *(("--", *argv) if argv else ()))
    assert made.returncode == 0, made.stderr
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def done(text: str) -> dict[str, Any]:
    """Returns the output of a program at its end."""
    found: dict[str, Any] = json.loads(re.findall(r"^DONE (.*)$", text, re.MULTILINE)[-1])
    return found


@contextmanager
def beside(several: Several, cluster: Mapping[str, Any], program: str, folder: Path) -> Iterator[Any]:
    """A Python program inside rank 0, by the command line; yields its process and a reading of its words so far."""
    found = several.market.renter.stack.cli
    environment = os.environ | {"WINDROW_URL": found["url"], "WINDROW_TOKEN": found["token"]}
    words = [WINDROW, "cluster", "exec", str(cluster["id"]), "--", "python", "-c", program]
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT, env=environment)
    try:
        yield process, (folder / "out").read_text
    finally:
        process.kill()
        process.wait()


def logs(several: Several, cluster: Mapping[str, Any], rank: int) -> str:
    """All that a member has said."""
    said: str = several.market.renter.windrow("cluster", "logs", str(cluster["id"]), "--rank", str(rank)).stdout
    return said


def ended(several: Several, cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Wait until the work of a cluster has ended."""
    found: dict[str, Any] = wait_for(
        lambda: (c := several.cluster(str(cluster["id"]))) and c["phase"] == "Finished" and c,
        FINISHED_S,
    )
    return found


def gone(several: Several, cluster: Mapping[str, Any], links: Mapping[str, str]) -> None:
    """Delete it by the command line; nothing of it is left on any host, and the bill is right."""
    deleted = several.market.renter.windrow("cluster", "delete", str(cluster["id"]), "--yes")
    assert deleted.returncode == 0, deleted.stderr
    several.market.renter.receipt(str(cluster["id"]))
    wait_for(lambda: several.left_over(cluster) == [], WAIT_S)
    assert interfaces(several) == links
    assert several.flaws(str(cluster["id"])) == []


def interfaces(several: Several) -> dict[str, str]:
    """The devices of every host, with their addresses; an address of a second ago is still tried."""
    shown = {name: several.market.networks[name].call("ip", "-o", "address") for name in HOSTS}
    return {name: re.sub(r"valid_lft.*| tentative", "", text) for name, text in shown.items()}


@pytest.mark.proves("torchrun: DDP over two hosts to the loss of one")
def test_ddp_by_torchrun_over_two_hosts_ends_with_the_loss_of_one(several: Several, programs: Path) -> None:
    links, found = interfaces(several), {}
    for hosts in (1, 2):
        torchrun = ("torchrun", "--nproc-per-node", "1", "--no-python", "python", "-c", DDP)
        cluster = created(several, programs, "gang", hosts, *torchrun)
        last = ended(several, cluster)
        said = [logs(several, cluster, rank) for rank in range(hosts)]
        assert last["reason"] == "exit 0" and all("DONE" in one for one in said), said
        found[hosts] = [done(one) for one in said]
        gone(several, cluster, links)
    print(found)
    assert len(set(found[2][0]["hosts"])) == 2
    losses = [one["loss"] for one in (*found[1], *found[2])]
    assert losses[0] < 0.1, "it has learnt"
    assert max(losses) - min(losses) < 1e-6


@pytest.mark.proves("Dask: a computation on the workers of three hosts")
def test_dask_computes_on_three_hosts_and_ends_with_its_program(several: Several, programs: Path) -> None:
    links = interfaces(several)
    cluster = created(several, programs, "dask", 3, "python", "-c", DASK)
    last = ended(several, cluster)
    said = logs(several, cluster, 0)
    assert last["reason"] == "exit 0", said
    found = done(said)
    assert found["total"] == sum(n % 97 * 3 for n in range(4_000_000))
    assert found["hosts"] == sorted(one["address"] for one in last["workloads"])
    gone(several, cluster, links)


@pytest.mark.proves("Ray: a Tune run on three hosts that finishes although one dies halfway")
def test_a_tune_run_finishes_on_three_hosts_of_which_one_dies_halfway(
    several: Several, programs: Path, tmp_path: Path
) -> None:
    links = interfaces(several)
    cluster = created(several, programs, "ray", 3)
    with beside(several, cluster, TUNE, tmp_path) as (process, said):
        half = wait_for(lambda: re.search(r"^HALF (\S+)$", said(), re.MULTILINE) or process.poll(), FINISHED_S)
        assert not isinstance(half, int), said()
        victim = several.of_member(cluster, half[1])
        killed = several.die(victim)
        assert any("raylet" in line for line in killed)
        code = process.wait(FINISHED_S)
    print(said())
    assert code == 0, said()
    found = done(said())
    assert (found["trials"], found["errors"], found["nodes"], found["alive"]) == (TRIALS, 0, 3, 2)
    assert found["steps"] == [24] and found["failures"] >= 1
    assert found["best"] == 0.12

    several.come_back(victim)
    gone(several, cluster, links)


@pytest.mark.proves("Ray: a cluster that runs is given more hosts, and fewer again")
def test_a_ray_cluster_grows_to_three_hosts_and_shrinks_to_one(
    several: Several, programs: Path, tmp_path: Path
) -> None:
    links = interfaces(several)
    cluster = created(several, programs, "ray", 2)  # processes in sandboxes: one alone has no network of the cluster
    windrow = several.market.renter.windrow
    with beside(several, cluster, GROWING, tmp_path) as (process, said):
        several.fits({"kind": "ray", "hosts": 1})
        grown = windrow("cluster", "resize", str(cluster["id"]), "3", "--json")
        assert grown.returncode == 0, grown.stderr
        wait_for(lambda: "THREE" in said() or process.poll() is not None, FINISHED_S)
        assert "THREE" in said(), said()
        members = json.loads(grown.stdout)["workloads"]
        wait_for(lambda: windrow("cluster", "resize", str(cluster["id"]), "1").returncode == 0, WAIT_S)
        code = process.wait(FINISHED_S)
    assert code == 0, said()
    assert done(said())["hosts"] == sorted(one["address"] for one in members) and len(members) == 3
    assert several.cluster(str(cluster["id"]))["phase"] == "Running"
    gone(several, cluster, links)
