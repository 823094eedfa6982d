"""Clusters over hosts that do not see each other, through the shipped daemons: a firewall drops all that comes to them.

Each host dials out to its Access alone. What is here takes seconds; the engines themselves are in test_engines.py.
"""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.namespaces import need_networks
from tests.support.over_hosts import CLOSED, HOSTS, WAIT_S, Several, several_hosts
from tests.support.stack import WINDROW, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RING = """
import os, socket, sys, time
rank, members = int(os.environ["WINDROW_RANK"]), os.environ["WINDROW_MEMBERS"].split(",")
with socket.create_server((members[rank], 0)) as own:
    if rank == 0:
        place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        with socket.create_server(place) as server:
            server.settimeout(60)
            peer, address = server.accept()
            assert address[0] == members[1], address
            port = int(peer.recv(100))
            peer.sendall(str(own.getsockname()[1]).encode())
    else:
        for attempt in range(300):
            try:
                peer = socket.create_connection((members[0], int(os.environ["MASTER_PORT"])), 1)
                break
            except OSError:
                time.sleep(0.2)
        peer.sendall(str(own.getsockname()[1]).encode())
        port = int(peer.recv(100))
    # Both ways at once, over ports that nobody was told of before: as gloo and NCCL do it.
    other = socket.create_connection((members[1 - rank], port), 20)
    taken, address = own.accept()
    assert address[0] == members[1 - rank], address
    size = 8 << 20
    import threading
    sending = threading.Thread(target=lambda: (other.sendall(bytes([rank]) * size), other.shutdown(1)))
    sending.start()
    got = b""
    while piece := taken.recv(1 << 20):
        got += piece
    sending.join()
    assert got == bytes([1 - rank]) * size
print("rank", rank, "is done", flush=True)
"""


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Several]:
    """Three hosts to which nobody comes."""
    need_networks()
    with several_hosts(tmp_path_factory.mktemp("private"), "10.93.0") as found:
        for name in HOSTS:
            found.market.networks[name].forbid(incoming=CLOSED)
        yield found


def devices(several: Several) -> dict[str, str]:
    """The devices of every host, with their addresses."""
    shown = {name: several.market.networks[name].call("ip", "-o", "address") for name in HOSTS}
    return {name: re.sub(r"valid_lft.*", "", text) for name, text in shown.items()}


