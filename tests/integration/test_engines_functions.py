"""Functions over two hosts by the engines themselves: PyTorch's DDP, Ray with Tune, and Dask, from Python.

Through the shipped daemons, each host in a network of its own, as tests/integration/test_engines.py, and long as that:

    WINDROW_ENGINES=FOLDER python -m pytest -s tests/integration/test_engines_functions.py
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines import need_engines, requirement
from tests.support.namespaces import need_networks
from tests.support.over_hosts import WAIT_S, Several, several_hosts
from tests.support.stack import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PAGE = Path(__file__).parents[2] / "docs" / "clusters-over-hosts.md"
SCRIPT_S = 540
WORK = """
import os

def address():
    return os.environ.get("WINDROW_ADDRESS", "alone")

def add(a, b):
    return a + b, address()

def on_ray():
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    @ray.remote
    def task(number):
        from work import add
        return add(number, 2)

    ray.init(log_to_driver=False)
    where = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in ray.nodes()]
    return ray.get([task.options(scheduling_strategy=one).remote(n) for n, one in enumerate(where)])

def on_dask():
    import dask.array as da
    from dask.distributed import Client
    with Client() as client:
        client.wait_for_workers(2, timeout=60)
        total = int((da.arange(1_000_000, chunks=100_000, dtype="int64") % 97 * 3).sum().compute())
        added = [client.submit(add, 1, 2, workers=[one], pure=False) for one in client.scheduler_info()["workers"]]
        return total, sorted(one.result() for one in added)

