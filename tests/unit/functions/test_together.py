"""One call over all hosts of a cluster: two real workers, and an engine that is small and ours."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import windrow
from tests.support.worker import Worker, working
from tests.unit.functions.conftest import Code, gathered
from tests.waiting import PATIENCE_S, poll
from windrow.errors import FunctionError, RunCancelled
from windrow.remote.cluster import Cluster

RANKS = """
import json, os, socket, time

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")

def names(word):
    print(word, flush=True)
    if os.environ["RANK"] != "0":
        return os.environ["RANK"]
    with socket.create_server(("127.0.0.1", int(os.environ["MASTER_PORT"]))):
        return [os.environ[name] for name in NAMES]

def fails_on(rank, folder):
    open(os.path.join(folder, os.environ["RANK"]), "w").close()
    while len(os.listdir(folder)) < int(os.environ["WORLD_SIZE"]):
        time.sleep(0.01)
    if os.environ["RANK"] == rank:
        raise KeyError("of one")
    time.sleep(600)

def alone():
    return os.environ["WINDROW_RANK"], os.environ.get("RANK")
"""
RAY = """
import os, socket

def init(**_):
    host, port = os.environ["RAY_ADDRESS"].split(":")
    with socket.create_connection((host, int(port))) as one:
        one.sendall(b"?" + os.environ["RAY_AUTH_TOKEN"].encode())
        return one.recv(100).decode().split()

def nodes():
    return [{"Alive": True}] * len(init())
"""
RAY_START = """
import os, socket, sys, threading, time

flags = dict(word.partition("=")[::2] for word in sys.argv[1:])
mine = flags["--num-cpus"]
if "--head" not in flags and not os.path.exists("came"):
    open("came", "w").close()
    sys.exit("this host is too busy")
if "--head" not in flags:
    host, port = flags["--address"].split(":")
    with socket.create_connection((host, int(port))) as one:
        one.sendall(b"+" + mine.encode())
        one.recv(1)
    sys.exit("the head has gone")
joined = [mine]

def serve(one):
    with one:
        said = one.recv(100).decode()
        if said[:1] == "?":
            one.sendall(" ".join(joined).encode() if said[1:] == os.environ["RAY_AUTH_TOKEN"] else b"")
        elif said:
            joined.append(said[1:])
            time.sleep(600)

