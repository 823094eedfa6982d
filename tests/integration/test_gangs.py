"""Clusters over several hosts through the shipped daemons: each host in a network of its own, all on one switch."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import truth
from tests.support.namespaces import need_networks, switched
from tests.support.regions import RegionalMarket, regional_market
from tests.support.stack import wait_for
from windrow_agent.runtimes import shim

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HOSTS = ("one", "two", "three")
WAIT_S = 120
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


@dataclass(frozen=True, slots=True)
class Several:
    """A market of three hosts, and their agents by name."""

    market: RegionalMarket
    agents: Mapping[str, "subprocess.Popen[bytes]"]

    def create(self, kind: str, *argv: str, until: str = "Running", **more: Any) -> dict[str, Any]:
        """Ask for a cluster once there is room for it: hosts clear away what ran there before."""
        asked = {"kind": kind, "argv": list(argv), **more}
        wait_for(lambda: self.market.renter.ask("POST", "/clusters/plan", asked)["fits"], WAIT_S)
        found: dict[str, Any] = self.market.renter.create(*argv, until=until, kind=kind, **more)
        return found

    def cluster(self, cluster_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.market.renter.ask("GET", f"/clusters/{cluster_id}")
        return found

    def flaws(self, cluster_id: str) -> list[str]:
        """What is wrong with the ledger and with its bill."""
        folders = [self.market.folder / f"host-{name}" / "identity" for name in HOSTS]
        identities = {json.loads((one / "identity.json").read_text())["id"]: one for one in folders}
        data_dir = self.market.data_dir
        return truth.ledger_flaws(data_dir) + truth.billing_flaws(data_dir, cluster_id, identities)

    def left_over(self, cluster: Mapping[str, Any]) -> list[str]:
        """Processes of this cluster and its folders, on any host. The Master rents hosts of its own accord, too, to
        prove them: what runs there for it is none of this cluster's."""
        ids = [one["id"] for one in self.cluster(cluster["id"])["workloads"]]
        assert ids
        folders = [str(path) for name in HOSTS for one in ids for path in self._host(name).glob(f"**/{one}")]
        return folders + [line for line in _commands() if any(one in line for one in ids)]

    def end_shims(self) -> None:
        """End what hosts left whose agents were killed: with its shim, all of a workload ends."""
        for folder in {path.parent for name in HOSTS for path in self._host(name).glob("**/workload_*/start.json")}:
            record = json.loads((folder / "start.json").read_text())
            if shim.is_alive(record["shim_pid"], record["shim_ticks"]):
                os.kill(record["shim_pid"], signal.SIGUSR1)
                wait_for(lambda r=record: not shim.is_alive(r["shim_pid"], r["shim_ticks"]))

    def _host(self, name: str) -> Path:
        return self.market.folder / f"host-{name}"


def _commands() -> list[str]:
    """The command lines of all processes of this machine."""
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Several]:
    need_networks()
    with ExitStack() as cleanup:
        made = cleanup.enter_context(switched(2 + len(HOSTS), "10.97.0"))
        names = ("master", "eu", *HOSTS)
        networks = {name: one for name, (one, _) in zip(names, made, strict=True)}
        addresses = {name: address for name, (_, address) in zip(names, made, strict=True)}
        market = cleanup.enter_context(regional_market(tmp_path_factory.mktemp("gangs"), networks, addresses))
        market.add_accesses("eu")
        agents = {name: market.add_host(name) for name in HOSTS}

        def are_up() -> bool:
            hosts = market.renter.all("/hosts")
            return len(hosts) == len(HOSTS) and all(h["link_state"] == "online" and h["price_per_hour"] for h in hosts)

        wait_for(are_up)
        found = Several(market, agents)
        try:
            yield found
        finally:
            found.end_shims()


def test_a_gang_of_two_hosts_exchanges_bytes_and_ends_and_leaves_nothing(several: Several) -> None:
    cluster = several.create("gang", "python3", "-c", RING, hosts=2, until="")
    done = wait_for(
        lambda: (c := several.cluster(cluster["id"])) and "has ended" in (c["reason"] or "") + c["phase"] and c, WAIT_S
    )
    assert done["reason"].startswith("its work has ended with exit code 0, 0"), json.dumps(done, indent=1)
    logs = [several.market.renter.windrow("cluster", "logs", cluster["id"], "--rank", str(n)).stdout for n in (0, 1)]
    assert logs == ["rank 0 is done\n", "rank 1 is done\n"]
    members = done["workloads"]
    assert len({one["host_id"] for one in members}) == 2
    assert {one["address"] for one in members} <= set(several.market.addresses.values())
    assert {step["member"] for step in done["steps"] if step["name"] == "waiting_members"} == {
        f"rank {one['rank']} on {one['host_name']}" for one in members
    }

    receipt = several.market.renter.delete(cluster["id"])

    assert {line["host_id"] for line in receipt["lines"]} == {one["host_id"] for one in members}
    assert several.flaws(cluster["id"]) == []
    assert several.left_over(done) == []


def test_a_member_that_cannot_start_takes_the_others_back_and_is_named(several: Several) -> None:
    failed = several.create("gang", "no-such-program", hosts=3, until="Failed")
    assert failed["reason"].startswith("rank ") and "no-such-program" in failed["reason"]
    wait_for(lambda: several.left_over(failed) == [], WAIT_S)


def test_a_rank_that_is_killed_makes_the_gang_degraded_and_deleting_it_leaves_nothing(several: Several) -> None:
    script = "import os, time; time.sleep(600 if os.environ['WINDROW_RANK'] == '0' else 3); os._exit(7)"
    cluster = several.create("gang", "python3", "-c", script, hosts=2, until="")

    hurt = several.market.renter.phase(cluster["id"], "Degraded")

    assert "has ended with exit code 7 while others run" in hurt["reason"]
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


def test_a_lost_worker_is_replaced_on_the_third_host(several: Several, stub: Path) -> None:
    """The last of this file: it takes a host away."""
    cluster = several.create("dask", "sleep", "600", hosts=2, env={"PATH": f"{stub}:/usr/bin:/bin"})
    worker = next(one for one in cluster["workloads"] if one["rank"] == 1)
    name = next(n for n in HOSTS if several.market.addresses[n] == worker["address"])
    several.agents[name].send_signal(signal.SIGKILL)

    def is_replaced() -> Any:
        now = several.cluster(cluster["id"])
        fresh = [one for one in now["workloads"] if one["rank"] == 1 and one["is_member"]]
        return now["phase"] == "Running" and fresh and fresh[0]["host_id"] != worker["host_id"] and now

    found = wait_for(is_replaced, 240)

    assert found["restarts"] == 1
    assert [step["name"] for step in found["steps"] if step["name"] in ("replacing", "degraded")]


@pytest.fixture
def stub() -> Iterator[Path]:
    """Where a program called dask is that stays up: what is tested here is who is started where, not the engine. Not in
    /tmp, which is another one inside a workload."""
    with tempfile.TemporaryDirectory(prefix="windrow-stub-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "dask").write_text("#!/bin/sh\nexec sleep 600\n")
        (folder / "dask").chmod(0o755)
        yield folder
