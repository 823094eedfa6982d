"""Clusters over several hosts through the shipped daemons: each host in a network of its own, all on one switch."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.namespaces import need_networks
from tests.support.over_hosts import WAIT_S, Several, several_hosts
from tests.support.stack import wait_for
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RING = """
import os, socket, sys
rank, size = int(os.environ["WINDROW_RANK"]), int(os.environ["WINDROW_WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(place) as server:
        server.settimeout(60)
        for _ in range(size - 1):
            peer, address = server.accept()
            assert address[0] in os.environ["WINDROW_MEMBERS"].split(","), address
            data = peer.recv(100)
            peer.sendall(data.upper())
            peer.close()
else:
    for attempt in range(300):
        try:
            peer = socket.create_connection(place, 1)
            break
        except OSError:
            import time; time.sleep(0.2)
    peer.sendall(f"from rank {rank}".encode())
    answer = peer.recv(100)
    assert answer == f"FROM RANK {rank}".encode(), answer
print("rank", rank, "is done", flush=True)
"""


WORK = """
import os, socket

def exchanged(word):
    place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if os.environ["RANK"] == "0":
        with socket.create_server(place) as server:
            peer, _ = server.accept()
            with peer:
                return word, peer.recv(100).decode(), os.environ["WORLD_SIZE"]
    while True:
        try:
            with socket.create_connection(place, 1) as peer:
                print("says", word, flush=True)
                peer.sendall(f"{word} of {os.environ['WINDROW_RANK']}".encode())
                return None
        except OSError:
            pass
"""
SCRIPT = """
import sys, windrow, work
two = windrow.cluster("two", hosts=2)
print(*windrow.function(work.exchanged).to(two).distribute("pytorch")(sys.argv[1]))
if sys.argv[1] == "last":
    two.down()
"""


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Several]:
    need_networks()
    with several_hosts(tmp_path_factory.mktemp("gangs"), "10.97.0") as found:
        yield found


def test_a_gang_of_two_hosts_exchanges_bytes_and_ends_and_leaves_nothing(several: Several) -> None:
    cluster = several.create("gang", "python3", "-c", RING, hosts=2, until="")
    done = wait_for(
        lambda: (c := several.cluster(cluster["id"])) and c["phase"] in ("Finished", "Failed") and c, WAIT_S
    )
    assert (done["phase"], done["reason"]) == ("Finished", "exit 0"), json.dumps(done, indent=1)
    logs = [several.market.renter.windrow("cluster", "logs", cluster["id"], "--rank", str(n)).stdout for n in (0, 1)]
    assert logs == ["rank 0 is done\n", "rank 1 is done\n"]
    members = done["workloads"]
    assert len({one["host_id"] for one in members}) == 2
    assert done["network"]["mode"] == "tunnels" and "processes in sandboxes" in done["network"]["reason"]
    assert {step["member"] for step in done["steps"] if step["name"] == "waiting_members"} == {
        f"rank {one['rank']} on {one['host_name']}" for one in members
    }

    receipt = several.market.renter.delete(cluster["id"])

    assert {line["host_id"] for line in receipt["lines"]} == {one["host_id"] for one in members}
    assert several.flaws(cluster["id"]) == []
    assert several.left_over(done) == []


@pytest.mark.proves("functions: one call over the processes of two hosts, from Python")
def test_a_function_runs_on_both_hosts_and_an_edit_is_seen_on_both(several: Several, tmp_path: Path) -> None:
    cli = several.market.renter.stack.cli
    own = {"WINDROW_URL": cli["url"], "WINDROW_TOKEN": cli["token"], "XDG_STATE_HOME": str(tmp_path / ".venv")}
    (tmp_path / "script.py").write_text(SCRIPT)
    several.fits({"kind": "gang", "hosts": 2, "argv": ["true"]})

    def said(word: str, code: str) -> list[str]:
        (tmp_path / "work.py").write_text(code)
        done = subprocess.run(
            [sys.executable, "script.py", word], cwd=tmp_path, env=os.environ | own, capture_output=True, text=True,
            timeout=PATIENCE_S * 3, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert said("first", WORK) == ["[rank 1] says first", "first first of 1 2"]
    (found,) = [one for one in several.market.renter.all("/clusters") if one["name"] == "two"]
    no_third = several.market.renter.windrow("cluster", "forward", found["id"], "80", "--rank", "2", "--stdio")
    assert no_third.returncode == 3 and "no member of rank 2: ranks count from 0, and its last is 1" in no_third.stderr
    edited = WORK.replace(" of {", " edited of {").replace("return word", "return word + '!'")
    assert said("last", edited) == ["[rank 1] says last", "last! last edited of 1 2"]

    gone = several.cluster(found["id"])
    wait_for(lambda: several.left_over(gone) == [], WAIT_S)
    assert several.flaws(found["id"]) == []


def test_a_member_that_cannot_start_takes_the_others_back_and_is_named(several: Several) -> None:
    failed = several.create("gang", "no-such-program", hosts=3, until="Failed")
    assert failed["reason"].startswith("rank ") and "no-such-program" in failed["reason"]
    wait_for(lambda: several.left_over(failed) == [], WAIT_S)


def test_a_rank_that_is_killed_makes_the_gang_degraded_and_deleting_it_leaves_nothing(several: Several) -> None:
    script = """
import os, time
time.sleep(600 if os.environ["WINDROW_RANK"] == "0" else 3)
print(*(f"line {number}" for number in range(1, 7)), sep="\\n", flush=True)
os._exit(7)
"""
    cluster = several.create("gang", "python3", "-c", script, hosts=2, until="")

    renter = several.market.renter
    hurt = renter.phase(cluster["id"], "Degraded")

    assert "has ended while others run: exit 7" in hurt["reason"]
    alert = wait_for(lambda: next((one for one in renter.all("/alerts") if one["cause"] == cluster["id"]), None))
    host = next(one["host_name"] for one in hurt["workloads"] if one["rank"] == 1)
    assert alert["rule"] == "cluster.rank_failed"
    assert alert["text"].startswith(f"Rank 1 on {host} failed first of 2, at ")
    assert alert["text"].splitlines()[1:] == ["line 2", "line 3", "line 4", "line 5", "line 6"]
    said = renter.windrow("machine", "doctor", cluster["id"]).stderr
    assert said.startswith(f"Rank 1 on {host} failed first: exit 7") and "  line 6\n" in said
    several.market.renter.delete(cluster["id"])
    assert several.left_over(hurt) == []


def test_the_command_line_shows_hosts_members_and_a_refusal_with_its_reason(several: Several) -> None:
    renter = several.market.renter
    made = renter.windrow("cluster", "create", "--kind", "gang", "--hosts", "2", "--name", "pair", "--", "sleep", "600")
    assert made.returncode == 0, made.stderr
    listed, shown = renter.windrow("cluster", "ls").stdout, renter.windrow("cluster", "show", "pair").stdout
    refused = renter.windrow("cluster", "create", "--kind", "gang", "--hosts", "4", "--", "true")
    assert renter.windrow("cluster", "delete", "pair", "--yes").returncode == 0
    assert "pair" in listed and "HOSTS" in listed
    assert "0: workload_" in shown and "1: workload_" in shown
    assert refused.returncode != 0 and "of the 4 hosts that you ask for" in refused.stderr


@pytest.mark.long
def test_a_lost_worker_is_replaced_on_the_third_host(several: Several, stub: Path) -> None:
    """The last of this file: it takes a host away."""
    cluster = several.create("dask", "sleep", "600", hosts=2, env={"PATH": f"{stub}:/usr/bin:/bin"})
    worker = next(one for one in cluster["workloads"] if one["rank"] == 1)
    several.agents[worker["host_name"].removeprefix("test-host-")].send_signal(signal.SIGKILL)

    def is_replaced() -> Any:
        now = several.cluster(cluster["id"])
        fresh = [one for one in now["workloads"] if one["rank"] == 1 and one["is_member"]]
        return now["phase"] == "Running" and fresh and fresh[0]["host_id"] != worker["host_id"] and now

    found = wait_for(is_replaced, 240)

    assert found["restarts"] == 1
    assert [step["name"] for step in found["steps"] if step["name"] in ("replacing", "degraded")]


@pytest.fixture
def stub() -> Iterator[Path]:
    """Writes a program called dask that stays up: what is tested here is who is started where, not the engine. Where
    workloads look for programs."""
    with tempfile.TemporaryDirectory(prefix="windrow-stub-", dir="/opt") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "dask").write_text("#!/bin/sh\nexec sleep 600\n")
        (folder / "dask").chmod(0o755)
        yield folder
