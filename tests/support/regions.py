"""A market whose daemons live in networks of their own: a Master, Accesses, agents, each where a test wants it.

The test runs each of its own steps in the Master's network (`market.at_master()`), so that its client reaches the API.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import truth
from tests.support.engines import VARIABLE
from tests.support.killing import online
from tests.support.namespaces import Namespace
from tests.support.rental import Renter
from tests.support.stack import MEASURE_MIB, START_S, Stack, wait_for
from tests.waiting import PATIENCE_S
from windrow_agent.runtimes import shared_memory
from windrow_agent.runtimes.process import ProcessRuntime
from windrow_proto import enrol
from windrow_proto.ids import HostId, WorkloadId

HTTPS_PORT, TRUNK_PORT, ACCESS_PORT = 8443, 7444, 7443
STOP_S = 30.0
START_S_EACH, PAUSE_S_EACH = 0.5, 0.002
"""For each agent: what a Master writes of a new host, and what it costs to ask for all of them."""
JOINS_AT_ONCE = 4
VERDICTS = {"host.silent": "suspect", "host.silent_long": "lost"}
"""The Master's names for these states in its audit log."""


@dataclass(slots=True)
class RunningAccess:
    """One Access of the market, with what its command was given."""

    process: "subprocess.Popen[bytes]"
    arguments: tuple[str, ...]
    access_id: str

    def kill(self) -> None:
        """SIGKILL; its kernel answers whoever is connected with a reset."""
        self.process.kill()
        self.process.wait()


@dataclass(slots=True)
class RegionalMarket:
    """A running market. networks: by name; addresses: where each is reached by the others."""

    folder: Path
    networks: Mapping[str, Namespace]
    addresses: Mapping[str, str]
    renter: Renter
    accesses: dict[str, RunningAccess] = field(default_factory=dict)
    agent_dirs: list[Path] = field(default_factory=list)
    pids: dict[str, int] = field(default_factory=dict)
    """Of every daemon beside the Master, by its folder's name; of those that were started again the newest."""
    cleanup: ExitStack = field(default_factory=ExitStack)

    @property
    def data_dir(self) -> Path:
        """Of the Master."""
        return self.renter.stack.data_dir

    @property
    def https_url(self) -> str:
        """The URL at which hosts and Accesses join."""
        return f"https://{self.addresses['master']}:{HTTPS_PORT}"

    @contextmanager
    def at_master(self) -> Iterator[None]:
        """Meanwhile this thread is in the Master's network."""
        with self.networks["master"].entered():
            yield

    def add_accesses(self, *names: str) -> None:
        """Start one in the network of each name, which is its region's name, too; wait until all of them serve."""
        for name in names:
            folder = self.folder / f"access-{name}"
            self._join(folder, "access", (self.addresses[name],))
            arguments = ["--data-dir", str(folder), "--listen", f"0.0.0.0:{ACCESS_PORT}", "--region", name]
            arguments += ["--advertise", f"{self.addresses[name]}:{ACCESS_PORT}"]
            arguments += ["--trunk", f"{self.addresses['master']}:{TRUNK_PORT}"]
            process = self._start(name, folder, "windrow_access", "run", *arguments)
            access_id = str(json.loads((folder / "identity" / "identity.json").read_text())["id"])
            self.accesses[name] = RunningAccess(process, tuple(arguments), access_id)
        wanted = {one.access_id for one in self.accesses.values()}
        wait_for(lambda: wanted <= {row["id"] for row in self.renter.all("/accesses") if row["state"] == "serving"})

    def restart_access(self, name: str) -> None:
        """Start one that has ended again as it was."""
        one = self.accesses[name]
        one.process = self._start(name, self.folder / f"access-{name}", "windrow_access", "run", *one.arguments)

    def add_agents(self, name: str, count: int, sample_every_s: int = 1) -> list[str]:
        """Join so many simulated hosts and run them in one process in the network of this name; returns their ids."""
        folder = self.folder / f"agents-{name}"
        places = [folder / f"{number:04d}" for number in range(count)]
        ids = asyncio.run(self._joined(places))
        numbers = {"--count": count, "--seed": len(self.agent_dirs), "--sample-every": sample_every_s}
        arguments = [word for flag, number in numbers.items() for word in (flag, str(number))]
        self._start(name, folder, "windrow_agent", "simulate", *arguments, "--data-dir", str(folder))
        self.agent_dirs += places
        return ids

    def add_host(
        self, name: str, *flags: str, agent: str = "windrow_agent", **environment: str
    ) -> "subprocess.Popen[bytes]":
        """Join the network of this name as a real host that runs processes, and run its agent there, the module of
        this name."""
        self._join(self.folder / f"host-{name}", "host", is_simulated=False)
        return self.run_host(name, *flags, agent=agent, **environment)

    def run_host(
        self, name: str, *flags: str, agent: str = "windrow_agent", **environment: str
    ) -> "subprocess.Popen[bytes]":
        """Run the agent of a real host that has joined, as after a start of its machine."""
        folder = self.folder / f"host-{name}"
        engines = os.environ.get(VARIABLE, "")
        shown = ("--show", engines) if engines else ()
        more = ("--data-dir", str(folder), "--runtimes", "process", *shown, *flags)
        return self._start(name, folder, agent, "run", *more, environment=environment)

    async def _joined(self, places: list[Path]) -> list[str]:
        gate = asyncio.Semaphore(JOINS_AT_ONCE)

        async def one(place: Path) -> str:
            async with gate:
                await asyncio.to_thread(self._join, place, "host")
            return str(json.loads((place / "identity" / "identity.json").read_text())["id"])

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(place)) for place in places]
        return [task.result() for task in tasks]

    def _join(self, folder: Path, role: str, addresses: tuple[str, ...] = (), *, is_simulated: bool = True) -> None:
        token = self.renter.ask("POST", "/join-tokens", {"role": role, "expires_in_s": 900})["join_token"]
        request = enrol.JoinRequest(
            role, f"test-{folder.name}", simulated=role == "host" and is_simulated, addresses=addresses
        )
        enrol.join(enrol.IdentityFolder(folder / "identity"), self.https_url, token, request, PATIENCE_S)

    def _start(
        self, name: str, folder: Path, module: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        folder.mkdir(parents=True, exist_ok=True)
        own = os.environ | dict(environment or {})
        with self.networks[name].entered(), (folder / "log").open("ab") as log:
            process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=log, stderr=log, env=own)
        self.cleanup.callback(_stop, process)
        self.pids[folder.name] = process.pid
        return process

    # --- what is seen of it ------------------------------------------------------------------------------------------

    def homes(self) -> dict[str, str]:
        """The id of the Access through which each host was heard last, by host; only of hosts that are online."""
        return {host["id"]: host["access_id"] for host in online(self.renter)}

    def connections(self, name: str) -> int:
        """How many agents are connected with this Access, those who only keep a second connection there included."""
        words = ("ss", "-Htn", "state", "established", "sport", "=", f":{ACCESS_PORT}")
        return len(self.networks[name].call(*words).splitlines())

    def settled(self, *hosts: str) -> dict[str, str]:
        """Wait until all of these hosts are online, and have written down some telemetry; returns their homes."""
        deadline_s, pause_s = START_S + START_S_EACH * len(hosts), 0.2 + PAUSE_S_EACH * len(hosts)
        found: dict[str, str] = wait_for(
            lambda: (h := self.homes()) and set(hosts) <= set(h) and h, deadline_s, pause_s=pause_s
        )
        wait_for(lambda: all(truth.produced(folder).keys for folder in self.agent_dirs), pause_s=0.2)
        return {host: found[host] for host in hosts}

    def verdicts(self, *hosts: str) -> list[str]:
        """Every time that one of these hosts was called Suspect or Lost, as the audit log has it."""
        found = truth.rows(self.data_dir, "SELECT action, subject FROM audit WHERE action LIKE 'host.silent%'")
        return [f"{VERDICTS[one['action']]} {one['subject']}" for one in found if one["subject"] in hosts]


