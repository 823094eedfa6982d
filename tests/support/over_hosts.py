"""Three hosts for clusters over several, through the shipped daemons: each in a network of its own, on one switch."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import truth
from tests.support.namespaces import Namespace, switched
from tests.support.regions import RegionalMarket, regional_market
from tests.support.stack import wait_for
from windrow_agent.runtimes import shared_memory

HOSTS = ("one", "two", "three")
WAIT_S = 120
CLOSED = 'iifname != "cable" accept\nct state established,related accept\ncounter drop'
"""Of a host behind a firewall: nobody comes to it, and what it has begun goes on."""
LOST_S = "20"
"""Of silence, for a host to be lost: a minute and a half as shipped."""


@dataclass(frozen=True, slots=True)
class Several:
    """A market of three hosts, and their agents by name."""

    market: RegionalMarket
    agents: dict[str, "subprocess.Popen[bytes]"]

    def create(self, kind: str, *argv: str, until: str = "Running", **more: Any) -> dict[str, Any]:
        """Ask for a cluster once there is space for it: hosts clear away what ran there before."""
        asked = {"kind": kind, "argv": list(argv), **more}
        self.fits(asked)
        found: dict[str, Any] = self.market.renter.create(*argv, until=until, kind=kind, **more)
        return found

    def fits(self, asked: Mapping[str, Any]) -> None:
        """Wait until there is space for what is asked."""
        wait_for(lambda: self.market.renter.ask("POST", "/clusters/plan", dict(asked))["fits"], WAIT_S)

    def cluster(self, cluster_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.market.renter.ask("GET", f"/clusters/{cluster_id}")
        return found

    def of_member(self, cluster: Mapping[str, Any], address: str) -> str:
        """Which host runs the member of a cluster that has this address."""
        found: str = next(one["host_name"] for one in cluster["workloads"] if one["address"] == address)
        return found.removeprefix("test-host-")

    def flaws(self, cluster_id: str) -> list[str]:
        """Returns the faults of the ledger and of its bill."""
        folders = [self.market.folder / f"host-{name}" / "identity" for name in HOSTS]
        identities = {json.loads((one / "identity.json").read_text())["id"]: one for one in folders}
        data_dir = self.market.data_dir
        return truth.ledger_flaws(data_dir) + truth.billing_flaws(data_dir, cluster_id, identities)

    def left_over(self, cluster: Mapping[str, Any]) -> list[str]:
        """Processes of this cluster and its folders, on any host. The Master rents hosts of its own accord, too, to
        prove them: what runs there for it is none of this cluster's."""
        ids = [one["id"] for one in self.cluster(cluster["id"])["workloads"]]
        assert ids
        folders = [str(path) for name in HOSTS for one in ids for path in self._host(name).glob(f"**/*{one}")]
        folders += [str(path) for path in map(shared_memory.of, ids) if path is not None]
        return folders + [line for line in _commands() if any(one in line for one in ids)]

    def die(self, name: str) -> list[str]:
        """The power of this host fails: its cable is silent, and nothing of it lives on. Returns what ended."""
        network = self.market.networks[name]
        network.call("ip", "link", "set", "cable", "down")
        ended = []
        while found := inside(network) | self._workloads(name):
            for pid, command in found.items():
                ended.append(command)
                _kill(pid)
        self.agents[name].wait()
        return ended

    def come_back(self, name: str) -> None:
        """Its power is back, and its service starts."""
        self.market.networks[name].call("ip", "link", "set", "cable", "up")
        self.agents[name] = self.market.run_host(name)

    def _workloads(self, name: str) -> dict[int, str]:
        """The command lines of the processes of a host's workloads, which are in networks of their own."""
        ids = [path.parent.name.encode() for path in self._host(name).glob("process/*/spec.json")]
        marks = [b"WINDROW_WORKLOAD_ID=" + one for one in ids]
        return {pid: said for pid, said in _all().items() if any(one in _environment(pid) for one in marks)}

    def _host(self, name: str) -> Path:
        return self.market.folder / f"host-{name}"


def inside(network: Namespace) -> dict[int, str]:
    """The command lines of all processes in this network, by pid."""
    here = os.stat(network.path).st_ino
    return {pid: said for pid, said in _all().items() if _network(pid) == here}


def _all() -> dict[int, str]:
    """The command lines of all processes of this machine but this one, by pid."""
    found = {}
    for pid in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes() if pid != os.getpid() else b""
        except OSError:
            continue  # it has ended meanwhile
        if words:
            found[pid] = words.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def _network(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return 0


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _commands() -> list[str]:
    """The command lines of all processes of this machine."""
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()


@contextmanager
def several_hosts(folder: Path, network: str) -> Iterator[Several]:
    """A Master, an Access and three real hosts that run processes. network: where their addresses begin: 10.97.0."""
    with ExitStack() as cleanup:
        made = cleanup.enter_context(switched(2 + len(HOSTS), network))
        names = ("master", "eu", *HOSTS)
        networks = {name: one for name, (one, _) in zip(names, made, strict=True)}
        addresses = {name: address for name, (_, address) in zip(names, made, strict=True)}
        haste = "tests.support.hasty_master", {"HASTE_LOST_S": LOST_S}
        market = cleanup.enter_context(regional_market(folder, networks, addresses, *haste))
        market.add_accesses("eu")
        agents = {name: market.add_host(name) for name in HOSTS}

        def are_up() -> bool:
            hosts = market.renter.all("/hosts")
            return len(hosts) == len(HOSTS) and all(h["link_state"] == "online" and h["price_per_hour"] for h in hosts)

        wait_for(are_up)
        yield Several(market, agents)