def train(steps):
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    print("training", flush=True)
    torch.manual_seed(7)
    inputs = torch.randn(256, 16, dtype=torch.float64)
    wanted = torch.sin(inputs.sum(1, keepdim=True))
    layers = torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)
    model = DistributedDataParallel(torch.nn.Sequential(*layers).double())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = ((model(inputs[rank::size]) - wanted[rank::size]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    whole = loss.detach().clone()
    dist.all_reduce(whole)
    where = [None] * size
    dist.all_gather_object(where, address())
    dist.destroy_process_group()
    return whole.item() / size, where
"""
SCRIPT = """
import json, sys
import windrow
import work

def main(name, hosts, how, *args):
    env = windrow.env(reqs=[REQUIREMENT])
    cluster = windrow.cluster(name, hosts=int(hosts), default_env=env)
    function = windrow.function(getattr(work, how)).to(cluster)
    kind = {"on_ray": "ray", "on_dask": "dask", "train": "pytorch"}[how]
    print("DONE", json.dumps(function.distribute(kind)(*map(int, args))))

if __name__ == "__main__":
    main(*sys.argv[1:])
"""
TRAINED = """
from ray import tune

def train_fn(config):
    from work import add
    score, host = add(-(config["width"] - 10) ** 2 - abs(config["height"]), 0)
    tune.report({"score": score, "host": host})
"""
HPO = """
import windrow as rh
from ray import tune
from hpo_train_fn import train_fn

def find_minimum(num_concurrent_trials=2, num_samples=4, metric_name="score"):
    search_space = {
        "width": tune.uniform(0, 20),
        "height": tune.uniform(-100, 100),
    }
    tuner = tune.Tuner(
        train_fn,
        tune_config=tune.TuneConfig(
            metric=metric_name,
            mode="max",
            max_concurrent_trials=num_concurrent_trials,
            num_samples=num_samples,
            reuse_actors=True,
        ),
        param_space=search_space,
    )
    tuner.fit()
    return tuner.get_results().get_best_result()

if __name__ == "__main__":
    cluster = rh.cluster(
        name="rh-cpu",
        default_env=rh.env(reqs=["ray[tune]"]),
        instance_type="CPU:4+",
        provider="aws",
    ).up_if_not()
    remote_find_minimum = rh.function(find_minimum).to(cluster).distribute("ray")
    best_result = remote_find_minimum()
    print("DONE", best_result.metrics["score"])
"""
"""The second script of the talk, with the import line changed, and a last line that shows what it has."""


@dataclass(slots=True)
class Person:
    """Somebody with a folder of code, and the engines installed beside it."""

    several: Several
    folder: Path
    programs: Path

    def output(self, *words: str) -> str:
        """What a script prints, which has to succeed."""
        cli = self.several.market.renter.stack.cli
        own = {"WINDROW_URL": cli["url"], "WINDROW_TOKEN": cli["token"], "XDG_STATE_HOME": str(self.folder / ".venv")}
        path = os.pathsep.join([str(self.folder / ".venv" / "site"), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=os.environ | own | {"PYTHONPATH": path},
            capture_output=True, text=True, timeout=SCRIPT_S, check=False,
        )  # fmt: skip
        print(done.stdout, done.stderr)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, *words: str) -> Any:
        """The last line that a script prints behind DONE."""
        return re.findall(r"^DONE (.*)$", self.output(*words), re.MULTILINE)[-1]

    def call(self, *words: str) -> Any:
        return json.loads(self.run("script.py", *words))

    def end(self, name: str) -> None:
        """Delete this cluster: nothing of it is left, and its bill is right."""
        renter = self.several.market.renter
        (found,) = [one for one in renter.all("/clusters") if one["name"] == name and one["phase"] == "Running"]
        cluster = self.several.cluster(found["id"])
        renter.delete(cluster["id"])
        wait_for(lambda: self.several.left_over(cluster) == [], WAIT_S)
        assert self.several.flaws(cluster["id"]) == []


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    programs = need_engines()
    need_networks()
    folder = tmp_path_factory.mktemp("code")
    (packages,) = programs.parent.glob("lib/python3.*/site-packages")
    (folder / "work.py").write_text(WORK)
    (folder / "script.py").write_text(SCRIPT.replace("REQUIREMENT", repr(requirement(programs))))
    (folder / "hpo_train_fn.py").write_text(TRAINED)
    (folder / ".venv" / "site").mkdir(parents=True)
    (folder / ".venv" / "site" / "sitecustomize.py").write_text(f"import sys\nsys.path.append({str(packages)!r})\n")
    with several_hosts(tmp_path_factory.mktemp("functions"), "10.93.0") as several:
        yield Person(several, folder, programs)


@pytest.mark.proves("functions: PyTorch's DDP over two hosts from Python, to the loss of one")
def test_ddp_over_two_hosts_from_python_ends_with_the_loss_of_one(person: Person) -> None:
    alone = person.call("alone", "1", "train", "200")
    person.end("alone")
    both = person.call("two", "2", "train", "200")
    assert alone[1] == ["alone"] and len(set(both[1])) == 2
    assert alone[0] < 0.1, "it has learnt"
    assert abs(alone[0] - both[0]) < 1e-6


@pytest.mark.proves("functions: the example of docs/clusters-over-hosts.md")
def test_the_example_of_the_page_says_what_the_page_says(person: Person) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (person.folder / "example.py").write_text(example.replace('"torch"', repr(requirement(person.programs))))
    assert sorted(person.output("example.py").splitlines()) == ["2", "[rank 1] loss 0.0", "loss 0.0"]


@pytest.mark.proves("functions: Ray's tasks and Dask's on two hosts find the caller's own code")
def test_ray_and_dask_on_two_hosts_find_the_code(person: Person) -> None:
    tasks = person.call("two", "2", "on_ray")
    total, added = person.call("two", "2", "on_dask")
    assert [number for number, _ in tasks] == [2, 3] and len({where for _, where in tasks}) == 2
    assert total == sum(n % 97 * 3 for n in range(1_000_000))
    assert [number for number, _ in added] == [3, 3] and {where for _, where in added} == {one for _, one in tasks}
    person.end("two")


@pytest.mark.proves("functions: Ray Tune's script of the talk, on one host and on two")
@pytest.mark.parametrize("hosts", [1, 2])
def test_the_script_of_the_talk_finds_its_best_result(person: Person, hosts: int) -> None:
    script = HPO.replace('"ray[tune]"', repr(requirement(person.programs))).replace("CPU:4+", "CPU:1+")
    script = script if hosts == 1 else script.replace('provider="aws"', 'provider="aws", hosts=2')
    (person.folder / "tune_it.py").write_text(script)
    assert -300 < float(person.run("tune_it.py")) <= 0
    person.end("rh-cpu")
