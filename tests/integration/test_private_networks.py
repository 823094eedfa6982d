"""Clusters over hosts that do not see each other, through the shipped daemons: a firewall drops all that comes to them.

Each host dials out to its Access alone. What is here takes seconds; the engines themselves are in test_engines.py.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.namespaces import need_networks
from tests.support.over_hosts import HOSTS, WAIT_S, Several, several_hosts
from tests.support.stack import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CLOSED = "ct state established,related accept\niifname lo accept\nip saddr 198.19.0.0/16 accept\ncounter drop"
"""What comes to a closed host. The private network is a device of its own: on a firewall of this kind it is let in."""
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
        lambda: (c := several.cluster(cluster["id"])) and "has ended" in (c["reason"] or "") + c["phase"] and c, WAIT_S
    )
    return found


@pytest.mark.proves("a cluster over two hosts that drop all that comes to them")
def test_members_that_do_not_see_each_other_exchange_bytes_both_ways_and_leave_nothing(closed: Several) -> None:
    before = devices(closed)
    cluster = closed.create("gang", "python3", "-c", RING, hosts=2, until="")
    done = ended(closed, cluster)
    logs = [closed.market.renter.windrow("cluster", "logs", cluster["id"], "--rank", str(n)).stdout for n in (0, 1)]
    assert done["reason"].startswith("its work has ended with exit code 0, 0"), (json.dumps(done, indent=1), logs)
    assert logs == ["rank 0 is done\n", "rank 1 is done\n"]
    assert done["network"]["mode"] == "tunnels" and "does not see" in done["network"]["reason"]
    assert {one["address"].rsplit(".", 1)[0] for one in done["workloads"]} == {
        done["workloads"][0]["address"].rsplit(".", 1)[0]
    }
    assert all(one["address"].startswith("198.19.") for one in done["workloads"])

    closed.market.renter.delete(cluster["id"])

    wait_for(lambda: closed.left_over(done) == [], WAIT_S)
    assert devices(closed) == before
    assert closed.flaws(cluster["id"]) == []
    wait_for(lambda: closed.cluster(cluster["id"])["traffic"]["bytes_in"] > 8 << 20, WAIT_S)