@contextmanager
def regional_market(
    folder: Path,
    networks: Mapping[str, Namespace],
    addresses: Mapping[str, str],
    master: str = "windrow_master",
    environment: Mapping[str, str] | None = None,
) -> Iterator[RegionalMarket]:
    """A Master, the module of this name, in the network `master`, and this thread with it there; everything is ended at
    the end. environment: what the Master gets beside this process's own."""
    data_dir = folder / "data"
    data_dir.mkdir(mode=0o700)
    arguments = ["--data-dir", str(data_dir), "--listen", "0.0.0.0", "--public", addresses["master"]]
    arguments += ["--https-port", str(HTTPS_PORT), "--trunk-port", str(TRUNK_PORT)]
    with ExitStack() as cleanup, networks["master"].entered():
        cleanup.callback(clear_hosts, folder)
        with (folder / "master.log").open("ab") as log:
            own = {"WINDROW_MEASURE_MIB": MEASURE_MIB, **os.environ, **(environment or {})}
            process = subprocess.Popen([sys.executable, "-m", master, *arguments], stderr=log, stdout=log, env=own)
        cleanup.callback(_stop, process)
        renter = Renter(Stack(process, data_dir, 0.0))
        wait_for(lambda: renter.ask("GET", "/me"))
        yield RegionalMarket(folder, networks, addresses, renter, cleanup=cleanup)


def clear_hosts(folder: Path) -> None:
    """Take away what its hosts have left of their work, also those that are lost for good."""

    async def clear() -> None:
        for host in folder.glob("host-*"):
            host_id = HostId(json.loads((host / "identity" / "identity.json").read_text())["id"])
            runtime = ProcessRuntime(host / "process", host, host_id)
            begun = {path.name for path in (host / "process").glob("work*")}
            for workload_id in begun.union(shared_memory.all_of(host_id)):
                await runtime.remove(WorkloadId(workload_id))

    asyncio.run(clear())


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