with socket.create_server((flags["--node-ip-address"], int(flags["--port"]))) as server:
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""
ON_RAY = """
def members():
    import ray
    print("members")
    return ray.init()

def fails():
    raise KeyError("in the function")
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Worker, Worker]]:
    members = {"WINDROW_MEMBERS": "127.0.0.1,127.0.0.1"}
    with (
        working(tmp_path_factory.mktemp("one"), WINDROW_RANK="0", **members) as one,
        working(tmp_path_factory.mktemp("two"), WINDROW_RANK="1", **members) as other,
    ):
        yield one, other


def over(two: tuple[Worker, Worker], **shape: int) -> Cluster:
    """A handle of both."""
    cluster = two[0].cluster()
    cluster.shape = {"hosts": 2, "cpus": 3, "gpus": 0} | shape
    cluster._others = [two[1].session()]
    return cluster


def test_a_function_runs_once_on_each_host_and_rank_0_returns(two: tuple[Worker, Worker], code: Code) -> None:
    code.write(RANKS)
    function, said = gathered(windrow.function(code.module.names).to(over(two)).distribute("pytorch"))
    assert function("here") == ["0", "2", "0", "1", "127.0.0.1"]
    assert sorted(data for _, data in said) == [b"[rank 1] here\n", b"here\n"]
    assert windrow.function(code.module.alone).to(over(two))() == ("0", None)


@pytest.mark.parametrize(("shape", "n", "size"), [({"gpus": 2}, None, 2), ({}, 3, 3)])
def test_each_host_has_a_process_for_each_gpu_or_as_many_as_are_asked_for(
    two: tuple[Worker, Worker], code: Code, shape: dict[str, int], n: int | None, size: int
) -> None:
    code.write(RANKS)
    function, said = gathered(windrow.function(code.module.names).to(over(two, **shape)).distribute("pytorch", n))
    assert function("x")[:4] == ["0", str(2 * size), "0", str(size)]
    assert sorted(data for _, data in said) == [*(f"[rank {n}] x\n".encode() for n in range(1, 2 * size)), b"x\n"]


@pytest.mark.parametrize("rank", ["0", "1"])
def test_one_that_fails_ends_the_others_and_is_what_the_caller_sees(
    two: tuple[Worker, Worker], code: Code, there: Path, rank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code.write(RANKS)
    with pytest.raises(KeyError, match="of one"):
        windrow.function(code.module.fails_on).to(over(two)).distribute("pytorch")(rank, str(there))
    assert f"rank {rank} of 2 failed" in capsys.readouterr().err


def test_all_of_it_is_cancelled_and_the_next_one_waits_for_its_turn(
    two: tuple[Worker, Worker], code: Code, there: Path
) -> None:
    code.write(RANKS)
    cluster = over(two)
    run = windrow.function(code.module.fails_on).to(cluster).distribute("pytorch").remote("nobody", str(there))
    poll(lambda: len(list(there.iterdir())) == 2)
    found: list[Any] = []
    later = windrow.function(code.module.names).to(cluster).distribute("pytorch")
    waiting = threading.Thread(target=lambda: found.append(later("later")))
    waiting.start()
    run.cancel()
    with pytest.raises(RunCancelled):
        run.result(PATIENCE_S)
    waiting.join(PATIENCE_S)
    assert found == [["0", "2", "0", "1", "127.0.0.1"]]


def test_an_engine_begins_on_each_host_before_the_function_and_ends_with_it(
    two: tuple[Worker, Worker], code: Code, capsys: pytest.CaptureFixture[str]
) -> None:
    (code.folder / "ray" / "scripts").mkdir(parents=True)
    (code.folder / "ray" / "__init__.py").write_text(RAY)
    (code.folder / "ray" / "scripts" / "__init__.py").touch()
    (code.folder / "ray" / "scripts" / "scripts.py").write_text(RAY_START)
    code.write(ON_RAY)
    cluster = over(two)
    function, said = gathered(windrow.function(code.module.members).to(cluster).distribute("ray"))
    assert function() == ["3", "3"]
    assert said == [(1, b"members\n")]
    with pytest.raises(KeyError, match="in the function"):
        windrow.function(code.module.fails).to(cluster).distribute("ray")()
    assert capsys.readouterr().err == ""


def test_an_engine_that_is_not_installed_is_named(two: tuple[Worker, Worker], code: Code) -> None:
    with pytest.raises(RuntimeError, match=r'no distributed.*windrow\.env\(reqs=\["distributed"\]\)'):
        windrow.function(code.module.number).to(over(two)).distribute("dask")()


def test_alone_an_engine_starts_in_the_call_itself(worker: Worker, code: Code) -> None:
    code.write("import os\ndef rank(): return os.environ.get('RANK')\n")
    for kind, wanted in (("ray", None), ("dask", None), ("pytorch", "0")):
        assert windrow.function(code.module.rank).to(worker.cluster()).distribute(kind)() == wanted


def test_ways_that_there_are_not_are_refused() -> None:
    function = windrow.function(len)
    with pytest.raises(FunctionError, match="there are pool, pytorch, ray, dask"):
        function.distribute("spark")
    with pytest.raises(FunctionError, match="number of processes"):
        function.distribute("pool")
    for kind, n in (("ray", 2), ("dask", 1), ("pytorch", 0), ("pytorch", 65)):
        with pytest.raises(FunctionError, match="from 1 to 64; ray and dask take none"):
            function.distribute(kind, n)


def test_several_hosts_are_a_gang_and_one_is_a_box() -> None:
    asked = [windrow.cluster("c", hosts=hosts)._request["kind"] for hosts in (None, 1, 2)]
    assert asked == ["box", "box", "gang"]