def ended(several: Several, cluster: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = wait_for(
        lambda: (
            (c := several.cluster(cluster["id"]))
            and ("has ended" in (c["reason"] or "") or c["phase"] == "Finished")
            and c
        ),
        WAIT_S,
    )
    return found


def test_a_firewall_of_a_hosts_own_is_not_in_the_way_of_processes_in_sandboxes(closed: Several) -> None:
    for name in HOSTS:
        closed.market.networks[name].forbid(incoming="ct state established,related accept\ncounter drop")
    try:
        wait_for(lambda: not refused(closed), WAIT_S)
    finally:
        for name in HOSTS:
            closed.market.networks[name].forbid(incoming=CLOSED)


def refused(several: Several) -> str:
    """Returns the refusal of a request for two hosts; what is made after all is taken away again."""
    words = ("cluster", "create", "--kind", "gang", "--hosts", "2", "--name", "x", "--", "true")
    made = several.market.renter.windrow(*words)
    if made.returncode == 0:
        several.market.renter.windrow("cluster", "delete", "x", "--yes")
    return made.stderr if made.returncode else ""


@pytest.mark.proves("a cluster over two hosts that drop all that comes to them")
def test_members_that_do_not_see_each_other_exchange_bytes_both_ways_and_leave_nothing(closed: Several) -> None:
    before = devices(closed)
    cluster = closed.create("gang", "python3", "-c", RING, hosts=2, until="")
    done = ended(closed, cluster)
    logs = [closed.market.renter.windrow("cluster", "logs", cluster["id"], "--rank", str(n)).stdout for n in (0, 1)]
    assert (done["phase"], done["reason"]) == ("Finished", "exit 0"), (json.dumps(done, indent=1), logs)
    assert logs == ["rank 0 is done\n", "rank 1 is done\n"]
    assert done["network"]["mode"] == "tunnels" and "processes in sandboxes" in done["network"]["reason"]
    assert {one["address"].rsplit(".", 1)[0] for one in done["workloads"]} == {
        done["workloads"][0]["address"].rsplit(".", 1)[0]
    }
    assert all(one["address"].startswith("198.19.") for one in done["workloads"])

    closed.market.renter.delete(cluster["id"])

    wait_for(lambda: closed.left_over(done) == [], WAIT_S)
    assert devices(closed) == before
    with closed.market.networks["one"].entered(), pytest.raises(TimeoutError):
        socket.create_connection((closed.market.addresses["two"], 22), 1)  # they do not see each other
    assert closed.flaws(cluster["id"]) == []
    wait_for(lambda: closed.cluster(cluster["id"])["traffic"]["bytes_in"] > 8 << 20, WAIT_S)


SERVER = """
import os, socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(4096):
            self.request.sendall(data)
socketserver.ThreadingTCPServer((os.environ["WINDROW_ADDRESS"], int(os.environ["WINDROW_PORT"])), Echo).serve_forever()
"""
ASK = """
import os, socket, sys
members, port = os.environ["WINDROW_MEMBERS"].split(","), int(sys.argv[1]) or int(os.environ["WINDROW_PORT"])
try:
    with socket.create_connection((members[1], port), 3) as peer:
        peer.sendall(b"hello")
        print(peer.recv(100))
except OSError as error:
    print(type(error).__name__)
"""
HELD = """
import os, socket, sys, time
members, port = os.environ["WINDROW_MEMBERS"].split(","), int(os.environ["WINDROW_PORT"])
with socket.create_connection((members[1], port), 20) as peer:
    for number in range(600):
        peer.sendall(b"%d" % number)
        assert peer.recv(100) == b"%d" % number
        print(number, flush=True)
        time.sleep(0.1)
"""


@pytest.fixture
def served(closed: Several) -> Iterator[dict[str, Any]]:
    """Two members that answer on their private addresses."""
    cluster = closed.create("gang", "python3", "-c", SERVER, hosts=2)
    yield cluster
    closed.market.renter.delete(cluster["id"])
    wait_for(lambda: closed.left_over(cluster) == [], WAIT_S)


def host_of(several: Several, cluster: Mapping[str, Any], rank: int) -> str:
    """The name of the host that has this member."""
    host_id = next(one["host_id"] for one in cluster["workloads"] if one["rank"] == rank)
    folders = {name: several.market.folder / f"host-{name}" / "identity" / "identity.json" for name in HOSTS}
    return next(name for name, path in folders.items() if json.loads(path.read_text())["id"] == host_id)


def asked(several: Several, cluster: Mapping[str, Any], port: int = 0) -> str:
    """Returns the answer that rank 0 gets from a port of rank 1's private address; 0: of the one on which that member
    listens."""
    words = ("cluster", "exec", cluster["id"], "--", "python3", "-c", ASK, str(port))
    return several.market.renter.windrow(*words).stdout.strip()


def test_only_the_members_themselves_speak_and_are_spoken_to(closed: Several, served: dict[str, Any]) -> None:
    near, far = (closed.market.networks[host_of(closed, served, rank)] for rank in (0, 1))
    address = next(one["address"] for one in served["workloads"] if one["rank"] == 1)
    assert asked(closed, served) == "b'hello'"

    with far.entered():
        of_the_host = socket.create_server(("0.0.0.0", 0))
    with of_the_host:
        port = of_the_host.getsockname()[1]
        assert asked(closed, served, port) == "ConnectionRefusedError", "what the other host itself listens on"
    with near.entered(), pytest.raises(OSError):
        socket.create_connection(
            (address, served["first_port"]), 3
        )  # any other process of the host, as of another lease
    assert asked(closed, served) == "b'hello'"


@pytest.mark.long
def test_a_connection_outlives_the_agent_of_its_host_and_the_access(
    closed: Several, served: dict[str, Any], tmp_path: Path
) -> None:
    name, market = host_of(closed, served, 1), closed.market
    words = ("cluster", "exec", served["id"], "--", "python3", "-c", HELD)
    # It runs beside rank 0, whose agent goes on.
    with started(closed, words, tmp_path / "said") as said:
        wait_for(lambda: "5" in said().split(), WAIT_S)
        closed.agents[name].send_signal(signal.SIGKILL)
        closed.agents[name].wait()
        assert "windrown" not in devices(closed)[name], "it ends with the agent"
        closed.agents[name] = market.run_host(name)
        before = len(said().split())
        wait_for(lambda: len(said().split()) > before + 5, WAIT_S)
    wait_for(lambda: closed.cluster(served["id"])["network"]["cords_up"] == 1, WAIT_S)
    market.accesses["eu"].kill()
    market.restart_access("eu")
    wait_for(lambda: asked(closed, served) == "b'hello'", WAIT_S)
    assert closed.cluster(served["id"])["phase"] == "Running"


@contextmanager
def started(several: Several, words: tuple[str, ...], path: Path) -> Iterator[Any]:
    """A command line of the renter's that goes on; yields what reads its words so far."""
    found = several.market.renter.stack.cli
    environment = os.environ | {"WINDROW_URL": found["url"], "WINDROW_TOKEN": found["token"]}
    with path.open("wb") as out:
        process = subprocess.Popen([WINDROW, *words], stdout=out, stderr=subprocess.STDOUT, env=environment)
    try:
        yield path.read_text
    finally:
        process.kill()
        process.wait()
